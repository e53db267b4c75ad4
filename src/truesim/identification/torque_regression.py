"""Regression of an arm's torques, with basic and with chosen friction, in the parameters of a fit."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.problem.fitted import coordinates_of
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.arm import ArmEstimate, estimate_of
from truesim.identification.regression.choose import Chosen, choose
from truesim.identification.regression.couplings import add_couplings
from truesim.identification.regression.errors import BAND
from truesim.identification.regression.signals import band_limited
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings

CHOSEN_FRICTION, BASIC_FRICTION, ROBOT_FILE = "chosen friction", "basic friction", "robot file"
SOME_FRICTION = "chosen friction at some joints"
"""Names of the candidates: friction terms are chosen at all joints, or where they predict torque and motion better."""
STRIBECK_FIELD = ".stribeck_velocity"
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

    @property
    def free(self) -> tuple[str, ...]:
        """Paths of all estimated parameters."""
        return tuple(self._richest.values)

    @property
    def reach(self) -> dict[str, float]:
        """Largest absolute value of each parameter, for which scales and bounds make room [SI units]."""
        return {path: float(np.abs(value).max()) for path, value in self._richest.values.items()}

    @property
    def _richest(self) -> ArmEstimate:
        return next(iter(self.candidates.values()))

    def coordinates(self, problem: Problem, name: str) -> Float[np.ndarray, " size"]:
        """Coordinates of a candidate in a problem whose free parameters are `free`."""
        if name == ROBOT_FILE:
            return problem.parameters.start
        start = {p.name: p.start for p in problem.parameters}
        return coordinates_of(problem, start | self.candidates[name].values)

    def uncertainty(self, problem: Problem, theta: Float[np.ndarray, " size"], name: str) -> Uncertainty:
        """Covariance of a candidate; numbers that it does not have are known exactly."""
        own = self.candidates[name if name in self.candidates else CHOSEN_FRICTION]
        at, first = {}, 0
        for path, value in own.values.items():
            at[path] = range(first, first + np.size(value))
            first += np.size(value)
        order = [k for p in problem.parameters for k in at.get(p.name, [-1] * np.size(p.start))]
        known = np.array(order) >= 0
        values = np.where(np.outer(known, known), own.covariance[np.ix_(order, order)], 0.0)
        J = problem.values(theta)[1]
        inverse = np.linalg.pinv(J)
        coordinates = inverse @ values @ inverse.T
        rows = len(problem.rows)
        return Uncertainty((coordinates + coordinates.T) / 2, values, np.resize(self.chosen.times, rows))


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
    found = {CHOSEN_FRICTION: estimate_of(model, chosen, chosen.best)}
    if chosen.best is not chosen.basic:
        found[BASIC_FRICTION] = estimate_of(model, chosen, chosen.basic)
    for path, value in found[CHOSEN_FRICTION].values.items():
        if path.endswith(STRIBECK_FIELD):
            model = paths.write(model, path, value)
    added = tuple(name for name in couplings(model) if name not in known)
    return ArmRegression(model, chosen, {name: without_speeds(estimate) for name, estimate in found.items()}, added)


def without_speeds(estimate: ArmEstimate) -> ArmEstimate:
    """The estimate without Stribeck velocities, which are chosen and not estimated."""
    known = {path for path in estimate.values if path.endswith(STRIBECK_FIELD)}
    mask = np.concatenate([np.full(np.size(v), path not in known) for path, v in estimate.values.items()])
    values = {path: v for path, v in estimate.values.items() if path not in known}
    return ArmEstimate(values, estimate.covariance[np.ix_(mask, mask)])
