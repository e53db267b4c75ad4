"""Convex quadratic programs within bounds, for few unknowns."""

import numpy as np

from truesim.core.typing import Bool, Float

ROUNDS_PER_UNKNOWN = 10
"""Maximum number of rounds for each unknown; a round fixes or releases one unknown."""
GRADIENT_PRECISION = 1e-12
"""Gradients smaller than this fraction of their summands count as zero."""


def minimize_in_box(
    H: Float[np.ndarray, "n n"],
    g: Float[np.ndarray, " n"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Minimizer x in [low, high] of x^T H x / 2 + g^T x, by the primal active-set method.

    Unknowns at a bound are fixed; the others move to their minimum or to the first bound on the way. At such a minimum
    the fixed unknown with the steepest gradient into the box is released. The objective decreases from minimum to
    minimum, so that no active set repeats.

    Args:
        H: Positive definite.
        g: Gradient at zero.
        low: Lower bounds.
        high: Upper bounds.
    """
    x = np.clip(np.zeros_like(g), low, high)
    free = (x > low) & (x < high)
    for _ in range(ROUNDS_PER_UNKNOWN * (len(g) + 1)):
        x, blocked = _towards_minimum(H, g, x, free, (low, high))
        if blocked is not None:
            free[blocked] = False
            continue
        gradient = H @ x + g
        inward = np.where(free | (low == high), 0.0, np.where(x <= low, -gradient, gradient))
        if not np.any(inward > GRADIENT_PRECISION * (np.abs(H) @ np.abs(x) + np.abs(g))):
            break
        free[np.argmax(inward)] = True
    return x


def _towards_minimum(
    H: np.ndarray, g: np.ndarray, x: np.ndarray, free: Bool[np.ndarray, " n"], bounds: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, int | None]:
    """Minimum over the free unknowns, or the first bound on the way to it and the index of the unknown there."""
    low, high = bounds
    step = np.zeros_like(x)
    step[free] = -np.linalg.solve(H[np.ix_(free, free)], (H @ x + g)[free])
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, high - x, low - x) / step
    room = np.where(free & (step != 0), room, np.inf)
    first = int(np.argmin(room)) if len(room) else 0
    if not len(room) or room[first] >= 1:
        return np.clip(x + step, low, high), None
    x = np.clip(x + room[first] * step, low, high)
    x[first] = high[first] if step[first] > 0 else low[first]
    return x, first
