"""Stamps that differ from the times at which samples were taken, found by the residuals of several rows.

A sample that is taken a time tau after its stamp is off by tau times the rate v of each row. Rows share tau, so that
the products of the residuals of two rows of a sample have the mean v_i v_j E[tau^2], to which the noise of their
sensors adds nothing. What is missing in a model is shared by rows as well, but is nearly the same in the next sample:
products with the next sample, to which independent tau add nothing, are subtracted.
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.shooting import SimulatedSegment

SIGNIFICANT_JITTER = 3.0
"""Standard deviations by which the products must exceed zero. Larger finds jitter less often."""
NOTABLE_SHARE = 0.1
"""Fraction of the squares of the residuals from which on jitter counts. Larger finds jitter less often."""
SHORTEST_INTERVAL = 1e-9
"""Interval below which no rate is computed [s]."""


class StampJitter(NamedTuple):
    """Difference between stamps and the times of samples."""

    std: float
    """Standard deviation [s]; zero if there is none."""
    share: float
    """Fraction of the squares of the residuals that it explains."""
    deviations: Float[np.ndarray, "segments intervals rows"]
    """Standard deviation of each residual that it causes, with the sign of the row's rate [the row's unit]."""

    @property
    def squares(self) -> Float[np.ndarray, "segments intervals rows"]:
        """Variance of each residual that it causes [the row's unit squared]."""
        return self.deviations**2


def stamp_jitter(problem: Problem, simulated: SimulatedSegment, noise: Float[np.ndarray, " rows"]) -> StampJitter:
    """Find the jitter of stamps in residuals.

    Args:
        problem: The problem.
        simulated: Its simulated segments.
        noise: Standard deviation of the residuals of each row.
    """
    valid = problem.layout.valid & np.isfinite(simulated.residual)
    r = np.where(valid, simulated.residual, 0.0)
    v = np.where(valid, _rates(problem, r), 0.0)
    here = r * v / noise**2
    excess = _across_rows(here, here)
    excess[:, :-1] -= _across_rows(here[:, :-1], here[:, 1:])
    excess[:, -1] = 0.0  # the next sample belongs to another segment
    scale = _across_rows((v / noise) ** 2, (v / noise) ** 2)[:, :-1].sum()
    total, deviation = excess.sum(), np.sqrt((excess**2).sum())
    if not total > SIGNIFICANT_JITTER * deviation or not scale > 0:
        return StampJitter(0.0, 0.0, np.zeros_like(r))
    std = float(np.sqrt(total / scale))
    share = min(1.0, float(((std * v / noise) ** 2).sum() / max(float((r**2 / noise**2).sum()), 1e-300)))
    if share < NOTABLE_SHARE:
        return StampJitter(0.0, 0.0, np.zeros_like(r))
    return StampJitter(std, share, std * v)


def _across_rows(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, "segments intervals"]:
    """Sum of the products of two different rows of each sample."""
    return a.sum(axis=-1) * b.sum(axis=-1) - (a * b).sum(axis=-1)


def _rates(problem: Problem, residual: np.ndarray) -> Float[np.ndarray, "segments intervals rows"]:
    """Rate of each simulated row; zero for rotations, whose measurements are no numbers."""
    measured = problem.measured_rows
    simulated = measured + residual
    interval = np.asarray(problem.layout.intervals.duration)[:, :-1, None]
    changes = np.where(interval > SHORTEST_INTERVAL, np.diff(simulated, axis=1), 0.0)
    changes = changes / np.maximum(interval, SHORTEST_INTERVAL)
    rates = np.empty_like(simulated)
    rates[:, 0], rates[:, -1] = changes[:, 0], changes[:, -1]
    rates[:, 1:-1] = (changes[:, 1:] + changes[:, :-1]) / 2
    return rates * measured.any(axis=(0, 1))
