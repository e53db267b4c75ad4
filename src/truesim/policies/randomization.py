"""Randomization: a distribution for each parameter by path, from which every episode draws its own robot.

Numbers are drawn for every episode by default; on request for every step, at intervals, or once for each element of a
batch. `randomization_files` reads the same from TOML.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import special

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array
from truesim.physics.model.targets import Target
from truesim.physics.simulation import Simulator, named_values
from truesim.policies.draws import Draws, normal_quantile

DRAWING_TIMES = ("episode", "step", "once")
"""Times at which numbers are drawn, besides intervals in seconds."""
HOW: dict[str, Callable[[Array, Array], Array]] = {
    "set": lambda nominal, number: number,
    "scale": lambda nominal, number: nominal * number,
    "add": lambda nominal, number: nominal + number,
}
"""Ways in which a drawn number acts on the nominal value."""


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Distribution of a number; elements of a vector are drawn independently."""

    kind: str
    """`uniform` and `log_uniform` (low, high), `normal` (mean, std), `truncated` (mean, std, low, high)."""
    numbers: tuple[float, ...]
    how: str = "set"
    """`set` the value, `scale` the nominal value by the number, or `add` the number to it."""
    every: str | float = "episode"
    """Drawn for every `episode`, for every `step`, `once`, or after this many seconds."""
    each: bool = False
    """True if every parameter of a pattern has its own number; else all share one."""

    def __post_init__(self) -> None:
        if isinstance(self.every, str) and self.every not in DRAWING_TIMES:
            raise unknown_name("time of drawing", self.every, (*DRAWING_TIMES, "a number of seconds"))
        if not isinstance(self.every, str) and not self.every > 0:
            raise TruesimError(f"Numbers are drawn after {self.every:g} s; give a positive time.")
        if self.kind not in DISTRIBUTIONS:
            raise unknown_name("distribution", self.kind, DISTRIBUTIONS)
        if self.how not in HOW:
            raise unknown_name("way of randomization", self.how, HOW)
        count, _ = DISTRIBUTIONS[self.kind]
        if len(self.numbers) != count:
            raise TruesimError(f"A {self.kind} distribution has {count} numbers; {self.numbers} has another count.")
        if self.kind in ("uniform", "log_uniform") and not self.numbers[0] <= self.numbers[1]:
            raise TruesimError(f"The range {self.numbers} of a {self.kind} distribution is empty.")
        if self.kind == "log_uniform" and not self.numbers[0] > 0:
            raise TruesimError(f"A log_uniform range begins above zero; this one is {self.numbers}.")
        if self.kind in ("normal", "truncated") and not self.numbers[1] >= 0:
            raise TruesimError(f"The standard deviation {self.numbers[1]:g} is negative.")
        if self.kind == "truncated" and not self.numbers[2] < self.numbers[3]:
            raise TruesimError(f"The range {self.numbers[2:]} of a truncated distribution is empty.")

    def sample(self, draw: Draws, shape: tuple[int, ...]) -> Array:
        """Drawn numbers."""
        return DISTRIBUTIONS[self.kind][1](draw, self.numbers, shape)


def _log_uniform(draw: Draws, numbers: Sequence[float], shape: tuple[int, ...]) -> Array:
    return jnp.exp(draw.uniform(np.log(numbers[0]), np.log(numbers[1]), shape))


def _truncated(draw: Draws, numbers: Sequence[float], shape: tuple[int, ...]) -> Array:
    mean, std, low, high = numbers
    if std == 0:
        return jnp.full(shape, min(max(mean, low), high))
    first, last = (float(special.ndtr((end - mean) / std)) for end in (low, high))
    return jnp.clip(mean + std * normal_quantile(draw.uniform(first, last, shape)), low, high)


DISTRIBUTIONS: dict[str, tuple[int, Callable[[Draws, Sequence[float], tuple[int, ...]], Array]]] = {
    "uniform": (2, lambda draw, numbers, shape: draw.uniform(numbers[0], numbers[1], shape)),
    "log_uniform": (2, _log_uniform),
    "normal": (2, lambda draw, numbers, shape: draw.normal(numbers[0], numbers[1], shape)),
    "truncated": (4, _truncated),
}
"""Distributions by name: how many numbers they have, and their samples."""


def uniform(low: float, high: float, how: str = "set") -> Distribution:
    """Uniform distribution."""
    return Distribution("uniform", (low, high), how)


def log_uniform(low: float, high: float, how: str = "set") -> Distribution:
    """Distribution whose logarithm is uniform."""
    return Distribution("log_uniform", (low, high), how)


def normal(mean: float, std: float, how: str = "set") -> Distribution:
    """Normal distribution."""
    return Distribution("normal", (mean, std), how)


def truncated(mean: float, std: float, low: float, high: float, how: str = "set") -> Distribution:
    """Normal distribution, restricted to a range."""
    return Distribution("truncated", (mean, std, low, high), how)


