"""Departures from the model: noise of the sensors, and what the model leaves out, both learned from the stream.

What the model leaves out (cables, uneven friction, air) moves the state away from its prediction. The filter then has
to correct the state by more than it had expected; the mean excess of the squares, over the square of the filter's gain,
is the variance that each chunk adds to the state, its drift. Departures that go on for several chunks speak as loudly
for other parameters as a multiple of independent ones, so that the drift is widened by (1 + rho) / (1 - rho), where rho
is the correlation of one correction with the next. Both count only as far as they are significant, so that a model that
is right is believed to be.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identify.fit import FLOOR
from truesim.identify.noise import first_allowance, first_noise
from truesim.identify.online.belief import Learned
from truesim.identify.problem import Problem

SECONDS = 10.0
"""Time over which departures are averaged [s]."""
LEAST = 0.01
"""Drift in each chunk, over the roughness of the states that sensors show, at least."""
CEILING = 1.5
"""Noise is not taken to be larger than the sensors' own by more than this factor: what is more is drift."""
WILD = 4.0
"""Corrections beyond this many standard deviations say nothing of the usual ones."""
LONGEST = 0.95
"""Highest correlation of a correction with the next."""
FAINT = 0.1
"""Departures of which a chunk corrects less are seen as if it corrected this part."""
SIGNIFICANT = 2.0
"""What counts is what exceeds its standard deviation by this factor."""


@dataclasses.dataclass(frozen=True)
class Departures:
    """Noise and drift as they are known now."""

    noise: Float[np.ndarray, "rows"]
    """Standard deviation of each row of the residual."""
    sensor_noise: Float[np.ndarray, "rows"]
    """The same as the first readings showed it."""
    roughness: Float[np.ndarray, "nx"]
    """Of the states that sensors show."""
    excess: Float[np.ndarray, "nx"]
    """Mean by which the squares of corrections exceed what they would be without drift."""
    square: Float[np.ndarray, "nx"]
    """Mean square of corrections over their gain."""
    product: Float[np.ndarray, "nx"]
    """Mean product of one correction with the next."""
    last: Float[np.ndarray, "nx"]
    """The last one."""
    count: float
    """Chunks that the averages stand for."""

    @classmethod
    def at_first(cls, problem: Problem, noise: Float[np.ndarray, "rows"]) -> "Departures":
        """Before anything is learned, with the noise that a fit to the first readings left."""
        roughness, sensors = first_allowance(problem), first_noise(problem)
        zero = np.zeros_like(roughness)
        return cls(noise, np.maximum(noise, sensors), roughness, roughness**2, zero, zero, zero, 0.0)

    @property
    def drift(self) -> Float[np.ndarray, "nx"]:
        """Standard deviation that a chunk adds to the state."""
        count = max(self.count, 1.0)
        variance = np.maximum(self.excess - SIGNIFICANT * np.sqrt(2 / count) * self.square, 0.0)
        rho = self.product / np.maximum(self.square, 1e-300) - SIGNIFICANT / np.sqrt(count)
        rho = np.clip(rho, 0.0, LONGEST)
        return np.maximum(np.sqrt(variance * (1 + rho) / (1 - rho)), LEAST * self.roughness)

    def forgetful(self) -> "Departures":
        """The same, ready to be replaced by what comes next."""
        return dataclasses.replace(self, count=0.0)

    def after(
        self, learned: Learned, seconds: float, drift: Float[np.ndarray, "nx"], *, fresh: bool = False
    ) -> "Departures":
        """What is known after one more chunk.

        Args:
            learned: What the chunk taught.
            seconds: Its length [s].
            drift: The drift that the belief before it had.
            fresh: Whether its state was not believed before, but read from sensors.
        """
        count = min(self.count + 1, SECONDS / seconds)
        known = np.isfinite(learned.squares)
        square = np.where(known, learned.squares, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        share = np.where(known.any(axis=0), 1 / count, 0.0)
        noise = np.sqrt(self.noise**2 + share * (square - self.noise**2))
        noise = np.clip(noise, FLOOR * self.sensor_noise, CEILING * self.sensor_noise)
        if fresh:
            return dataclasses.replace(self, noise=noise, last=np.zeros_like(self.last), count=count)
        gain = np.maximum(learned.gain, FAINT)
        usual = learned.expected / gain
        c = np.clip(learned.correction / gain, -WILD * usual, WILD * usual)
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
