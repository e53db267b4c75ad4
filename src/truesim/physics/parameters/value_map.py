"""Values of a set of parameters and their derivatives by the coordinates, for batches of NumPy arrays.

Compiled functions take physical values, so that one of them serves any start and any transform. This map leads from
coordinates to values before a call, and multiplies derivatives by values with dvalue/dcoordinate after it.
"""

import functools
from collections.abc import Iterator

import numpy as np

from truesim.core.typing import Float, Int
from truesim.physics.parameters.parameter_set import ParameterSet
from truesim.physics.parameters.transforms import AbstractTransform, Linear, Positive


class ValueMap:
    """Map from coordinates to values: elementwise for most parameters, small dense blocks for the others."""

    def __init__(self, parameters: ParameterSet):
        """Map of a set of parameters.

        Args:
            parameters: Parameters; their order is that of coordinates and values.
        """
        self._parameters = parameters
        self.size = parameters.size
        self.numbers = sum(np.size(p.start) for p in parameters)

    def values(self, theta: Float[np.ndarray, "*batch size"]) -> Float[np.ndarray, "*batch numbers"]:
        """Physical values as one vector [SI units]."""
        out = np.empty((*theta.shape[:-1], self.numbers))
        at, to, scale, positive = self._elementwise
        x = theta[..., at]
        out[..., to] = scale * np.where(positive, np.exp(np.where(positive, x, 0.0)), x)
        for transform, at_block, to_block in self._blocks:
            out[..., to_block] = transform.linearize(theta[..., at_block])[0]
        return out

    def jacobian(self, theta: Float[np.ndarray, "*batch size"]) -> Float[np.ndarray, "*batch numbers size"]:
        """Derivatives of the values by the coordinates."""
        out = np.zeros((*theta.shape[:-1], self.numbers, self.size))
        at, to, *_ = self._elementwise
        out[..., to, at] = self._scales(theta)
        for at_block, to_block, J in self._dense(theta):
            out[..., to_block, at_block] = J
        return out

    def chain(
        self, theta: Float[np.ndarray, "*batch size"], columns: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """Derivatives by coordinates from those by values; further columns are kept. The array may be reused.

        Args:
            theta: Coordinates.
            columns: Batch axes, then any others; along the last, one column for each value, then further columns.
        """
        at, to, *_ = self._elementwise
        rows = (slice(None),) * (theta.ndim - 1) + (None,) * (columns.ndim - theta.ndim)
        scales = self._scales(theta)[rows]
        if not self._blocks:
            columns[..., : self.numbers] *= scales
            return columns
        out = np.empty((*columns.shape[:-1], columns.shape[-1] - self.numbers + self.size))
        out[..., self.size :] = columns[..., self.numbers :]
        out[..., at] = columns[..., to] * scales
        for at_block, to_block, J in self._dense(theta):
            own = columns[..., to_block].reshape(*theta.shape[:-1], -1, J.shape[-2])
            out[..., at_block] = (own @ J).reshape(*columns.shape[:-1], J.shape[-1])
        return out

    @functools.cached_property
    def _places(self) -> list[tuple[AbstractTransform, slice, slice]]:
        """Transform of each parameter, and its places among coordinates and values."""
        sets = self._parameters
        return [(p.transform, at, to) for p, at, to in zip(sets, sets.slices(), sets.number_slices(), strict=True)]

    @functools.cached_property
    def _blocks(self) -> list[tuple[AbstractTransform, slice, slice]]:
        """Parameters whose numbers depend on several coordinates."""
        return [place for place in self._places if not isinstance(place[0], Linear | Positive)]

    @functools.cached_property
    def _elementwise(self) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"], np.ndarray, np.ndarray]:
        """Places among coordinates and values of elementwise parameters, their scales, and which are exponential."""
        at: list[int] = []
        to: list[int] = []
        scale: list[float] = []
        positive: list[bool] = []
        for transform, at_slice, to_slice in self._places:
            if isinstance(transform, Linear | Positive):
                at += range(at_slice.start, at_slice.stop)
                to += range(to_slice.start, to_slice.stop)
                positive += [isinstance(transform, Positive)] * transform.size
                scale += _scales_of(transform)
        return np.array(at, int), np.array(to, int), np.array(scale, float), np.array(positive, bool)

    def _scales(self, theta: np.ndarray) -> np.ndarray:
        """Derivatives of the elementwise values by their coordinates."""
        at, _, scale, positive = self._elementwise
        x = theta[..., at]
        return scale * np.where(positive, np.exp(np.where(positive, x, 0.0)), 1.0)

    def _dense(self, theta: np.ndarray) -> Iterator[tuple[slice, slice, np.ndarray]]:
        for transform, at, to in self._blocks:
            yield at, to, transform.linearize(theta[..., at])[1]


def _scales_of(transform: Linear | Positive) -> list[float]:
    if isinstance(transform, Positive):
        return [transform.reference]
    return np.broadcast_to(transform.scale, transform.shape).ravel().tolist()
