"""Searches of a few parameters on a real robot: each asks for one candidate and is told its noisy return.

    search = make_search("cma-es", start, low, high, seed=0)
    candidate = search.ask()
    search.tell(candidate, play(candidate))

All work on a box; `suggest` is the point that a search would choose by itself, which nobody has evaluated yet.
"""

import abc

import jax.numpy as jnp
import numpy as np

from truesim.core import libraries
from truesim.core.errors import unknown_name
from truesim.core.typing import Float
from truesim.policies.adaptation.episode_search import SearchState, hill_climbing
from truesim.policies.adaptation.gaussian_process import expected_improvement, fit_gaussian_process, maximize_on_cube

TEMPERATURE = 0.5
"""Temperature of advantage-weighted regression for standardized returns; smaller values trust the best returns more."""
INITIAL_STD = 0.25
"""Standard deviation of first candidates, as a fraction of the box."""
INITIAL_POINTS = 4
"""Random evaluations before a Gaussian process is fitted."""


class AbstractSearch(abc.ABC):
    """A search in the unit cube by `ask` and `tell`."""

    def __init__(self, start: Float[np.ndarray, " size"], rng: np.random.Generator):
        """Begin at a point of the unit cube."""
        self.start, self.rng = np.asarray(start, float), rng
        self.points: list[np.ndarray] = []
        self.values: list[float] = []

    @abc.abstractmethod
    def ask(self) -> Float[np.ndarray, " size"]:
        """The next candidate."""

    @abc.abstractmethod
    def suggest(self) -> Float[np.ndarray, " size"]:
        """The point that the search would end with."""

    def tell(self, point: Float[np.ndarray, " size"], value: float) -> None:
        """Take the return of a candidate."""
        self.points.append(np.asarray(point, float))
        self.values.append(float(value))


class AwrSearch(AbstractSearch):
    """Advantage-weighted regression of a normal distribution (Peng et al. 2020).

    `omega <- argmax sum_i exp((R_i - mean R) / temperature) log omega(z_i)`, the weighted mean and deviations.
    """

    def _distribution(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self.points) < INITIAL_POINTS:
            return self.start, np.full(len(self.start), INITIAL_STD)
        values = np.array(self.values)
        scaled = (values - values.mean()) / (values.std() + 1e-12)
        weights = np.exp((scaled - scaled.max()) / TEMPERATURE)
        points, weights = np.array(self.points), weights / weights.sum()
        mean = weights @ points
        # A share of the first deviation stays, as a prior of as many points as there are dimensions.
        share = len(self.start) / (len(self.start) + len(values))
        variance = (1 - share) * (weights @ (points - mean) ** 2) + share * INITIAL_STD**2
        return mean, np.sqrt(variance)

    def ask(self) -> Float[np.ndarray, " size"]:
        """A sample of the distribution."""
        mean, std = self._distribution()
        return np.clip(mean + std * self.rng.standard_normal(len(mean)), 0.0, 1.0)

    def suggest(self) -> Float[np.ndarray, " size"]:
        """The mean."""
        return self._distribution()[0]


class CmaEsSearch(AbstractSearch):
    """CMA-ES; a generation is complete after 4 + 3 ln(size) candidates."""

    def __init__(self, start: Float[np.ndarray, " size"], rng: np.random.Generator):
        """Begin at a point of the unit cube."""
        super().__init__(start, rng)
        bounds, seed = np.tile([0.0, 1.0], (len(self.start), 1)), int(rng.integers(2**31))
        if len(self.start) > 1:
            self._optimizer = libraries.cmaes.CMA(mean=self.start, sigma=INITIAL_STD, bounds=bounds, seed=seed)
        else:
            self._optimizer = libraries.cmaes.SepCMA(mean=self.start, sigma=INITIAL_STD, bounds=bounds, seed=seed)
        self._told: list[tuple[np.ndarray, float]] = []

    def ask(self) -> Float[np.ndarray, " size"]:
        """A candidate of this generation."""
        return self._optimizer.ask()

    def tell(self, point: Float[np.ndarray, " size"], value: float) -> None:
        """Take the return of a candidate."""
        super().tell(point, value)
        self._told.append((np.asarray(point, float), -value))
        if len(self._told) == self._optimizer.population_size:
            self._optimizer.tell(self._told)
            self._told = []

    def suggest(self) -> Float[np.ndarray, " size"]:
        """The mean of the distribution."""
        return np.clip(self._optimizer.mean, 0.0, 1.0)


