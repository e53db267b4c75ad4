"""The same solves by a loop over `scipy.optimize.least_squares`."""

import time

import jax
import numpy as np
from scipy.optimize import least_squares

from truesim import native
from truesim.core.typing import Float
from truesim.identify.search import Residuals


def scipy_solves(objective: Residuals, starts: Float[np.ndarray, "starts size"]) -> float:
    """Solves a second; residual and Jacobian come from one compiled kernel, called once a point."""
    f = objective.residual
    with jax.enable_x64(True):
        kernel = native.compile(lambda theta: (f(theta), jax.jacfwd(f)(theta)), objective.box.start)
    last: dict[str, np.ndarray] = {}

    def residual(theta: np.ndarray) -> np.ndarray:
        last["r"], last["J"] = kernel(theta)
        last["theta"] = theta.copy()
        return last["r"]

    def jacobian(theta: np.ndarray) -> np.ndarray:
        if not np.array_equal(theta, last["theta"]):
            residual(theta)
        return last["J"]

    bounds = (objective.box.low, objective.box.high)
    inside = np.clip(starts, bounds[0] + 1e-9, bounds[1] - 1e-9)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        for start in inside:
            least_squares(residual, start, jac=jacobian, bounds=bounds)
        best = min(best, time.perf_counter() - begin)
    return len(starts) / best
