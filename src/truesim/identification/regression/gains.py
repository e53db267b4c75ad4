"""Scale of each joint's torque relative to those of the other joints, from the inertial parameters that they share.

The weight of a hand loads every joint below it. A torque with another scale, such as a wrong gear ratio, contradicts
the other joints, whatever the masses in the file.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identification.regression.entropic import EntropicProblem, minimize
from truesim.identification.regression.equations import reduce
from truesim.identification.regression.estimate import ArmSystem, Regressed, basic_terms, regress, typical_sizes
from truesim.identification.regression.signals import JointSamples
from truesim.physics.model.model import Model

GAIN_SAMPLES = 1500
"""Samples that are looked at. Larger is slower and finds smaller faults."""
TRIED_GAINS = np.exp(np.linspace(-1.6, 1.6, 17))
"""Factors of a joint's torque that are tried."""
GAIN_WEIGHT = 10.0
"""Weight of the prior at the robot file."""
DOUBTED_GAIN = 1.6
"""Factor from which the scale of a joint is doubted. Masses of real files differ by 1.2. Larger doubts less."""
MAX_PERCENT = 150.0
"""Largest torque that may be a percentage."""
DOUBTED_COST = 100.0
"""Decrease of the cost, in variances of the residual, from which a scale is doubted. Larger doubts less."""


@dataclasses.dataclass(frozen=True)
class DoubtedGain:
    """A joint whose torque contradicts those of the others; or all joints, if torques are percent of the efforts."""

    joint: int | None
    """None for all joints."""
    factor: float
    """Torque of the log relative to what the other joints ask for."""


def doubted_gain(model: Model, samples: JointSamples) -> DoubtedGain | None:
    """The joint whose torque most clearly has another scale than those of the others; None if there is none.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        samples: Motion and torque.
    """
    if not np.all(np.any(samples.torque, axis=0)):  # a passive joint has no torque to compare with
        return None
    few = samples.at_most(GAIN_SAMPLES)
    if not np.all(np.any(few.torque, axis=0)):
        return None  # a passive joint has no torque to compare with
    reduced = reduce(model, few, np.zeros(len(few), int))
    if model.nv < 2 or not np.all(reduced.count):
        return None
    system = ArmSystem.of(model, reduced, basic_terms(model.nv))
    found = regress(system, np.arange(1), GAIN_WEIGHT)
    recorded = _cost(found, np.ones(model.nv))
    trials = [[_cost(found, np.where(np.arange(model.nv) == j, k, 1.0)) for k in TRIED_GAINS] for j in range(model.nv)]
    costs = np.array(trials)
    joint = int(np.argmin(costs.min(axis=1)))
    factor, least = float(1 / TRIED_GAINS[np.argmin(costs[joint])]), float(costs.min())
    effort = _efforts(model)
    if effort is not None and np.abs(samples.torque).max() < MAX_PERCENT:
        percent = _cost(found, effort / 100)
        if percent < min(recorded - DOUBTED_COST, least):
            return DoubtedGain(None, 1.0)
    if recorded - least < DOUBTED_COST or max(factor, 1 / factor) < DOUBTED_GAIN:
        return None
    return DoubtedGain(joint, factor)


def _efforts(model: Model) -> Float[np.ndarray, " joints"] | None:
    """Effort limits, if all joints have one and they differ [N m or N]."""
    links = [link.joint for link in model.topology.links if link.joint >= 0]
    effort = np.asarray(model.joints.force_range)[links, 1]
    known = all(model.joints.force_limited[j] for j in links) and bool(np.all(effort > 0))
    return effort if known and np.ptp(np.log(effort)) > np.log(DOUBTED_GAIN) else None


def _cost(found: Regressed, gains: Float[np.ndarray, " joints"]) -> float:
    """Least cost if each joint's torque is multiplied by a gain; residuals are in units of the torque as recorded."""
    system = found.system
    grams = system.grams[0].copy()
    grams[:, -1, :] *= gains[:, None]
    grams[:, :, -1] *= gains[:, None]
    total = np.tensordot((gains * found.noise) ** -2.0, grams, axes=1)
    typical = typical_sizes(system, grams, np.sqrt(np.maximum(grams[:, -1, -1], 1e-300)))
    problem = EntropicProblem(total[:-1, :-1], total[:-1, -1], system.prior, system.positive, typical, GAIN_WEIGHT)
    x, _ = minimize(problem, found.x)
    return problem.value(x) + float(total[-1, -1])
