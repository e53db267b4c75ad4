"""Masses from the motion: least squares with exact derivatives, in the logarithms of the masses."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import least_squares

from experiments.lcp_chain.scene import LINKS, RATE, SECONDS, STEPS, Bodies, law, motion, scene
from truesim import native
from truesim.core.typing import Array, Float

TRUTH = np.full(LINKS, 0.7)
HORIZONS = (2.5, 4.5, 6.5, SECONDS)
"""Parts of the motion that are compared one after the other [s]: late hits depend too abruptly on a wrong mass."""
ROUGHLY = 1e-2
"""Relative change at which all but the last of them end."""


class Found(NamedTuple):
    """Where a fit came to."""

    masses: Float[np.ndarray, "10"]
    trail: list[np.ndarray]
    """Masses at every evaluation of the motion and its derivatives."""
    losses: list[float]
    """Mean square of all angles and places there [rad^2, px^2]."""


class Chain:
    """The motion and its derivatives along directions in the masses, compiled; directions are lanes."""

    def __init__(self) -> None:
        model = scene()
        contact = law(model)

        def along(masses: Array, direction: Array) -> tuple[Bodies, Bodies]:
            return jax.jvp(lambda m: motion(model, contact, m), (masses,), (direction,))

        begin = time.process_time()
        with jax.enable_x64(True):
            self.kernel = native.compile(along, TRUTH, TRUTH)
        self.compile_seconds = time.process_time() - begin
        self.truth = self.motion(TRUTH)

    def motion(self, masses: Float[np.ndarray, "10"]) -> Bodies:
        """All bodies after every step."""
        return self.kernel(masses, np.zeros(LINKS))[0]

    def differentiate(
        self, masses: Float[np.ndarray, "10"], directions: Float[np.ndarray, "n 10"]
    ) -> tuple[Float[np.ndarray, "numbers"], Float[np.ndarray, "numbers n"]]:
        """Departures from the true motion, and their derivatives along directions."""
        motion, tangents = self.kernel(np.tile(masses, (len(directions), 1)), directions)
        departures = [(a[0] - b).ravel() for a, b in zip(motion, self.truth, strict=True)]
        columns = [t.reshape(len(directions), -1).T for t in tangents]
        return np.concatenate(departures), np.concatenate(columns)

    def seconds(self, directions: Float[np.ndarray, "n 10"], repeats: int = 10) -> float:
        """CPU time of one call of `differentiate` on one thread, the best of several [s]."""
        times = []
        for _ in range(repeats):
            begin = time.process_time()
            self.differentiate(TRUTH, directions)
            times.append(time.process_time() - begin)
        return min(times)


def fit(chain: Chain, masses_of: Callable[[np.ndarray], np.ndarray], start: Float[np.ndarray, "n"]) -> Found:
    """Numbers whose logarithms are searched from their start, on an ever longer part of the motion.

    Args:
        chain: The chain.
        masses_of: From the numbers to the ten masses, linear.
        start: The numbers to begin with.
    """
    rates = np.stack([masses_of(e) for e in np.eye(len(start))])
    trail: list[np.ndarray] = []
    losses: list[float] = []
    cache: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def evaluated(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = x.tobytes()
        if key not in cache:
            numbers = start * np.exp(x - 1)
            cache[key] = chain.differentiate(masses_of(numbers), rates * numbers[:, None])
            trail.append(masses_of(numbers))
            losses.append(float(np.mean(cache[key][0] ** 2)))
        return cache[key]

    x = np.ones(len(start))  # from where SciPy's first step may be of order one
    for seconds in HORIZONS:
        rows = np.tile(np.repeat(np.arange(STEPS) < seconds * RATE, LINKS + 1), 3)
        last = seconds == HORIZONS[-1]
        x = least_squares(
            lambda x, rows=rows: evaluated(x)[0][rows],
            x,
            lambda x, rows=rows: evaluated(x)[1][rows],
            xtol=1e-9 if last else ROUGHLY,
            ftol=1e-12 if last else ROUGHLY,
            max_nfev=60 if last else 12,
        ).x
    return Found(masses_of(start * np.exp(x - 1)), trail, losses)


def one_mass(chain: Chain, start: float) -> Found:
    """The total mass of ten equal links."""
    return fit(chain, lambda m: np.full(LINKS, m[0] / LINKS), np.array([start]))


def ten_masses(chain: Chain, start: Float[np.ndarray, "10"]) -> Found:
    """Every link's own mass."""
    return fit(chain, lambda m: m, start)
