"""Scale of each joint's torque relative to those of the other joints, from the inertial parameters that they share.

The weight of a hand loads every joint below it. A torque with another scale, such as a wrong gear ratio, contradicts
the other joints, whatever the masses in the file.
"""

import dataclasses
import functools

import numpy as np

from truesim.core.typing import Float
from truesim.identification.regression.entropic import EntropicProblem, minimize
from truesim.identification.regression.equations import reduce
from truesim.identification.regression.estimate import ArmSystem, Regressed, basic_terms, regress, typical_sizes
from truesim.identification.regression.signals import JointSamples
from truesim.physics.model.model import Model

GAIN_SAMPLES = 1500
"""Samples that are looked at. Larger is slower and finds smaller faults."""
TRIED_GAINS = (*np.exp(np.linspace(-1.6, 1.6, 17)), -1.0)
"""Factors of a joint's torque that are tried; the last is a wrong sign."""
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
    """Torque of the log relative to what the other joints ask for; negative for a wrong sign."""


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
    recorded = Trial.of(found, np.ones(model.nv)).cost()
    joint, gain, least = best_trial(found, recorded - DOUBTED_COST)
    factor = 1 / gain
    effort = _efforts(model)
    if effort is not None and np.abs(samples.torque).max() < MAX_PERCENT:
        percent = Trial.of(found, effort / 100).cost()
        if percent < min(recorded - DOUBTED_COST, least):
            return DoubtedGain(None, 1.0)
    if recorded - least < DOUBTED_COST or 1 / DOUBTED_GAIN < factor < DOUBTED_GAIN:
        return None
    return DoubtedGain(joint, factor)


def _efforts(model: Model) -> Float[np.ndarray, " joints"] | None:
    """Effort limits, if all joints have one and they differ [N m or N]."""
    links = [link.joint for link in model.topology.links if link.joint >= 0]
    effort = np.asarray(model.joints.force_range)[links, 1]
    known = all(model.joints.force_limited[j] for j in links) and bool(np.all(effort > 0))
    return effort if known and np.ptp(np.log(effort)) > np.log(DOUBTED_GAIN) else None


def best_trial(found: Regressed, limit: float) -> tuple[int, float, float]:
    """Joint, gain and cost of the cheapest trial; gain one and the limit if none costs less than the limit.

    Trials whose lower bound exceeds the least cost so far are not solved.
    """
    joints = np.arange(len(found.noise))
    trials = [(j, float(k), Trial.of(found, np.where(joints == j, k, 1.0))) for j in joints for k in TRIED_GAINS]
    best = (0, 1.0, limit)
    for j, gain, trial in sorted(trials, key=lambda each: each[2].bound):
        if trial.bound >= best[2]:
            break
        if (cost := trial.cost()) < best[2]:
            best = int(j), gain, cost
    return best


@dataclasses.dataclass(frozen=True)
class Trial:
    """Regression with each joint's torque multiplied by a gain; residuals are in units of the torque as recorded."""

    problem: EntropicProblem
    squares: float
    """Sum of squares of the torques."""
    start: Float[np.ndarray, " size"]

    @classmethod
    def of(cls, found: Regressed, gains: Float[np.ndarray, " joints"]) -> "Trial":
        """Trial of gains on an estimate at the gains one."""
        system = found.system
        grams = system.grams[0].copy()
        grams[:, -1, :] *= gains[:, None]
        grams[:, :, -1] *= gains[:, None]
        total = np.tensordot((gains * found.noise) ** -2.0, grams, axes=1)
        typical = typical_sizes(system, grams, np.sqrt(np.maximum(grams[:, -1, -1], 1e-300)))
        problem = EntropicProblem(total[:-1, :-1], total[:-1, -1], system.prior, system.positive, typical, GAIN_WEIGHT)
        return cls(problem, float(total[-1, -1]), found.x)

    @functools.cached_property
    def bound(self) -> float:
        """Lower bound of the cost: least squares without the prior, and the least value of the prior."""
        scale = 1 / np.sqrt(np.maximum(np.diag(self.problem.H), 1e-300))
        matrix = self.problem.H * np.outer(scale, scale) + 1e-12 * np.eye(len(scale))
        right = scale * self.problem.g
        return self.squares - float(right @ np.linalg.solve(matrix, right)) + self.problem.least_prior()

    def cost(self) -> float:
        """Least cost of the regression."""
        x, _ = minimize(self.problem, self.start)
        return self.problem.value(x) + self.squares
