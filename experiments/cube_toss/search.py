"""CMA-ES over named numbers, the same for every simulator."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from cmaes import CMA

POPULATION = 12

Values = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Number:
    """One number to identify."""

    name: str
    start: float
    std: float
    """Standard deviation of the first candidates; of the logarithm for a ratio."""
    low: float
    high: float
    ratio: bool = False
    """True for a logarithmic scale."""

    def value(self, coordinate: float) -> float:
        """The number at a coordinate of order one."""
        value = self.start * np.exp(self.std * coordinate) if self.ratio else self.start + self.std * coordinate
        return float(np.clip(value, self.low, self.high))

    @property
    def bounds(self) -> tuple[float, float]:
        """Coordinates of the bounds."""
        ends = [np.log(x / self.start) if self.ratio else x - self.start for x in (self.low, self.high)]
        return ends[0] / self.std, ends[1] / self.std


def search(
    numbers: Sequence[Number], losses: Callable[[list[Values]], Sequence[float]], evaluations: int, seed: int = 0
) -> tuple[Values, float]:
    """The best candidate and its loss.

    Args:
        numbers: Numbers to optimize.
        losses: Loss of every candidate of a population.
        evaluations: Approximate number of candidates.
        seed: Seed of the candidates.
    """
    bounds = np.array([n.bounds for n in numbers])
    optimizer = CMA(np.zeros(len(numbers)), 1.0, bounds=bounds, seed=seed, population_size=POPULATION)
    best: tuple[Values, float] = ({}, np.inf)
    for _ in range(max(1, evaluations // POPULATION)):
        candidates = [optimizer.ask() for _ in range(POPULATION)]
        values = [{n.name: n.value(z) for n, z in zip(numbers, c, strict=True)} for c in candidates]
        found = [float(x) for x in losses(values)]
        optimizer.tell(list(zip(candidates, found, strict=True)))
        k = int(np.argmin(found))
        if found[k] < best[1]:
            best = (values[k], found[k])
    return best
