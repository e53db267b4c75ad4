"""Small convex quadratic programs within bounds."""

import numpy as np

from truesim.core.typing import Bool, Float

ROUNDS = 10
"""Rounds for each unknown; every round fixes or releases one, and few are ever needed."""
PRECISION = 1e-12
"""Slopes smaller than this part of their summands are zero."""


def minimise_in_box(
    H: Float[np.ndarray, "n n"],
    g: Float[np.ndarray, "n"],
    low: Float[np.ndarray, "n"],
    high: Float[np.ndarray, "n"],
) -> Float[np.ndarray, "n"]:
    """The x in [low, high] that minimises x^T H x / 2 + g^T x, by the primal method of active sets.

    Unknowns at a bound are fixed, the others go to their minimum or to the first bound on the way. At a minimum the
    fixed unknown whose slope leads furthest down into the box is released. The objective falls from minimum to minimum,
    so that no set of fixed unknowns comes twice.

    Args:
        H: Positive definite.
        g: Gradient at zero.
        low: Lower bounds.
        high: Upper bounds.
    """
    x = np.clip(np.zeros_like(g), low, high)
    free = (x > low) & (x < high)
    for _ in range(ROUNDS * (len(g) + 1)):
        x, blocked = _towards_minimum(H, g, x, free, (low, high))
        if blocked is not None:
            free[blocked] = False
            continue
        slope = H @ x + g
        inward = np.where(free | (low == high), 0.0, np.where(x <= low, -slope, slope))
        if not np.any(inward > PRECISION * (np.abs(H) @ np.abs(x) + np.abs(g))):
            break
        free[np.argmax(inward)] = True
    return x


def _towards_minimum(
    H: np.ndarray, g: np.ndarray, x: np.ndarray, free: Bool[np.ndarray, "n"], bounds: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, int | None]:
    """The minimum over the free unknowns, or the first bound on the way to it, and which of them is there."""
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
