"""The gradient of the cost by all parameters, first states following.

Few parameters have their derivatives one by one, and the normal equations with first states eliminated hold the
gradient. Many weights have it by one pass backwards through all stretches, whatever their number: at the best first
states nearby the residuals are r + J_x dx, to first order, with dx the Gauss-Newton step of the first states x alone.
The gradient of the cost that is left is J_theta^T (r + J_x dx), which is the same number.
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.identify.beliefs import penalty
from truesim.identify.layout import Windows
from truesim.identify.levenberg_marquardt import reduced
from truesim.identify.normal import Point, Weights, huber_weights, normal, scaled_jumps, scaled_residual
from truesim.identify.problem import Problem
from truesim.numerics.bordered import Eliminated


class Slope(NamedTuple):
    """How the cost falls from a point."""

    cost: float
    gradient: Float[np.ndarray, "size"]
    """By all coordinates, first states following."""
    system: Eliminated
    """The normal equations of the solved parameters, first states eliminated."""
    windows: Windows

    def moves(self, step: Float[np.ndarray, "size"]) -> Float[np.ndarray, "stretches nx"]:
        """From the first states to the best ones nearby after a step, of which many weights' part is not foreseen."""
        return self.system.chains(step[: len(self.system.gradient)])[self.windows.window, self.windows.place]


def slope(problem: Problem, at: Point, weights: Weights, windows: Windows, damping: float = 0.0) -> Slope:
    """The gradient at a point.

    Args:
        problem: The problem.
        at: Where.
        weights: Noise and allowances.
        windows: Which stretches are joined.
        damping: Marquardt's, of the first states.
    """
    equations = normal(problem, at, weights, windows)
    system = reduced(equations, damping)
    found = Slope(equations.cost, system.gradient, system, windows)
    if not problem.trained.size:
        return found
    moves = found.moves(np.zeros_like(at.theta))
    return found._replace(gradient=backwards(problem, at, weights, windows, moves))


def backwards(
    problem: Problem, at: Point, weights: Weights, windows: Windows, moves: Float[np.ndarray, "stretches nx"]
) -> Float[np.ndarray, "size"]:
    """The gradient by all coordinates once first states have moved, in reverse mode.

    Args:
        problem: The problem.
        at: Where.
        weights: Noise and allowances.
        windows: Which stretches are joined.
        moves: Of the first states.
    """
    nx = moves.shape[1]
    finite = np.isfinite(at.sensitivity.state).all(axis=(1, 2)) & np.isfinite(at.shot.residual).all(axis=(1, 2))
    J, X = (np.where(np.isfinite(d), d, 0.0)[..., -nx:] for d in at.sensitivity)
    r = scaled_residual(problem, at, weights)
    w = huber_weights(r, weights.threshold)
    factor = np.where(problem.layout.valid, w / weights.noise, 0.0)
    left = r * w + factor * np.einsum("sira,sa->sir", J, moves)
    allowed = np.where(windows.joined[:, None], 1 / weights.allowance, 0.0)
    ends = np.einsum("sab,sb->sa", X, moves) - np.roll(moves, -1, axis=0)
    jumps = scaled_jumps(problem, at, weights, windows) + allowed * ends
    gradient = problem.pull(at.theta, at.nodes, factor * left, allowed * jumps, finite)
    return gradient + penalty(problem, at.theta)[1]
