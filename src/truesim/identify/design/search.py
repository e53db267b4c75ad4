"""The search for the best motion: quasi-Newton steps on the coefficients of splines, within limits.

Limits g(x) <= 0 are held by an augmented Lagrangian (Nocedal & Wright, chapter 17): each stage minimises
criterion + mean over samples of sum (max(m + r g, 0)^2 - m^2) / (2 r), then m <- max(m + r g, 0). Unlike a penalty
alone this comes as close to the limits as is asked without becoming stiff, and the best motions are at their limits
most of the time.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from truesim.core.typing import Float
from truesim.identify.design.criterion import CRITERIA
from truesim.identify.design.limits import Limits
from truesim.identify.design.sensitivity import Sensed, Sensitivities

SPARE = 0.002
"""Part of the limits that is kept in reserve."""
STIFFNESS = (60.0, 120.0, 240.0, 480.0, 240.0, 480.0, 960.0, 960.0)
"""Of the limits, r, stage by stage."""
COARSE = 4
"""Stages on knots twice as far apart, with which a search comes far in few iterations."""
MEMORY = 50
"""Steps of which the quasi-Newton method keeps the curvature."""
SLOW = 2.0
"""How much a change that lasts counts in the search's coordinates, beside one of a single knot."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Commands as a function of coefficients, and what they are worth."""

    sensitivities: Sensitivities
    limits: Limits
    basis: Float[np.ndarray, "samples splines"]
    """Splines, from rest to rest."""
    rest: Float[np.ndarray, "nu"]
    """Controls that hold the robot where it starts."""
    reach: Float[np.ndarray, "nu"]
    """Usual size of the coefficients of each control."""
    information: Float[np.ndarray, "rows"]
    """Of one sample of the design, for each reading: one over the variance, times the samples that it stands for."""
    prior: Float[np.ndarray, "size size"]
    """Information before the experiment."""
    full: Float[np.ndarray, "quantities"]
    """Part of each limit that may be used."""
    criterion: str = "intervals"

    def tighter(self, excess: Float[np.ndarray, "quantities"]) -> "Experiment":
        """The same with less use of the limits that the robot's own simulator passes, by parts of them."""
        return dataclasses.replace(self, full=self.full - np.where(excess > 0, excess + SPARE, 0.0))

    def commands(self, coefficients: Float[np.ndarray, "splines nu"]) -> Float[np.ndarray, "samples nu"]:
        """The commands."""
        return self.rest + self.basis @ (coefficients * self.reach)

    def fisher(self, sensed: Sensed) -> Float[np.ndarray, "size size"]:
        """Information after the experiment."""
        J = sensed.J.reshape(-1, sensed.J.shape[-1])
        weights = np.tile(self.information, len(sensed.J))
        return self.prior + (J * weights[:, None]).T @ J

    def beyond(self, coefficients: Float[np.ndarray, "splines nu"]) -> Float[np.ndarray, "samples quantities"]:
        """How far each limit is passed, in parts of it; negative within."""
        motion = self.sensitivities.motions(self.commands(coefficients)[None])[0]
        return np.abs(self.limits.usage(motion)) - self.full

    def cost(
        self,
        coefficients: Float[np.ndarray, "splines nu"],
        multipliers: Float[np.ndarray, "samples quantities"],
        stiffness: float,
    ) -> tuple[float, np.ndarray]:
        """The criterion with the terms of the limits, and its gradient."""
        commands = self.commands(coefficients)
        sensed = self.sensitivities.sensed(commands)
        if not (np.isfinite(sensed.J).all() and np.isfinite(sensed.motion).all()):
            return 1e6, np.zeros_like(coefficients)
        score = CRITERIA[self.criterion](self.fisher(sensed))
        usage = self.limits.usage(sensed.motion)
        force = np.maximum(multipliers + stiffness * (np.abs(usage) - self.full), 0.0)
        penalty = float(np.sum(force**2 - multipliers**2)) / (2 * stiffness * len(usage))
        pull = force / len(usage) * np.sign(usage) * self.limits.slope
        weights = 2 * (self.information[:, None] * sensed.J) @ score.slope
        slope = self.basis.T @ self.sensitivities.gradient(commands, weights, pull) * self.reach
        return score.value + penalty, slope


@dataclasses.dataclass(frozen=True)
class Point:
    """Where a search is."""

    coefficients: Float[np.ndarray, "splines nu"]
    multipliers: Float[np.ndarray, "samples quantities"]
    cost: float = np.inf

    @classmethod
    def at(cls, experiment: Experiment, coefficients: Float[np.ndarray, "splines nu"]) -> "Point":
        """A start, at which no limit pushes yet."""
        return cls(coefficients, np.zeros((len(experiment.basis), len(experiment.limits.names))))


def search(
    experiment: Experiment,
    starts: Sequence[Float[np.ndarray, "splines nu"]],
    finer: Experiment,
    iterations: int,
    seen: Callable[[int, float], None] | None = None,
) -> Point:
    """The best motion on the finer knots: every start gets the first stage, the best of them the others.

    Args:
        experiment: What is improved at first.
        starts: Coefficients to begin with.
        finer: The same with knots half as far apart.
        iterations: Of each stage.
        seen: Called with the number of the stage and every cost.
    """
    best = min(
        (improved(experiment, Point.at(experiment, x), 0, iterations, seen) for x in starts),
        key=lambda point: point.cost,
    )
    for stage in range(1, COARSE):
        best = improved(experiment, best, stage, iterations, seen)
    move = experiment.commands(best.coefficients) - experiment.rest
    best = dataclasses.replace(best, coefficients=np.linalg.lstsq(finer.basis, move, rcond=None)[0] / finer.reach)
    for stage in range(COARSE, len(STIFFNESS)):
        best = improved(finer, best, stage, iterations, seen)
    return best


def improved(
    experiment: Experiment,
    point: Point,
    stage: int,
    iterations: int,
    seen: Callable[[int, float], None] | None = None,
) -> Point:
    """One stage of the augmented Lagrangian.

    Args:
        experiment: What is improved.
        point: Where it begins.
        stage: Its number; the last may be repeated.
        iterations: At most.
        seen: Called with the number of the stage and every cost.
    """
    stiffness = STIFFNESS[stage]
    shape, to = point.coefficients.shape, _coordinates(len(point.coefficients))

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = experiment.cost(to @ x.reshape(shape), point.multipliers, stiffness)
        if seen is not None:
            seen(stage, value)
        return value, (to.T @ slope).ravel()

    first = np.linalg.solve(to, point.coefficients)
    options = {"maxiter": iterations, "maxcor": MEMORY}
    with threadpool_limits(1):
        found = minimize(cost, first.ravel(), jac=True, method="L-BFGS-B", options=options)
    coefficients = to @ found.x.reshape(shape)
    multipliers = np.maximum(point.multipliers + stiffness * experiment.beyond(coefficients), 0.0)
    return Point(coefficients, multipliers, float(found.fun))


def _coordinates(n: int) -> Float[np.ndarray, "n n"]:
    """Coefficients by the coordinates of the search, in which slow changes are not harder to make than fast ones.

    Coefficients that are sums of steps, which end where they began, reach far postures easily; the coefficients
    themselves do so only with many of them moving together. This is the square root of the mean of both metrics.
    """
    steps = np.tril(np.ones((n, n))) - np.outer(np.arange(1, n + 1) / (n + 1), np.ones(n))
    metric = steps @ steps.T
    values, vectors = np.linalg.eigh(np.eye(n) + SLOW * n / np.trace(metric) * metric)
    return vectors * np.sqrt(values) @ vectors.T
