"""Augmented Lagrangian for inequality constraints g(x) <= 0, with L-BFGS for each stage.

Each stage minimizes f(x) + sum (max(m + r g, 0)^2 - m^2) / (2 r n) over x, then updates the multipliers
m <- max(m + r g, 0) (Nocedal & Wright, chapter 17). n is the number of samples over which constraints are averaged.
Unlike a pure penalty, this meets the constraints at a finite stiffness r.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core import libraries
from truesim.core.typing import Float

LBFGS_MEMORY = 50
"""Number of steps from which L-BFGS approximates the curvature."""

LagrangianCost = Callable[[np.ndarray, np.ndarray, float], tuple[float, np.ndarray]]
"""Function of x, multipliers and stiffness that returns the augmented Lagrangian and its gradient by x."""


@dataclasses.dataclass(frozen=True)
class AugmentedPoint:
    """Variables and multipliers of an augmented Lagrangian."""

    x: Float[np.ndarray, "*variables"]
    multipliers: Float[np.ndarray, "*constraints"]
    cost: float = np.inf
    """Augmented Lagrangian at the end of the last stage."""


def constraint_terms(
    g: Float[np.ndarray, "samples constraints"], multipliers: Float[np.ndarray, "samples constraints"], stiffness: float
) -> tuple[float, Float[np.ndarray, "samples constraints"]]:
    """Constraint terms of the augmented Lagrangian, averaged over samples, and their derivative by g.

    Args:
        g: Constraint values, negative within the limits.
        multipliers: Multipliers, not negative.
        stiffness: Stiffness r.
    """
    force = np.maximum(multipliers + stiffness * g, 0.0)
    return float(np.sum(force**2 - multipliers**2)) / (2 * stiffness * len(g)), force / len(g)


def minimize_stage(
    cost: LagrangianCost,
    constraints: Callable[[np.ndarray], np.ndarray],
    point: AugmentedPoint,
    stiffness: float,
    *,
    iterations: int,
    metric: Float[np.ndarray, "n n"] | None = None,
) -> AugmentedPoint:
    """One stage: minimize over x by L-BFGS, then update the multipliers.

    Args:
        cost: Augmented Lagrangian and its gradient.
        constraints: Constraint values g at x.
        point: Start of the stage.
        stiffness: Stiffness r of the constraints.
        iterations: Maximum number of L-BFGS iterations.
        metric: Matrix M that preconditions the first axis of x: the minimization runs over z with x = M z.
    """
    shape, M = point.x.shape, np.eye(len(point.x)) if metric is None else metric

    def scaled_cost(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = cost(M @ z.reshape(shape), point.multipliers, stiffness)
        return value, (M.T @ gradient).ravel()

    with threadpool_limits(1):
        found = libraries.scipy.optimize.minimize(
            scaled_cost,
            np.linalg.solve(M, point.x).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": iterations, "maxcor": LBFGS_MEMORY},
        )
    x = M @ found.x.reshape(shape)
    multipliers = np.maximum(point.multipliers + stiffness * constraints(x), 0.0)
    return AugmentedPoint(x, multipliers, float(found.fun))


def range_multipliers(
    values: Float[np.ndarray, "*batch n"],
    multipliers: Float[np.ndarray, "*batch n"],
    stiffness: Float[np.ndarray, "*batch 1"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
) -> Float[np.ndarray, "*batch n"]:
    """Updated multipliers of `low <= value <= high`: r (y - clip(y, low, high)) with y = value + m / r.

    They are positive at the upper bound and negative at the lower one; equal bounds make an equality.
    """
    shifted = values + multipliers / stiffness
    return stiffness * (shifted - np.clip(shifted, low, high))
