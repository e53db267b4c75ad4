"""Where solves begin: drawn by counter from a seed, so that no draw depends on what ran before it or where."""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.search.objective import Box

NEAREST = 5.0
"""The shortest hops are 2 to minus this power of the width of the bounds; the longest are the width."""


def first_start(box: Box, seed: int, chain: int) -> Float[np.ndarray, "size"]:
    """Where a chain begins: the first at the start of the box, the others anywhere in its region."""
    if chain == 0:
        return box.start.copy()
    return _generator(seed, chain, 0).uniform(*box.region)


def next_start(box: Box, seed: int, chain: int, hop: int, best: Float[np.ndarray, "size"]) -> Float[np.ndarray, "size"]:
    """A normal step from the best that the chain has found, reflected at the bounds; its size is drawn too.

    Args:
        box: The bounds.
        seed: Of the search.
        chain: Which chain.
        hop: Which of its solves.
        best: Coordinates of the best that the chain has found.
    """
    rng = _generator(seed, chain, hop)
    reach = 2.0 ** (-NEAREST * rng.uniform())
    return _reflected(best + reach * box.width * rng.normal(size=len(best)), box)


def _generator(seed: int, chain: int, hop: int) -> np.random.Generator:
    """The numbers of one draw (Philox: a counter, encrypted with the seed as its key)."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, hop, chain]))


def _reflected(theta: Float[np.ndarray, "size"], box: Box) -> Float[np.ndarray, "size"]:
    """The point folded back between the bounds."""
    bounded = np.isfinite(box.high - box.low)
    low, width = np.where(bounded, box.low, 0.0), np.where(bounded, box.high - box.low, 1.0)
    around = np.mod(theta - low, 2 * width)
    folded = low + np.where(around > width, 2 * width - around, around)
    return np.clip(np.where(bounded, folded, theta), box.low, box.high)
