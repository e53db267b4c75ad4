"""Rollouts of a batch on NumPy arrays, by the routines."""

import ctypes
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any

import mujoco
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.native.codegen.target import host
from truesim.native.loops.values import Precision
from truesim.native.runtime.addresses import data_address
from truesim.physics.routines.calls import FIRST_SLOTS, AdjointCall
from truesim.physics.routines.derivatives import CONTACT_NUMBERS, ForwardTransfer
from truesim.physics.routines.derive import derive
from truesim.physics.routines.layout import LAYOUT, PARAMETERS
from truesim.physics.routines.library import step_library
from truesim.physics.routines.mujoco_functions import collision_addresses
from truesim.physics.routines.rollout import Transfer
from truesim.physics.routines.shapes import FOREIGN
from truesim.physics.routines.tables import StepTables
from truesim.physics.routines.workspace import Changes, Workspace, aligned_zeros

_SLOT_ROWS = 10
"""Maximum number of rows of a contact."""
_SINGLE_LINE_TOLERANCE = 1e-8
"""Smallest tolerance of a line search in single precision; a smaller one repeats points that differ by rounding."""
_Routine = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5)


@dataclass(frozen=True)
class Rollout:
    """Motions of a batch."""

    qpos: np.ndarray
    """Positions after each step, shape (batch, steps, nq)."""
    qvel: np.ndarray
    """Velocities after each step, shape (batch, steps, nv)."""
    warmstart: np.ndarray
    """Constrained acceleration of each step, with which the solver of the next one starts, shape (batch, steps, nv)."""
    iterations: np.ndarray
    """Newton iterations of each step, shape (batch, steps)."""


@dataclass(frozen=True)
class Forward:
    """Accelerations and contacts of a batch at given states."""

    qacc: np.ndarray
    """Constrained acceleration, shape (batch, nv)."""
    qfrc_smooth: np.ndarray
    """Force of gravity, velocity, springs, dampers and actuators, shape (batch, nv)."""
    pair: np.ndarray
    """Pair of geoms of each contact, -1 where there is none, shape (batch, contacts)."""
    dist: np.ndarray
    """Distance of the surfaces, negative in penetration [m], shape (batch, contacts)."""
    pos: np.ndarray
    """Position of each contact [m], shape (batch, contacts, 3)."""
    frame: np.ndarray
    """Normal and two tangents, row by row, shape (batch, contacts, 3, 3)."""
    solutions: np.ndarray
    """`H^-1` times the right sides, shape (batch, right sides, nv)."""


