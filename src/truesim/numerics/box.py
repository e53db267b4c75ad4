"""Small convex quadratic programs within bounds."""

import numpy as np

from truesim.core.typing import Float

ROUNDS = 50


def minimise_in_box(
    H: Float[np.ndarray, "n n"],
    g: Float[np.ndarray, "n"],
    low: Float[np.ndarray, "n"],
    high: Float[np.ndarray, "n"],
) -> Float[np.ndarray, "n"]:
    """The x in [low, high] that minimises x^T H x / 2 + g^T x, by projected Newton steps.

    Args:
        H: Positive definite.
        g: Gradient at zero.
        low: Lower bounds, at most zero or above it.
        high: Upper bounds.
    """
    x = np.clip(np.zeros_like(g), low, high)
    for _ in range(ROUNDS):
        slope = H @ x + g
        free = ~(((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0)))
        if not np.any(np.abs(slope[free]) > 1e-12 * (1 + np.abs(g).max(initial=0.0))):
            break
        step = np.zeros_like(x)
        step[free] = -np.linalg.solve(H[np.ix_(free, free)], slope[free])
        x = _searched(H, g, x, step, (low, high))
    return x


def _searched(H: np.ndarray, g: np.ndarray, x: np.ndarray, step: np.ndarray, bounds: tuple) -> np.ndarray:
    """The projected step, shortened until the objective falls."""

    def objective(x: np.ndarray) -> float:
        return float(x @ H @ x / 2 + g @ x)

    here, length = objective(x), 1.0
    while length > 1e-8:
        trial = np.clip(x + length * step, *bounds)
        if objective(trial) <= here:
            return trial
        length /= 2
    return x
