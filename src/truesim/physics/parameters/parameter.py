"""Parameter: one unknown, at one target or shared by several."""

import dataclasses
from typing import NamedTuple

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float, NumPyArray
from truesim.physics.model.targets import Target
from truesim.physics.parameters.transforms import AbstractTransform, Linear, Positive

REACH = 10.0
"""Ratio between bounds and the values that they make room for; larger gives wider bounds."""


class Prior(NamedTuple):
    """Gaussian prior of a value."""

    mean: Float[NumPyArray, "..."]
    std: Float[NumPyArray, "..."]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One unknown: targets, transform, start value and bounds, in SI units."""

    targets: tuple[Target, ...]
    """Targets of the value; several for a tie."""
    transform: AbstractTransform
    start: Float[NumPyArray, "..."]
    low: Float[NumPyArray, "..."]
    high: Float[NumPyArray, "..."]
    unit: str
    prior: Prior | None = None
    log: str | None = None
    """Name of its log, for a value that differs from log to log."""

    @property
    def name(self) -> str:
        """Path, followed by the log's name if it belongs to one."""
        return str(self.targets[0]) + (f"@{self.log}" if self.log else "")

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.transform.size

    def bounds(self) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
        """Bounds of the coordinates; infinite for transforms that keep a value valid by themselves."""
        if isinstance(self.transform, Linear | Positive):
            with np.errstate(divide="ignore"):
                return self.transform.coordinates(self.low), self.transform.coordinates(self.high)
        return np.full(self.size, -np.inf), np.full(self.size, np.inf)

    def with_bounds(self, low: float, high: float) -> "Parameter":
        """Parameter with other bounds [SI units]; the start must lie within them."""
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

    def reaching(self, size: float) -> "Parameter":
        """Parameter with a scale of at least this size, and bounds at least `REACH` times as wide [SI units]."""
        transform = self.transform
        if isinstance(transform, Positive) and size > 0:
            low, high = np.minimum(self.low, size / REACH), np.maximum(self.high, size * REACH)
            return dataclasses.replace(self, low=np.asarray(low), high=np.asarray(high))
        if not isinstance(transform, Linear):
            return self
        signed = np.any(self.low < 0) or self.targets[0].path.field == "stiction"
        low = np.minimum(self.low, -REACH * size) if signed else self.low
        scale = np.maximum(transform.scale, size)
        transform = Linear(scale if np.ndim(transform.scale) else float(scale), transform.shape)
        high = np.maximum(self.high, REACH * size)
        return dataclasses.replace(self, transform=transform, low=np.asarray(low), high=np.asarray(high))

    def with_prior(self, mean: float, std: float) -> "Parameter":
        """Parameter with a Gaussian prior [SI units]."""
        if not std > 0:
            raise TruesimError(f"The prior of {self.name} has standard deviation {std:g}; it must be positive.")
        shape = np.shape(self.start)
        return dataclasses.replace(self, prior=Prior(np.full(shape, mean), np.full(shape, std)))
