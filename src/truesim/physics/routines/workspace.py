"""Memory of a thread that runs routines, and the parameters that a call replaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from truesim.native.runtime.addresses import data_address
from truesim.physics.routines.layout import INTEGERS, LAYOUT, WORK
from truesim.physics.routines.mujoco_functions import CollisionMemory
from truesim.physics.routines.rollout import Change

if TYPE_CHECKING:
    from truesim.physics.routines.engine import Engine


def aligned_zeros(count: int, dtype: Any) -> np.ndarray:
    """Zeros at an address that is a multiple of 64 bytes."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(count + 64 // size, dtype)
    start = (-raw.ctypes.data % 64) // size
    return raw[start : start + count]


class Workspace:
    """Memory of one thread: tables with the offsets of this size, workspaces, and parameters of a tile."""

    def __init__(self, engine: "Engine", slots: int):
        sizes = {**engine.sizes, **engine.capacities(slots)}
        lengths = {name: _length(shape, sizes) for name, shape in {**INTEGERS, **WORK}.items()}
        first_integers, integers = LAYOUT.offsets(LAYOUT.integers, lengths)
        first_work, work = LAYOUT.offsets(LAYOUT.work, lengths)
        first = {**engine.parameter_offsets, **first_integers, **first_work}
        self.slots, self.first = slots, first
        self.tables = LAYOUT.pack(sizes, engine.tables_by_name, first)
        self.integers = np.zeros(integers, np.int64)
        self.work = aligned_zeros(work * engine.precision.lanes, engine.dtype)
        self.addresses = [data_address(a) for a in (self.tables, self.integers, self.work)]
        self.lanes = engine.precision.lanes
        self._parameters: np.ndarray | None = None
        self._changed: frozenset[str] | None = None
        self._collision = CollisionMemory(engine.mjmodel) if engine.mjmodel is not None else None
        if self._collision:
            at = first["foreign_address"]
            self.integers[at : at + 5] = self._collision.addresses()

    def vectors(self, name: str, count: int) -> np.ndarray:
        """View of an array of the workspace, shape (count, lanes)."""
        at = self.first[name] * self.lanes
        return self.work[at : at + count * self.lanes].reshape(count, self.lanes)

    def numbers(self, name: str, count: int) -> np.ndarray:
        """View of an array of the integer workspace."""
        at = self.first[name]
        return self.integers[at : at + count]

    def tile_parameters(self, defaults: np.ndarray, changed: frozenset[str]) -> np.ndarray:
        """Parameters of a tile, one number per lane, with defaults where nothing is going to be changed."""
        if self._parameters is None:
            self._parameters = aligned_zeros(len(defaults) * self.lanes, defaults.dtype)
        if self._changed is None or not self._changed <= changed:  # some hold the values of an earlier call
            self._parameters.reshape(-1, self.lanes)[:] = defaults[:, None]
        self._changed = changed
        return self._parameters


def _length(shape: Any, sizes: Mapping[str, int]) -> int:
    parts = shape if isinstance(shape, tuple) else (shape,)
    return max(1, prod(sizes[n] if isinstance(n, str) else n for n in parts))


@dataclass
class Changes:
    """Parameters that one call replaces, for all instances or for each."""

    engine: "Engine"
    values: Mapping[str, np.ndarray]
    strides: Mapping[str, int]
    """Numbers between instances; zero if all share the values."""
    rows: np.ndarray = field(init=False)
    """Values that the routines gather for each tile, as `rollout.Change` describes them."""
    address: int = field(init=False)
    """Of the rows."""
    per_lane: bool = field(init=False)
    """True if parameters differ between instances."""

    def __post_init__(self) -> None:
        self.per_lane = any(self.strides.values())
        first = self.engine.parameter_offsets
        rows = [
            (first[name], self._length(name), value.ctypes.data, self.strides[name])
            for name, value in self.values.items()
        ]
        self.rows = np.array(rows, np.int64).reshape(-1, len(Change))
        self.address = data_address(self.rows)
        self._shared = None if self.per_lane else self._replaced()

    def _length(self, name: str) -> int:
        return prod(self.engine.model.shape(name))

    def _replaced(self) -> np.ndarray:
        """Parameters that all instances share."""
        defaults = self.engine.default_parameters
        if not self.values:
            return defaults
        shared = aligned_zeros(len(defaults), defaults.dtype)
        shared[:] = defaults
        for name, value in self.values.items():
            at = self.engine.parameter_offsets[name]
            shared[at : at + value.size] = value.ravel()
        return shared

    def parameters(self, space: Workspace) -> np.ndarray:
        """Buffer of parameters that the routines read, in the workspace where they differ between instances."""
        if self._shared is not None:
            return self._shared
        return space.tile_parameters(self.engine.default_parameters, frozenset(self.values))
