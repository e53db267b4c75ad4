"""Masses from the motion: least squares with exact derivatives, in the logarithms of the masses."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import least_squares

from experiments.lcp_chain.scene import LINKS, RATE, SECONDS, STEPS, Bodies, motion, rigid_contact, scene
from truesim import native
from truesim.core.typing import Array, Float

TRUTH = np.full(LINKS, 0.7)
HORIZONS = (2.5, 4.5, 6.5, SECONDS)
"""Lengths of the motion that are compared one after the other [s]: late impacts are too sensitive to a wrong mass."""
CLOSE = 1e-4
"""Deviation of the total mass that counts as found."""
ROUGHLY = 1e-2
"""Relative tolerance of all but the last of them."""


class Found(NamedTuple):
    """Result of a fit."""

    masses: Float[np.ndarray, "10"]
    trail: list[np.ndarray]
    """Masses at every evaluation of the motion and its derivatives."""
    losses: list[float]
    """Mean square of all angles and places there [rad^2, px^2]."""


class Chain:
    """The motion and its directional derivatives in the masses, compiled; directions are batch elements."""

    def __init__(self) -> None:
        model = scene()
        contact = rigid_contact(model)

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
    ) -> tuple[Float[np.ndarray, " numbers"], Float[np.ndarray, "numbers n"]]:
        """Deviations from the true motion, and their derivatives along directions."""
        motion, tangents = self.kernel(np.tile(masses, (len(directions), 1)), directions)
        deviations = [(a[0] - b).ravel() for a, b in zip(motion, self.truth, strict=True)]
        columns = [t.reshape(len(directions), -1).T for t in tangents]
        return np.concatenate(deviations), np.concatenate(columns)

    def seconds(self, directions: Float[np.ndarray, "n 10"], repeats: int = 10) -> float:
        """CPU time of one call of `differentiate` on one thread, the best of several [s]."""
        times = []
        for _ in range(repeats):
            begin = time.process_time()
            self.differentiate(TRUTH, directions)
            times.append(time.process_time() - begin)
        return min(times)


def fit(chain: Chain, masses_of: Callable[[np.ndarray], np.ndarray], start: Float[np.ndarray, " n"]) -> Found:
    """Fit the logarithms of the numbers to parts of the motion of increasing length.

    Args:
        chain: The chain.
        masses_of: Linear function from the numbers to the ten masses.
        start: Start values.
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

    x = np.ones(len(start))  # SciPy scales its first step by the norm of x
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


def evaluations(found: Found) -> int | None:
    """Number of gradient evaluations until the total mass is found; None if it is not."""
    near = [k + 1 for k, masses in enumerate(found.trail) if abs(masses.sum() - TRUTH.sum()) < CLOSE]
    return near[0] if near else None