@dataclasses.dataclass(frozen=True)
class Randomization:
    """Parameters of every episode: independent distributions by path, and joint samples of several paths."""

    distributions: Mapping[str, Distribution] = dataclasses.field(default_factory=dict)
    """By path as in `simulator.replace`; a pattern, or several paths with commas between, share one drawn number."""
    samples: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Joint samples by path, one row each, such as of a posterior: an episode takes one row of all of them."""
    conditions: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Conditions of a task besides parameters, such as latency; `with_conditions` of the tasks applies them."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that are randomized."""
        return (*self.distributions, *self.samples)

    def check(self, simulator: Simulator) -> None:
        """Refuse paths that the simulator does not have, and samples of another shape."""
        lengths = {len(rows) for rows in self.samples.values()}
        if len(lengths) > 1:
            raise TruesimError(f"Joint samples have the same number of rows; these have {sorted(lengths)}.")
        both = set(self.distributions) & set(self.samples)
        if both:
            raise TruesimError(f"{min(both)} has both a distribution and samples.")
        for path in self.paths:
            shapes = {np.shape(named_values.read(simulator, target)) for target in expand(simulator, path)}
            if len(shapes) > 1:
                raise TruesimError(f"{path} stands for values of several shapes, {sorted(shapes)}; name them apart.")
            if path in self.samples and np.shape(self.samples[path])[1:] != min(shapes):
                raise TruesimError(
                    f"Samples of {path} have shape {np.shape(self.samples[path])[1:]}, the value has {min(shapes)}."
                )

    def expanded(self, simulator: Simulator) -> "Randomization":
        """The same with a distribution of its own for every parameter of patterns that have `each`."""
        if not any(distribution.each for distribution in self.distributions.values()):
            return self
        found: dict[str, Distribution] = {}
        for path, distribution in self.distributions.items():
            names = [str(target) for target in expand(simulator, path)] if distribution.each else [path]
            found |= {name: dataclasses.replace(distribution, each=False) for name in names}
        return dataclasses.replace(self, distributions=found)

    @property
    def changes_within_episodes(self) -> bool:
        """True if some number is drawn again before an episode ends."""
        return any(each.every not in ("episode", "once") for each in self.distributions.values())

    def sample(self, simulator: Simulator, draw: Draws, once: Draws | None = None) -> dict[str, Array]:
        """Drawn numbers of one episode by path.

        Args:
            simulator: The simulator, for the shapes of values.
            draw: Random numbers.
            once: Random numbers of what is drawn once; the same in all episodes of a stream.
        """
        drawn: dict[str, Array] = {}
        for path, distribution in self.distributions.items():
            source = once if distribution.every == "once" and once is not None else draw
            nominal = named_values.read(simulator, expand(simulator, path)[0])
            drawn[path] = distribution.sample(source, np.shape(nominal))
        if self.samples:
            count = len(next(iter(self.samples.values())))
            row = draw.integer(0, count - 1)
            drawn |= {path: jnp.asarray(rows, jnp.result_type(float))[row] for path, rows in self.samples.items()}
        return drawn

    def values(self, simulator: Simulator, drawn: Mapping[str, Array]) -> dict[str, Array]:
        """Values of all parameters that drawn numbers stand for, for `simulator.replace`."""
        values: dict[str, Array] = {}
        for path, number in drawn.items():
            how = self.distributions[path].how if path in self.distributions else "set"
            for target in expand(simulator, path):
                values[str(target)] = HOW[how](named_values.read(simulator, target), number)
        return values

    def merged(self, other: "Randomization") -> "Randomization":
        """This randomization with the paths of another, which take precedence."""
        kept = {p: d for p, d in self.distributions.items() if p not in other.paths}
        samples = self.samples if not other.samples else other.samples
        samples = {p: rows for p, rows in samples.items() if p not in other.distributions}
        conditions = {**self.conditions, **other.conditions}
        return Randomization({**kept, **other.distributions}, samples, conditions)


def expand(simulator: Simulator, path: str) -> list[Target]:
    """Targets of a path, of a pattern, or of several of them with commas between."""
    return [target for part in path.split(",") for target in named_values.expand(simulator, part.strip())]


def correlated(
    paths: Sequence[str], mean: Sequence[float], covariance: Any, *, count: int = 1000, seed: int = 0
) -> Randomization:
    """Randomization by a normal distribution of several parameters together.

    Args:
        paths: Path of each parameter.
        mean: Mean of each.
        covariance: Covariance matrix.
        count: Number of samples from which episodes draw.
        seed: Of the samples.
    """
    matrix = np.asarray(covariance, float)
    if matrix.shape != (len(paths), len(paths)) or len(mean) != len(paths):
        raise TruesimError(f"{len(paths)} paths need as many means and a covariance of {len(paths)} rows and columns.")
    if np.abs(matrix - matrix.T).max() > 1e-9 * np.abs(matrix).max() or np.linalg.eigvalsh(matrix).min() < 0:
        raise TruesimError("The covariance is not symmetric and positive semidefinite.")
    rows = np.random.default_rng(seed).multivariate_normal(np.asarray(mean, float), matrix, count, method="eigh")
    return Randomization(samples={path: rows[:, k] for k, path in enumerate(paths)})


def from_samples(samples: Mapping[str, Any], *, inflate: float = 1.0) -> Randomization:
    """Randomization by joint samples, such as `fit.posterior().sample(1000)`.

    Args:
        samples: Values by path, one row each.
        inflate: Factor on the deviations from the mean; 1 keeps the posterior.
    """
    rows = {path: np.asarray(values, float) for path, values in samples.items()}
    return Randomization(samples={p: x.mean(0) + inflate * (x - x.mean(0)) for p, x in rows.items()})


def from_posterior(fit: Any, *, inflate: float = 1.0, kind: str = "laplace", count: int = 1000) -> Randomization:
    """Randomization over what the logs of a fit leave possible.

    Args:
        fit: A `Fit`.
        inflate: Factor on the deviations from the mean.
        kind: `laplace`, `mixture` or `basins`, as in `fit.posterior`.
        count: Number of samples from which episodes draw.
    """
    return from_samples(fit.posterior(kind).sample(count), inflate=inflate)
