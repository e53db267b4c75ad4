"""Starts of local solves, drawn by counter from a seed: no draw depends on earlier draws or on the machine."""

import numpy as np

from truesim.core.typing import Float
from truesim.optimize.objective import SearchSpace

HOP_OCTAVES = 5.0
"""Hop lengths are log-uniform between 2^-HOP_OCTAVES and 1 times the width of the region."""


def first_start(space: SearchSpace, seed: int, chain: int) -> Float[np.ndarray, " size"]:
    """First start of a chain: the start of the space for chain 0, a uniform draw from the region for the others."""
    if chain == 0:
        return space.start.copy()
    return _generator(seed, chain, 0).uniform(*space.region)


def next_start(
    space: SearchSpace, seed: int, chain: int, hop: int, best: Float[np.ndarray, " size"]
) -> Float[np.ndarray, " size"]:
    """Random step of random length from the best minimum of a chain, reflected at the bounds.

    Args:
        space: Bounds and region.
        seed: Seed of the search.
        chain: Number of the chain.
        hop: Number of the solve within the chain.
        best: Coordinates of the best minimum of the chain.
    """
    rng = _generator(seed, chain, hop)
    length = 2.0 ** (-HOP_OCTAVES * rng.uniform())
    return _reflect(best + length * space.width * rng.normal(size=len(best)), space)


def _generator(seed: int, chain: int, hop: int) -> np.random.Generator:
    """Generator of one draw (Philox: a counter encrypted with the seed as its key)."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, hop, chain]))


def _reflect(theta: Float[np.ndarray, " size"], space: SearchSpace) -> Float[np.ndarray, " size"]:
    """Fold a point back between the bounds."""
    bounded = np.isfinite(space.high - space.low)
    low, width = np.where(bounded, space.low, 0.0), np.where(bounded, space.high - space.low, 1.0)
    around = np.mod(theta - low, 2 * width)
    folded = low + np.where(around > width, 2 * width - around, around)
    return np.clip(np.where(bounded, folded, theta), space.low, space.high)
