"""Gradient of the cost by all parameters, with initial states eliminated.

For few parameters it is the gradient of the normal equations after elimination of the initial states. For many network
weights it takes one reverse pass through all segments: after the Gauss-Newton step dx of the initial states x alone,
the residuals are r + J_x dx to first order, and the gradient of the remaining cost is J_theta^T (r + J_x dx), which
equals that of the eliminated normal equations.
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.normal_equations import (
    Point,
    ResidualWeights,
    huber_weights,
    linearize,
    normal_equations,
    scaled_defects,
    scaled_residual,
)
from truesim.identification.solve.prior import penalty
from truesim.optimize.bordered import Eliminated


class CostGradient(NamedTuple):
    """Cost and its gradient at a point."""

    cost: float
    gradient: Float[np.ndarray, " size"]
    """By all coordinates, with initial states eliminated."""
    system: Eliminated
    """Normal equations of the solved parameters, with initial states eliminated."""
    windows: Windows

    def state_steps(self, step: Float[np.ndarray, " size"]) -> Float[np.ndarray, "segments nx"]:
        """Steps of the initial states for a step of the solved parameters; steps of network weights are ignored."""
        return self.system.chains(step[: len(self.system.gradient)])[self.windows.window, self.windows.place]


def cost_gradient(
    problem: Problem, at: Point, weights: ResidualWeights, windows: Windows, damping: float = 0.0
) -> CostGradient:
    """Compute cost and gradient at a point.

    Args:
        problem: The problem.
        at: The point.
        weights: Standard deviations of residuals and defects.
        windows: Which segments are joined.
        damping: Marquardt damping of the initial states.
    """
    equations = normal_equations(problem, at, weights, windows)
    system = eliminate_states(equations, damping)
    found = CostGradient(equations.cost, system.gradient, system, windows)
    if not problem.trained.size:
        return found
    steps = found.state_steps(np.zeros_like(at.theta))
    return found._replace(gradient=reverse_gradient(problem, at, weights, windows, steps))


def reverse_gradient(
    problem: Problem, at: Point, weights: ResidualWeights, windows: Windows, steps: Float[np.ndarray, "segments nx"]
) -> Float[np.ndarray, " size"]:
    """Gradient by all coordinates after a step of the initial states, in reverse mode.

    Args:
        problem: The problem.
        at: The point.
        weights: Standard deviations of residuals and defects.
        windows: Which segments are joined.
        steps: Steps of the initial states.
    """
    nx = steps.shape[1]
    r = scaled_residual(problem, at, weights)
    w = huber_weights(r, weights.threshold)
    factor = np.where(problem.layout.valid, w / weights.noise, 0.0)
    remaining, ends = r * w, -np.roll(steps, -1, axis=0)
    finite = np.asarray(np.isfinite(at.simulated.residual).all(axis=(1, 2)))
    for tile in linearize(problem, at, weights, w):
        some = tile.segments
        finite[some] &= tile.finite
        remaining[some] += (tile.residual[..., -nx:] @ steps[some, :, None]).reshape(remaining[some].shape)
        ends[some] += (tile.state[..., -nx:] @ steps[some, :, None])[..., 0]
    inverse_std = np.where(windows.joined[:, None], 1 / weights.defect_std, 0.0)
    defects = scaled_defects(problem, at, weights, windows) + inverse_std * ends
    gradient = problem.gradient(at.theta, at.nodes, factor * remaining, inverse_std * defects, finite)
    return gradient + penalty(problem, at.theta)[1]