class BayesianSearch(AbstractSearch):
    """Bayesian optimization: the largest expected improvement over the best posterior mean."""

    def ask(self) -> Float[np.ndarray, " size"]:
        """A random point at first, later that of the largest expected improvement."""
        size = len(self.start)
        if len(self.points) < INITIAL_POINTS:
            return np.clip(self.start + INITIAL_STD * self.rng.standard_normal(size), 0.0, 1.0)
        points = np.array(self.points)
        process = fit_gaussian_process(points, np.array(self.values))
        best = float(np.max(process.predict(points)[0]))
        return maximize_on_cube(lambda x: expected_improvement(process, x, best), size, self.rng, points)

    def suggest(self) -> Float[np.ndarray, " size"]:
        """The evaluated point of the largest posterior mean."""
        if len(self.points) < 2:
            return self.start
        points = np.array(self.points)
        return points[int(np.argmax(fit_gaussian_process(points, np.array(self.values)).predict(points)[0]))]


class HillClimbingSearch(AbstractSearch):
    """Batch hill climbing: rounds of four candidates, of which the first is the incumbent again."""

    def __init__(self, start: Float[np.ndarray, " size"], rng: np.random.Generator, sigma: float = 0.1, batch: int = 4):
        """Begin at a point of the unit cube."""
        super().__init__(start, rng)
        self._search, self._batch = hill_climbing(sigma, reevaluate=True), batch
        self._state = SearchState(np.asarray(start, float), np.asarray(-np.inf))
        self._round: list[np.ndarray] = []
        self._told: list[float] = []

    def ask(self) -> Float[np.ndarray, " size"]:
        """The next candidate of this round."""
        if not self._round:
            noise = self.rng.standard_normal((self._batch, len(self.start)))
            self._round = list(np.clip(np.asarray(self._search.ask(self._state, noise)), 0.0, 1.0))
        return self._round[len(self._told)]

    def tell(self, point: Float[np.ndarray, " size"], value: float) -> None:
        """Take the return of a candidate."""
        super().tell(point, value)
        self._told.append(value)
        if len(self._told) == len(self._round):
            state = self._search.tell(self._state, jnp.asarray(self._round), jnp.asarray(self._told))
            self._state, self._round, self._told = SearchState(*map(np.asarray, state)), [], []

    def suggest(self) -> Float[np.ndarray, " size"]:
        """The incumbent."""
        return np.asarray(self._state.incumbent)


class RandomSearch(AbstractSearch):
    """Uniform points, the control against which a search has to show its worth."""

    def ask(self) -> Float[np.ndarray, " size"]:
        """A random point."""
        return self.rng.random(len(self.start))

    def suggest(self) -> Float[np.ndarray, " size"]:
        """The point of the largest return."""
        return self.points[int(np.argmax(self.values))] if self.points else self.start


SEARCHES: dict[str, type[AbstractSearch]] = {
    "awr": AwrSearch,
    "cma-es": CmaEsSearch,
    "bayesian": BayesianSearch,
    "hill-climbing": HillClimbingSearch,
    "random": RandomSearch,
}
"""Searches by name."""


def make_search(method: str, start: Float[np.ndarray, " size"], seed: int = 0) -> AbstractSearch:
    """A search by its name, from a point of the unit cube."""
    if method not in SEARCHES:
        raise unknown_name("search", method, SEARCHES)
    return SEARCHES[method](np.asarray(start, float), np.random.default_rng(seed))