class Engine:
    """A model, ready to be simulated.

    Args:
        tables: The model.
        mjmodel: The same model in MuJoCo; needed if some pair of geoms has no closed form here.
        dtype: float64 or float32.
        lanes: Instances of a tile; by default as many as a vector register holds, and one for a single instance.
    """

    def __init__(
        self,
        tables: StepTables,
        mjmodel: mujoco.MjModel | None = None,
        dtype: Any = np.float64,
        lanes: int | None = None,
    ):
        self.model, self.dtype = tables, np.dtype(dtype)
        self._compiled, self._adapts = mjmodel, lanes is None
        bits = self.dtype.itemsize * 8
        self.precision = Precision(bits, lanes or host().vector_bytes * 8 // bits)
        kinds = zip(
            *(tables.structure["geom_type"][tables.structure[n]].tolist() for n in ("pair_geom1", "pair_geom2")),
            strict=True,
        )
        addresses = collision_addresses() if mjmodel is not None and any(True for _ in kinds) else {}
        derived_sizes, derived = derive(tables, addresses)
        is_foreign = derived["pair_function"] == FOREIGN
        if np.any(is_foreign & (derived["pair_address"] == 0)):
            raise TruesimError("some pairs of geoms have no closed form here and need the compiled MuJoCo model")
        self.mjmodel = mjmodel if is_foreign.any() else None
        self.sizes = {**tables.sizes, **derived_sizes}
        self.tables_by_name = {**tables.structure, **derived}
        self.longest_chain = int(derived["chain_num"].max(initial=1))
        lengths = {name: prod(tables.shape(name)) for name in PARAMETERS}
        self.parameter_offsets, self.parameter_count = LAYOUT.offsets(LAYOUT.parameters, lengths)
        self._defaults = {name: np.asarray(tables.parameters[name], self.dtype) for name in PARAMETERS}
        if bits == 32:
            least = _SINGLE_LINE_TOLERANCE / np.maximum(self._defaults["tolerance"], np.finfo(np.float32).tiny)
            self._defaults["ls_tolerance"] = np.maximum(self._defaults["ls_tolerance"], least.astype(np.float32))
        self._spaces: list[Workspace] = []

    @cached_property
    def _single(self) -> "Engine":
        """Engine of one lane: a single instance would otherwise fill a whole tile."""
        return Engine(self.model, self._compiled, self.dtype, lanes=1)

    def capacities(self, slots: int) -> dict[str, int]:
        """Room for blocks, rows and entries of the Jacobian with so many contact slots."""
        s = self.sizes
        others = 6 * s["neq"] + 3 * s["ntendon"] + s["njnt"]
        rows = slots * (_SLOT_ROWS if s["cone"] == 0 else 6) + others
        blocks = slots + s["neq"] + 3 * s["ntendon"] + s["njnt"]
        return {
            "slot_capacity": slots,
            "block_capacity": blocks,
            "row_capacity": rows,
            "jacobian_capacity": rows * self.longest_chain,
        }

    @cached_property
    def default_parameters(self) -> np.ndarray:
        """Parameters of the model, one behind another."""
        parts = np.concatenate([self._defaults[name].ravel() for name in PARAMETERS])
        found = aligned_zeros(len(parts), parts.dtype)
        found[:] = parts
        return found

    @cached_property
    def _no_changes(self) -> Changes:
        return Changes(self, {}, {})

    def _changes(self, changes: Mapping[str, np.ndarray], batch: int) -> Changes:
        """Parameters that a call replaces; raises `TruesimError` for unknown names and wrong shapes."""
        if not changes:
            return self._no_changes
        values, strides = {}, {}
        for name, value in changes.items():
            if name not in PARAMETERS:
                raise unknown_name("parameter", name, PARAMETERS)
            array, shape = np.ascontiguousarray(value, self.dtype), self.model.shape(name)
            if array.shape not in (shape, (batch, *shape)):
                raise TruesimError(f"{name} has shape {array.shape}, but must have {shape} or {(batch, *shape)}")
            values[name], strides[name] = array, 0 if array.shape == shape else prod(shape)
        return Changes(self, values, strides)

    def rollout(
        self,
        qpos: np.ndarray,
        qvel: np.ndarray,
        warmstart: np.ndarray,
        ctrl: np.ndarray,
        threads: int = 1,
        parameters: Mapping[str, np.ndarray] | None = None,
    ) -> Rollout:
        """Simulate a batch from states (batch, nq), (batch, nv) under controls (batch, steps, nu).

        `parameters` replaces parameters by name, for all instances or with a leading batch axis.
        """
        ctrl = np.ascontiguousarray(ctrl, self.dtype)
        batch, nv = len(ctrl), self.sizes["nv"]
        states = [np.array(x, self.dtype, order="C") for x in (qpos, qvel, warmstart)]
        for name, x, width in zip(("qpos", "qvel", "warmstart"), states, (self.sizes["nq"], nv, nv), strict=True):
            if x.shape != (batch, width):
                raise TruesimError(f"{name} has shape {x.shape}, but must have {(batch, width)}")
        outputs = [np.empty((batch, ctrl.shape[1], self.sizes[n]), self.dtype) for n in ("nq", "nv", "nv")]
        iterations = np.empty((batch, ctrl.shape[1], 1), self.dtype)
        io = np.zeros(len(Transfer), np.int64)
        io[:8] = [data_address(a) for a in (*states, ctrl, *outputs, iterations)]
        io[[Transfer.BATCH, Transfer.STEPS]] = batch, ctrl.shape[1]
        self._for(batch).run("rollout", io, parameters or {}, threads)
        qpos_out, qvel_out, warmstart_out = outputs
        return Rollout(qpos_out, qvel_out, warmstart_out, iterations[..., 0].astype(np.int64))

    def forward(
        self,
        qpos: np.ndarray,
        qvel: np.ndarray,
        warmstart: np.ndarray,
        ctrl: np.ndarray,
        right_sides: np.ndarray | None = None,
        threads: int = 1,
        parameters: Mapping[str, np.ndarray] | None = None,
    ) -> Forward:
        """Accelerations and contacts at states (batch, ...); `right_sides` (batch, count, nv) are solved for."""
        batch, nv = len(qpos), self.sizes["nv"]
        if self._adapts and batch == 1:
            return self._single.forward(qpos, qvel, warmstart, ctrl, right_sides, threads, parameters)
        states = [np.array(x, self.dtype, order="C") for x in (qpos, qvel, warmstart, ctrl)]
        solutions = np.zeros((batch, 0, nv), self.dtype) if right_sides is None else right_sides
        capacity = FIRST_SLOTS
        while True:
            solved = np.array(solutions, self.dtype, order="C")
            qacc, smooth = (np.empty((batch, nv), self.dtype) for _ in range(2))
            contacts = np.full((batch, capacity, CONTACT_NUMBERS), -1, self.dtype)
            io = np.zeros(len(Transfer) + 2, np.int64)  # and two entries of `ForwardTransfer`
            io[:8] = [data_address(a) for a in (*states, qacc, smooth, contacts, solved)]
            io[ForwardTransfer.BATCH], io[ForwardTransfer.RIGHT_SIDE_COUNT] = batch, solved.shape[1]
            io[ForwardTransfer.CONTACT_CAPACITY] = capacity
            most = self.run("forward_batch", io, parameters or {}, threads)
            if most <= capacity:
                break
            capacity = most
        contacts = contacts[:, :most]
        pair, frame = contacts[..., 0].astype(np.int64), contacts[..., 5:].reshape(batch, most, 3, 3)
        return Forward(qacc, smooth, pair, contacts[..., 1], contacts[..., 2:5], frame, solved)

    def prepare_adjoint(self, states: Sequence[np.ndarray], cotangents: np.ndarray, steps: bool = False) -> AdjointCall:
        """Adjoint of a step on fixed arrays, contiguous and of the right type; with `steps`, the step is also taken."""
        return AdjointCall(self._for(len(states[0])), states, cotangents, steps)

    def _for(self, batch: int) -> "Engine":
        """Engine for a batch of this size."""
        return self._single if self._adapts and batch == 1 else self

    def run(self, name: str, io: np.ndarray, parameters: Mapping[str, np.ndarray], threads: int) -> int:
        """Call a routine on all tiles; returns the last entry of `io`, the largest of all threads."""
        lanes, batch = self.precision.lanes, int(io[Transfer.BATCH])
        changes = self._changes(parameters, batch)
        tiles = -(-batch // lanes)
        threads = max(1, min(threads, tiles))
        io[Transfer.CHANGE_COUNT], io[Transfer.CHANGES] = len(changes.rows), changes.address
        call = _routine(self.precision, changes.per_lane, name)

        def work(first: int, stop: int, io: np.ndarray) -> int:
            space, transfer = self._take(), data_address(io)
            io[Transfer.STOP] = stop
            while first < stop:
                io[Transfer.FIRST] = first
                first = call(
                    space.addresses[0], data_address(changes.parameters(space)), *space.addresses[1:], transfer
                )
                if first < stop:
                    space = Workspace(self, 2 * space.slots)
            self._spaces.append(space)
            return int(io[-1])

        if threads == 1:
            return work(0, batch, io)
        cuts = [min(batch, lanes * (tiles * i // threads)) for i in range(threads + 1)]
        return max(_pool(threads).map(work, cuts[:-1], cuts[1:], [io.copy() for _ in range(threads)]))

    def _take(self) -> Workspace:
        """A workspace that no other call uses: calls may come from several threads at once."""
        try:
            return self._spaces.pop()
        except IndexError:
            return Workspace(self, FIRST_SLOTS)


@cache
def _routine(precision: Precision, per_lane: bool, name: str) -> Any:
    """Routine as a callable."""
    return _Routine(step_library(precision, per_lane).address(name))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "routines")
