"""Optimization of a motion: L-BFGS on spline coefficients, with limits in an augmented Lagrangian.

The augmented Lagrangian comes as close to the limits as is asked without becoming stiff; optimal motions are at their
limits most of the time.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.identification.excitation.criterion import CRITERIA
from truesim.identification.excitation.limits import Limits
from truesim.identification.excitation.sensitivity import MotionSensitivities, SensedMotion
from truesim.optimize.augmented_lagrangian import AugmentedPoint, constraint_terms, minimize_stage

LIMIT_RESERVE = 0.002
"""Fraction of each limit that is kept in reserve."""
STAGE_STIFFNESS = (60.0, 120.0, 240.0, 480.0, 240.0, 480.0, 960.0, 960.0)
"""Stiffness of the limits in each stage of the augmented Lagrangian."""
COARSE_STAGES = 4
"""Number of first stages on knots twice as far apart, which make fast progress."""
SLOW_CHANGE_WEIGHT = 2.0
"""Weight of lasting changes in the metric of the coefficients, relative to changes of single knots."""

DesignCallback = Callable[[int, float], None]
"""Called with the number of the stage and the cost after every evaluation."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Commands as a function of spline coefficients, and their information."""

    sensitivities: MotionSensitivities
    limits: Limits
    basis: Float[np.ndarray, "samples splines"]
    """Splines that start and end at zero."""
    rest: Float[np.ndarray, " nu"]
    """Controls that hold the robot at its start."""
    reach: Float[np.ndarray, " nu"]
    """Scale of the coefficients of each control."""
    information: Float[np.ndarray, " rows"]
    """Information of one sample of each measurement: inverse of its variance."""
    prior: Float[np.ndarray, "size size"]
    """Information before the experiment."""
    allowed_usage: Float[np.ndarray, " quantities"]
    """Fraction of each limit that may be used."""
    criterion: str = "intervals"

    def tighten(self, excess: Float[np.ndarray, " quantities"]) -> "Experiment":
        """Experiment with tighter limits where the exact simulation exceeds them by these fractions."""
        return dataclasses.replace(
            self, allowed_usage=self.allowed_usage - np.where(excess > 0, excess + LIMIT_RESERVE, 0.0)
        )

    def commands(self, coefficients: Float[np.ndarray, "splines nu"]) -> Float[np.ndarray, "samples nu"]:
        """Commands of these coefficients."""
        return self.rest + self.basis @ (coefficients * self.reach)

    def fisher(self, sensed: SensedMotion) -> Float[np.ndarray, "size size"]:
        """Information matrix after the experiment."""
        J = sensed.J.reshape(-1, sensed.J.shape[-1])
        weights = np.tile(self.information, len(sensed.J))
        return self.prior + (J * weights[:, None]).T @ J

    def excess(self, coefficients: Float[np.ndarray, "splines nu"]) -> Float[np.ndarray, "samples quantities"]:
        """Constraint values: usage of each limit minus its allowed usage; negative within the limits."""
        motion = self.sensitivities.motions(self.commands(coefficients)[None])[0]
        return np.abs(self.limits.usage(motion)) - self.allowed_usage

    def cost(
        self,
        coefficients: Float[np.ndarray, "splines nu"],
        multipliers: Float[np.ndarray, "samples quantities"],
        stiffness: float,
    ) -> tuple[float, np.ndarray]:
        """Augmented Lagrangian of criterion and limits, and its gradient by the coefficients."""
        commands = self.commands(coefficients)
        sensed = self.sensitivities.sense(commands)
        if not (np.isfinite(sensed.J).all() and np.isfinite(sensed.motion).all()):
            return 1e6, np.zeros_like(coefficients)
        score = CRITERIA[self.criterion](self.fisher(sensed))
        usage = self.limits.usage(sensed.motion)
        penalty, force = constraint_terms(np.abs(usage) - self.allowed_usage, multipliers, stiffness)
        pull = force * np.sign(usage) * self.limits.usage_gradient
        weights = 2 * (self.information[:, None] * sensed.J) @ score.gradient
        gradient = self.basis.T @ self.sensitivities.gradient(commands, weights, pull) * self.reach
        return score.value + penalty, gradient


def initial_point(experiment: Experiment, coefficients: Float[np.ndarray, "splines nu"]) -> AugmentedPoint:
    """Start with multipliers of zero."""
    return AugmentedPoint(coefficients, np.zeros((len(experiment.basis), len(experiment.limits.names))))


def optimize_motion(
    experiment: Experiment,
    starts: Sequence[Float[np.ndarray, "splines nu"]],
    finer: Experiment,
    iterations: int,
    callback: DesignCallback | None = None,
) -> AugmentedPoint:
    """Optimize a motion: all starts run the first stage, the best of them runs the others.

    Args:
        experiment: Experiment of the coarse stages.
        starts: Initial coefficients.
        finer: The same with knots half as far apart.
        iterations: Iterations of each stage.
        callback: Called with the number of the stage and the cost after every evaluation.
    """
    best = min(
        (run_stage(experiment, initial_point(experiment, x), 0, iterations, callback) for x in starts),
        key=lambda point: point.cost,
    )
    for stage in range(1, COARSE_STAGES):
        best = run_stage(experiment, best, stage, iterations, callback)
    move = experiment.commands(best.x) - experiment.rest
    best = dataclasses.replace(best, x=np.linalg.lstsq(finer.basis, move, rcond=None)[0] / finer.reach)
    for stage in range(COARSE_STAGES, len(STAGE_STIFFNESS)):
        best = run_stage(finer, best, stage, iterations, callback)
    return best


def run_stage(
    experiment: Experiment,
    point: AugmentedPoint,
    stage: int,
    iterations: int,
    callback: DesignCallback | None = None,
) -> AugmentedPoint:
    """One stage of the augmented Lagrangian.

    Args:
        experiment: The experiment.
        point: Start of the stage.
        stage: Number of the stage; the last may be repeated.
        iterations: Maximum number of iterations.
        callback: Called with the number of the stage and the cost after every evaluation.
    """

    def cost(x: np.ndarray, multipliers: np.ndarray, stiffness: float) -> tuple[float, np.ndarray]:
        value, gradient = experiment.cost(x, multipliers, stiffness)
        if callback is not None:
            callback(stage, value)
        return value, gradient

    metric = _coefficient_metric(len(point.x))
    return minimize_stage(cost, experiment.excess, point, STAGE_STIFFNESS[stage], iterations=iterations, metric=metric)


def _coefficient_metric(n: int) -> Float[np.ndarray, "n n"]:
    """Preconditioner of spline coefficients with which slow changes are as easy as fast ones.

    Sums of steps that return to zero reach distant postures easily; single coefficients reach them only if many move
    together. The preconditioner is the square root of the mean of both metrics.
    """
    steps = np.tril(np.ones((n, n))) - np.outer(np.arange(1, n + 1) / (n + 1), np.ones(n))
    metric = steps @ steps.T
    values, vectors = np.linalg.eigh(np.eye(n) + SLOW_CHANGE_WEIGHT * n / np.trace(metric) * metric)
    return vectors * np.sqrt(values) @ vectors.T
