"""A parameter: one unknown of an identification, at one path or shared by several."""

import dataclasses
import re
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.model import paths
from truesim.model.model import Model
from truesim.parameters.transforms import AbstractTransform, Linear, Positive

ELEMENT = re.compile(r"^(?P<path>.*)\[(?P<element>\d+)\]$")


class Target(NamedTuple):
    """A number, or an array of numbers, in a model: `joints/elbow.damping`, `bodies/link2.com[2]`."""

    path: paths.Path
    element: int | None = None
    sign: int = 1
    """-1 where the model holds the negative of the parameter."""

    def __str__(self) -> str:
        return f"{'-' * (self.sign < 0)}{self.path}" + ("" if self.element is None else f"[{self.element}]")


class Prior(NamedTuple):
    """A Gaussian belief about a value, before any log is seen."""

    mean: Float[np.ndarray, "..."]
    std: Float[np.ndarray, "..."]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One unknown: where it is written, how it is searched and within which bounds, in SI units."""

    targets: tuple[Target, ...]
    """Where the value goes; several for a tie."""
    transform: AbstractTransform
    start: Float[np.ndarray, "..."]
    low: Float[np.ndarray, "..."]
    high: Float[np.ndarray, "..."]
    unit: str
    prior: Prior | None = None
    log: str | None = None
    """The log that it belongs to, for a value that differs from log to log."""

    @property
    def name(self) -> str:
        """The path, with the log's name where it belongs to one."""
        return str(self.targets[0]) + (f"@{self.log}" if self.log else "")

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.transform.size

    def bounds(self) -> tuple[Float[np.ndarray, "size"], Float[np.ndarray, "size"]]:
        """Bounds of the coordinates; infinite for transforms that keep a value valid by themselves."""
        if isinstance(self.transform, Linear | Positive):
            with np.errstate(divide="ignore"):
                return self.transform.coordinates(self.low), self.transform.coordinates(self.high)
        return np.full(self.size, -np.inf), np.full(self.size, np.inf)

    def with_bounds(self, low: float, high: float) -> "Parameter":
        """The same with other bounds [SI units]; the start must lie within them."""
        if not isinstance(self.transform, Linear | Positive):
            raise TruesimError(f"{self.name} stays valid by itself and takes no bounds.")
        if not low < high:
            raise TruesimError(f"The bounds {low:g}:{high:g} of {self.name} are empty; write LOW:HIGH.")
        if np.any(self.start < low) or np.any(self.start > high):
            raise TruesimError(f"{self.name} starts at {self.start} {self.unit}, outside of {low:g}:{high:g}.")
        transform = self.transform
        if isinstance(transform, Positive) and low <= 0:
            transform = Linear(float(self.start))
        shape = np.shape(self.start)
        return dataclasses.replace(self, transform=transform, low=np.full(shape, low), high=np.full(shape, high))

    def with_prior(self, mean: float, std: float) -> "Parameter":
        """The same with a Gaussian prior [SI units]."""
        if not std > 0:
            raise TruesimError(f"The prior of {self.name} has standard deviation {std:g}; it must be positive.")
        shape = np.shape(self.start)
        return dataclasses.replace(self, prior=Prior(np.full(shape, mean), np.full(shape, std)))


def target(model: Model, text: str) -> Target:
    """The target that `text` names: a path, with `[k]` for one element, with `-` in front for its negative."""
    sign = -1 if text.startswith("-") else 1
    text = text.removeprefix("-")
    match = ELEMENT.match(text)
    path = paths.parse(model, match["path"] if match else text)
    shape = np.shape(paths.read(model, path))
    if match is None:
        return Target(path, None, sign)
    element = int(match["element"])
    if len(shape) != 1 or element >= shape[0]:
        size = f"{shape[0]} elements, [0] to [{shape[0] - 1}]" if shape else "a single number"
        raise TruesimError(f"{path} is {size}; there is no {text}.")
    return Target(path, element, sign)


def read(model: Model, target: Target) -> Array:
    """The value at a target."""
    value = paths.read(model, target.path)
    return target.sign * (value if target.element is None else value[target.element])


def write(model: Model, target: Target, value: Any) -> Model:
    """The model with another value at a target."""
    value = target.sign * value
    if target.element is not None:
        value = jnp.asarray(paths.read(model, target.path)).at[target.element].set(value)
    return paths.write(model, target.path, value)
