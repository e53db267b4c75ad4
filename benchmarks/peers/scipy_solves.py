"""Solves by a loop over `scipy.optimize.least_squares`, on our compiled residual and Jacobian."""

from collections.abc import Callable

import jax
import numpy as np
from scipy.optimize import least_squares

from benchmarks.timing import Measured, best_seconds
from benchmarks.two_links import problem, starts
from truesim import native
from truesim.core.typing import Float
from truesim.optimize import Residuals

INSIDE = 1e-9
"""Smallest distance of a start from the bounds; SciPy does not accept starts on a bound."""


def loop(objective: Residuals, grid: Float[np.ndarray, "starts size"]) -> Callable[[], None]:
    """A function that solves from all starts in a loop; one kernel call gives residual and Jacobian of a point."""
    f = objective.residual
    with jax.enable_x64(True):
        kernel = native.compile(lambda theta: (f(theta), jax.jacfwd(f)(theta)), objective.space.start)
    last: dict[str, np.ndarray] = {}

    def residual(theta: np.ndarray) -> np.ndarray:
        last["theta"], (last["r"], last["J"]) = theta.copy(), kernel(theta)
        return last["r"]

    def jacobian(theta: np.ndarray) -> np.ndarray:
        if not np.array_equal(theta, last["theta"]):
            residual(theta)
        return last["J"]

    bounds = objective.space.low, objective.space.high
    inside = np.clip(grid, bounds[0] + INSIDE, bounds[1] - INSIDE)

    def solves() -> None:
        for start in inside:
            least_squares(residual, start, jac=jacobian, bounds=bounds)

    return solves


def solve(patience: float) -> Measured:
    """Time per solve in a loop over a coarser grid."""
    grid = starts(14)
    return Measured(best_seconds(loop(problem(), grid), patience) / len(grid))


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {"solve": solve}
