"""Randomized parameters of a task as one vector of coordinates, from -1 to 1 over their distributions."""

import dataclasses
from collections.abc import Callable, Mapping

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array, Float
from truesim.physics.simulation import named_values
from truesim.policies.randomization import Distribution, expand
from truesim.policies.task import PolicyTask

DEVIATIONS = 2.0
"""Standard deviations of a normal distribution, or of samples, that stand for one unit."""
LATENCY = "latency"
"""Name of the coordinate of the delay of actions."""


@dataclasses.dataclass(frozen=True)
class CoordinateScale:
    """Map of a drawn number to a coordinate: `(f(x) - middle) / half`, where f is the identity or the logarithm."""

    name: str
    middle: np.ndarray
    half: np.ndarray
    is_logarithmic: bool = False

    def to_unit(self, x: Array) -> Array:
        """Coordinates, flat."""
        x = jnp.log(x) if self.is_logarithmic else jnp.asarray(x)
        return jnp.ravel((x - jnp.asarray(self.middle, x.dtype)) / jnp.asarray(self.half, x.dtype))

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """Drawn number of coordinates."""
        x = self.middle + self.half * np.reshape(unit, self.middle.shape)
        return np.exp(x) if self.is_logarithmic else x


class ParameterCoordinates:
    """Coordinates of what a task randomizes: parameters by path, and the delay of actions if it has a range.

    coordinates = ParameterCoordinates(task)
    told = coordinates(episode.parameters, latency)
    """

    def __init__(self, task: PolicyTask):
        """Read the ranges of a task's randomization."""
        self._scales = [_scale_of(task, path) for path in task.randomization.paths]
        low, high = task.latency
        self.has_latency = high > low
        if self.has_latency:
            self._scales.append(CoordinateScale(LATENCY, np.array((low + high) / 2), np.array((high - low) / 2)))
        if not self._scales:
            raise TruesimError(
                f"The task {task.name} randomizes nothing that a policy could be told; give it a randomization."
            )
        self._numbers = {path: _number_of(task, path) for path in task.randomization.paths}
        self._nominal = {p: of(_nominal_value(task, p)) for p, of in self._numbers.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each coordinate: the path, with an index for elements of vectors."""
        return tuple(
            scale.name if scale.middle.size == 1 else f"{scale.name}[{k}]"
            for scale in self._scales
            for k in range(scale.middle.size)
        )

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    @property
    def nominal(self) -> Float[np.ndarray, " size"]:
        """Coordinates of the simulator as it is, with the delay in the middle of its range."""
        return self.of_values({})

    def __call__(self, parameters: Mapping[str, Array], latency: Array) -> Float[Array, " size"]:
        """Coordinates of drawn numbers and of a delay [s]."""
        values = {**parameters, LATENCY: latency}
        return jnp.concatenate([scale.to_unit(values[scale.name]) for scale in self._scales])

    def of_values(self, values: Mapping[str, float], latency: float | None = None) -> Float[np.ndarray, " size"]:
        """Coordinates of a robot whose parameters are known, such as identified ones; others are nominal.

        Args:
            values: Values by path, in SI units.
            latency: Delay of actions [s]; the middle of its range by default.
        """
        for path in values:
            if path not in self._nominal:
                raise unknown_name("randomized parameter", path, self._nominal)
        numbers: dict[str, np.ndarray] = dict(self._nominal)
        numbers |= {path: self._numbers[path](np.asarray(value, float)) for path, value in values.items()}
        if self.has_latency:
            numbers[LATENCY] = self._scales[-1].middle if latency is None else np.asarray(latency, float)
        return np.concatenate([np.asarray(s.to_unit(numbers[s.name]), float) for s in self._scales])

    def parameters(self, unit: Float[np.ndarray, " size"]) -> dict[str, np.ndarray]:
        """Drawn numbers by path, and the `latency` [s], that coordinates stand for."""
        ends = np.cumsum([scale.middle.size for scale in self._scales])
        parts = np.split(np.asarray(unit, float), ends[:-1])
        return {scale.name: scale.from_unit(part) for scale, part in zip(self._scales, parts, strict=True)}


def _scale_of(task: PolicyTask, path: str) -> CoordinateScale:
    """Scale of the coordinates of a path."""
    randomization = task.randomization
    if path in randomization.samples:
        rows = np.asarray(randomization.samples[path], float)
        return CoordinateScale(path, rows.mean(0), DEVIATIONS * np.maximum(rows.std(0), 1e-9))
    shape = np.shape(named_values.read(task.simulator, expand(task.simulator, path)[0]))
    middle, half = _range_of(randomization.distributions[path])
    is_logarithmic = randomization.distributions[path].kind == "log_uniform"
    return CoordinateScale(path, np.full(shape, middle), np.full(shape, max(half, 1e-9)), is_logarithmic)


def _range_of(distribution: Distribution) -> tuple[float, float]:
    """Middle and half width of a distribution; of logarithms if they are uniform."""
    first, second = distribution.numbers[:2]
    if distribution.kind in ("normal", "truncated"):
        return first, DEVIATIONS * second
    if distribution.kind == "log_uniform":
        first, second = np.log(first), np.log(second)
    return (first + second) / 2, (second - first) / 2


def _nominal_value(task: PolicyTask, path: str) -> np.ndarray:
    """Value of the simulator as it is, of the first target of a path."""
    return np.asarray(named_values.read(task.simulator, expand(task.simulator, path)[0]), float)


def _number_of(task: PolicyTask, path: str) -> Callable[[np.ndarray], np.ndarray]:
    """Drawn number that stands for a value: the inverse of how randomization applies it."""
    randomization, nominal = task.randomization, _nominal_value(task, path)
    how = randomization.distributions[path].how if path in randomization.distributions else "set"
    return {"set": lambda x: x, "scale": lambda x: x / nominal, "add": lambda x: x - nominal}[how]
