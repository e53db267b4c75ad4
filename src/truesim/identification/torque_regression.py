"""Regressions of an arm's torques, from the textbook's to one with chosen friction, in the parameters of a fit."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.problem.fitted import coordinates_of
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.arm import ArmEstimate, with_stribeck_velocities
from truesim.identification.regression.choose import Chosen, choose
from truesim.identification.regression.couplings import add_couplings
from truesim.identification.regression.errors import BAND
from truesim.identification.regression.signals import band_limited
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings

ROBOT_FILE, TEXTBOOK = "robot file", "textbook"
BASIC_FRICTION, CHOSEN_FRICTION = "basic friction", "chosen friction"
MIXED_FRICTION = "chosen friction at some joints"
"""Names of the candidates. The textbook's regression has viscous and dry friction and offsets, in a fixed band and with
a weak prior. With basic friction, band, weight and offsets are chosen by cross-validation; with chosen friction, terms
are added as well, at all joints, or where they predict torque and motion better."""
MIN_TORQUE_SAMPLES = 50
"""Least number of samples of a regression, after the band."""


@dataclasses.dataclass(frozen=True)
class ArmRegression:
    """Regression of an arm's torques, ready to be turned into a fit."""

    model: Model
    """The robot file's values; Stribeck velocities are those of the chosen friction."""
    chosen: Chosen
    candidates: Mapping[str, ArmEstimate]
    """Estimates by name, the richest first."""
    added: tuple[str, ...] = ()
    """Motors that turn with two joints which the robot file does not have."""

    @functools.cached_property
    def reach(self) -> dict[str, float]:
        """Largest absolute value of each estimated parameter, for which scales and bounds make room [SI units]."""
        out: dict[str, float] = {}
        for estimate in self.candidates.values():
            for path, value in estimate.values.items():
                out[path] = max(out.get(path, 0.0), float(np.abs(value).max()))
        return out

    @property
    def free(self) -> tuple[str, ...]:
        """Paths of all parameters of any candidate."""
        return tuple(self.reach)


def coordinates(problem: Problem, estimate: ArmEstimate) -> Float[np.ndarray, " size"]:
    """Coordinates of an estimate in a problem with its parameters; others keep the values of the robot file."""
    start = {p.name: p.start for p in problem.parameters}
    return coordinates_of(problem, start | estimate.values)


def uncertainty(problem: Problem, theta: Float[np.ndarray, " size"], estimate: ArmEstimate) -> Uncertainty:
    """Covariance of an estimate; numbers that it does not have are known exactly."""
    at, first = {}, 0
    for path, value in estimate.values.items():
        at[path] = range(first, first + np.size(value))
        first += np.size(value)
    order = [k for p in problem.parameters for k in at.get(p.name, [-1] * np.size(p.start))]
    known = np.array(order) >= 0
    values = np.where(np.outer(known, known), estimate.covariance[np.ix_(order, order)], 0.0)
    J = problem.values(theta)[1]
    inverse = np.linalg.pinv(J)
    covariance = inverse @ values @ inverse.T
    return Uncertainty((covariance + covariance.T) / 2, values, np.resize(estimate.times, len(problem.rows)))


def regress_arm(model: Model, logs: Sequence[Log]) -> ArmRegression:
    """Regress the torques of logs, with basic friction and with friction terms chosen by cross-validation.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    count = len(band_limited(model, logs, BAND))
    if count < MIN_TORQUE_SAMPLES:
        raise TruesimError(
            f"The logs have {count} samples in a band of {BAND:g} Hz; a regression of torques needs "
            f"{MIN_TORQUE_SAMPLES}: add logs."
        )
    known, model = couplings(model), add_couplings(model, logs)
    chosen = choose(model, logs)
    model = with_stribeck_velocities(model, chosen.best.system.terms)
    found = {CHOSEN_FRICTION: ArmEstimate(model, chosen.best, chosen.samples, chosen.weight)}
    if chosen.best is not chosen.basic:
        found[BASIC_FRICTION] = ArmEstimate(model, chosen.basic, chosen.samples, chosen.weight)
    found[TEXTBOOK] = ArmEstimate(model, chosen.textbook, chosen.reference, 1.0)
    return ArmRegression(model, chosen, found, tuple(name for name in couplings(model) if name not in known))
