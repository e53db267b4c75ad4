"""Adaptive noise of the filter: sensor noise and process noise, both estimated from the stream.

Unmodeled effects (cables, uneven friction, air) move the state away from its prediction, and the corrections of the
filter exceed their expected size. The mean excess of their squares over the squared gain is the variance that each
chunk adds to the state: the process noise, called drift. Correlated deviations bias parameters like a multiple of
independent ones, so that the drift is widened by (1 + rho) / (1 - rho), where rho is the correlation of successive
corrections. Only statistically significant excess and correlation count, so that a correct model gets no drift.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identification.online.filter_state import ChunkUpdate
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.noise import initial_defect_std, initial_noise
from truesim.identification.solve.options import SolveOptions

DEVIATION_MEMORY = 10.0
"""Time over which deviations are averaged [s]: longer is smoother and slower."""
SMALLEST_DRIFT = 0.01
"""Smallest drift of a chunk, as a fraction of the roughness of measured states."""
LARGEST_NOISE_FACTOR = 1.5
"""Largest ratio of the estimated noise to the sensors' own noise: the rest is drift."""
CORRECTION_CLIP = 4.0
"""Corrections are clipped at this many standard deviations."""
HIGHEST_CORRELATION = 0.95
"""Largest correlation of successive corrections."""
SMALLEST_GAIN = 0.1
"""Gains below this are treated as this large, since division by them amplifies noise."""
SIGNIFICANCE = 2.0
"""Number of standard deviations by which excess and correlation must differ from zero to count."""


@dataclasses.dataclass(frozen=True)
class Deviations:
    """Current estimates of noise and drift."""

    noise: Float[np.ndarray, " rows"]
    """Standard deviation of each row of the residual."""
    sensor_noise: Float[np.ndarray, " rows"]
    """Noise of the first measurements."""
    roughness: Float[np.ndarray, " nx"]
    """Roughness of the measured states."""
    excess: Float[np.ndarray, " nx"]
    """Mean excess of squared corrections over their expectation without drift."""
    square: Float[np.ndarray, " nx"]
    """Mean square of corrections divided by their gain."""
    product: Float[np.ndarray, " nx"]
    """Mean product of successive corrections."""
    last: Float[np.ndarray, " nx"]
    """Last correction."""
    count: float
    """Effective number of averaged chunks."""

    @classmethod
    def initial(cls, problem: Problem, noise: Float[np.ndarray, " rows"]) -> "Deviations":
        """Initial estimates, with the residual noise of a fit to the first measurements."""
        roughness, sensors = initial_defect_std(problem), initial_noise(problem)
        zero = np.zeros_like(roughness)
        return cls(noise, np.maximum(noise, sensors), roughness, roughness**2, zero, zero, zero, 0.0)

    @property
    def drift(self) -> Float[np.ndarray, " nx"]:
        """Standard deviation that a chunk adds to the state."""
        count = max(self.count, 1.0)
        variance = np.maximum(self.excess - SIGNIFICANCE * np.sqrt(2 / count) * self.square, 0.0)
        rho = self.product / np.maximum(self.square, 1e-300) - SIGNIFICANCE / np.sqrt(count)
        rho = np.clip(rho, 0.0, HIGHEST_CORRELATION)
        return np.maximum(np.sqrt(variance * (1 + rho) / (1 - rho)), SMALLEST_DRIFT * self.roughness)

    def reset_count(self) -> "Deviations":
        """Estimates that the next chunks replace quickly."""
        return dataclasses.replace(self, count=0.0)

    def update(
        self, learned: ChunkUpdate, seconds: float, drift: Float[np.ndarray, " nx"], *, fresh: bool = False
    ) -> "Deviations":
        """Estimates after one more chunk.

        Args:
            learned: Filter update of the chunk.
            seconds: Duration of the chunk [s].
            drift: Drift of the filter before the chunk.
            fresh: Whether the state was initialized from sensors instead of being predicted.
        """
        count = min(self.count + 1, DEVIATION_MEMORY / seconds)
        known = np.isfinite(learned.squares)
        square = np.where(known, learned.squares, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        share = np.where(known.any(axis=0), 1 / count, 0.0)
        noise = np.sqrt(self.noise**2 + share * (square - self.noise**2))
        noise = np.clip(noise, SolveOptions.noise_floor * self.sensor_noise, LARGEST_NOISE_FACTOR * self.sensor_noise)
        if fresh:
            return dataclasses.replace(self, noise=noise, last=np.zeros_like(self.last), count=count)
        gain = np.maximum(learned.gain, SMALLEST_GAIN)
        usual = learned.expected / gain
        c = np.clip(learned.correction / gain, -CORRECTION_CLIP * usual, CORRECTION_CLIP * usual)
        excess = c**2 - usual**2 + drift**2
        return dataclasses.replace(
            self,
            noise=noise,
            excess=self.excess + (excess - self.excess) / count,
            square=self.square + (c**2 - self.square) / count,
            product=self.product + (c * self.last - self.product) / count,
            last=c,
            count=count,
        )
