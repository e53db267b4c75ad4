"""Derivatives of steps by the routines for a batch, on NumPy arrays: pullbacks along a motion, and step Jacobians."""

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.physics.routines.adjoint import IDLE_SLOT, SlotNumber
from truesim.physics.routines.engine import Adjoint, Engine
from truesim.physics.routines.layout import RK4
from truesim.physics.simulation.displacements import Displacements
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.stage_derivatives import PullAcceleration, Pulled, Stages
from truesim.physics.simulation.step_adjoint import (
    OF_SLOTS,
    WITHOUT_DERIVATIVE,
    StepNumbers,
    compile_pullback_of_step,
    slot_columns,
)

FEWEST_SLOTS = 4
"""Contact slots of the smallest kernel, others have twice as many; larger compiles fewer kernels, with idle slots."""
ROWS_AT_ONCE = 4096
"""Rows of step Jacobians that one call of the kernel computes; larger leaves the processor's cache."""
ALONG = "along"
"""Name of the derivatives along given directions of the tables."""
Tables = Mapping[str, np.ndarray]
"""Parameters of the routines by name, with or without a batch axis."""


@dataclass(frozen=True)
class Cotangents:
    """Cotangents of the inputs of a step."""

    displacement: np.ndarray
    """Of the configuration, in its tangent space, shape (batch, nv)."""
    velocity: np.ndarray
    control: np.ndarray
    tables: dict[str, np.ndarray]


@dataclass
class StepDerivatives:
    """Derivatives of the steps of one engine."""

    engine: Engine
    simulator: Simulator
    space: Displacements = field(init=False)
    _kernels: dict[Any, native.Kernel] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.space = Displacements.of(self.engine.model)

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def pull(
        self,
        states: Sequence[np.ndarray],
        after: np.ndarray,
        cotangents: tuple[np.ndarray, np.ndarray],
        tables: Tables,
        moving: tuple[str, ...],
        threads: int,
    ) -> Cotangents:
        """Cotangents of the inputs of a step from those of the state after it.

        Args:
            states: `(q, v, acceleration, control)` before the step; the solver starts at the acceleration.
            after: Velocity after the step.
            cotangents: Of displacement and velocity after the step.
            tables: Parameters that differ from the engine's.
            moving: Names of those to differentiate by.
            threads: Number of threads.
        """
        h = self._timestep(tables)
        if self._has_stages:
            pulled = self._stages(states, tables, threads).pull(
                cotangents, self._acceleration_rows(tables, moving, threads)
            )
            return Cotangents(*pulled)
        to_displacement, to_velocity = cotangents
        displacement, turned = np.array(to_displacement), np.array(to_displacement)
        for at, by_start, by_turn in self.space.after_turn(h * after):
            for total, matrix in ((displacement, by_start), (turned, by_turn)):
                total[:, at] = np.matmul(to_displacement[:, None, at], matrix)[:, 0]
        velocity = to_velocity + h * turned
        found = self.engine.adjoint(states, (h * velocity)[:, None], threads, tables)
        own = self._kernel_results(states, found, tables, moving, threads)
        displacement += own.displacement
        return Cotangents(displacement, velocity + own.velocity, own.control, own.tables)

    def jacobian(
        self,
        states: Sequence[np.ndarray],
        after: np.ndarray,
        tables: Tables,
        moving: tuple[str, ...],
        threads: int,
        directions: Tables | None = None,
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Jacobians of a step: by `[dq, dv]` (batch, 2 nv, 2 nv), by the control, and by each moving table.

        With `directions`, changes of the moving tables with a leading axis, the last result is `{ALONG: matrix}`:
        derivatives (batch, 2 nv, directions) along them. All other arguments are those of `pull`.
        """
        nv, batch = self.engine.sizes["nv"], len(states[0])
        if batch * nv > ROWS_AT_ONCE:
            return self._jacobian_in_parts(states, after, tables, moving, threads, directions)
        if self._has_stages:
            rows_of = self._acceleration_rows(tables, moving, threads, directions)
            return self._stages(states, tables, threads).jacobian(rows_of)
        h = self._timestep(tables)
        unit = np.eye(nv, dtype=self.engine.dtype)
        found = self.engine.adjoint(
            states, np.broadcast_to(_column(h)[..., None] * unit, (batch, nv, nv)), threads, tables
        )
        rows = self._kernel_results(states, found, tables, moving, threads, directions)
        turns, column = self.space.after_turn(h * after), _column(h)[..., None]

        def stack(*parts: np.ndarray) -> np.ndarray:
            """Rows of the velocity, part beside part, below those of the displacement after the step."""
            widths = [x.size // (batch * nv) for x in parts]
            found = np.empty((batch, 2 * nv, sum(widths)), self.engine.dtype)
            above, below, first = found[:, :nv], found[:, nv:], 0
            for x, width in zip(parts, widths, strict=True):
                below[..., first : first + width] = x.reshape(batch, nv, width)
                first += width
            if len(parts) > 1:  # the velocity after the step by the one before it
                found.reshape(batch, -1)[:, nv * (2 * nv + 1) :: 2 * nv + 1] += 1.0
            np.multiply(below, column, out=above)
            for at, _, by_turn in turns:
                above[:, at] = by_turn @ above[:, at]
            return found

        A = stack(rows.displacement, rows.velocity)
        kept = np.ones(nv, self.engine.dtype)
        for at, by_start, _ in turns:
            A[:, at, at] += by_start
            kept[at] = 0.0
        A.reshape(batch, -1)[:, : 2 * nv * nv : 2 * nv + 1] += kept
        return A, stack(rows.control), {name: stack(x) for name, x in rows.tables.items()}

    @property
    def _has_stages(self) -> bool:
        return self.engine.sizes["integrator"] == RK4

    def _stages(self, states: Sequence[np.ndarray], tables: Tables, threads: int) -> Stages:
        h = _column(self._timestep(tables))
        return Stages.of(self.engine, self.space, states, h, dict(tables), threads)

    def _acceleration_rows(
        self, tables: Tables, moving: tuple[str, ...], threads: int, directions: Tables | None = None
    ) -> PullAcceleration:
        """Rows of derivatives of the acceleration at a state."""

        def rows_of(states: Sequence[np.ndarray], cotangents: np.ndarray) -> Pulled:
            found = self.engine.adjoint(states, cotangents, threads, tables)
            rows = self._kernel_results(states, found, tables, moving, threads, directions)
            batch, count = cotangents.shape[:2]
            parts = [x.reshape(batch, count, -1) for x in (rows.displacement, rows.velocity, rows.control)]
            by_tables = {name: x.reshape(batch, count, *x.shape[1:]) for name, x in rows.tables.items()}
            return parts[0], parts[1], parts[2], by_tables

        return rows_of

    def _jacobian_in_parts(
        self, states: Sequence[np.ndarray], after: np.ndarray, tables: Tables, *rest: Any
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """`jacobian` of a large batch, part by part."""
        shapes, size = self.engine.model.shape, max(1, ROWS_AT_ONCE // self.engine.sizes["nv"])
        found = []
        for first in range(0, len(states[0]), size):
            at = slice(first, first + size)
            own = {name: x[at] if x.ndim > len(shapes(name)) else x for name, x in tables.items()}
            found.append(self.jacobian([x[at] for x in states], after[at], own, *rest))
        A, B, C = zip(*found, strict=True)
        return np.concatenate(A), np.concatenate(B), {name: np.concatenate([c[name] for c in C]) for name in C[0]}

    def _timestep(self, tables: Tables) -> np.ndarray:
        """Time step, of all or (batch, 1)."""
        return np.asarray(tables.get("timestep", self.engine.model.parameters["timestep"]), self.engine.dtype)

    def _kernel_results(
        self,
        states: Sequence[np.ndarray],
        found: Adjoint,
        tables: Tables,
        moving: tuple[str, ...],
        threads: int,
        directions: Tables | None = None,
    ) -> Cotangents:
        """Cotangents at fixed accelerations, one row for each of the adjoint vectors of an instance."""
        q, v, _, u = states
        _, count, nv = found.y.shape
        slots = FEWEST_SLOTS
        while slots < found.most:
            slots *= 2
        contacts = _with_room(found.slots, slots)
        shapes = self.engine.model.shape
        batched = {name for name, x in tables.items() if x.ndim > len(shapes(name))}
        per_row = [q, v, u, found.solved, found.integrated, contacts]
        rows = [np.repeat(x, count, axis=0) if count > 1 else np.ascontiguousarray(x) for x in per_row]
        q, v, u, solved, integrated, contacts = rows
        full = {
            name: np.repeat(x, count, axis=0) if name in batched and count > 1 else np.ascontiguousarray(x)
            for name, x in tables.items()
        }
        numbers = StepNumbers(solved, integrated, found.y.reshape(-1, nv), found.z.reshape(-1, nv))
        kernel = self._kernel(tuple(sorted(tables)), moving, slots, threads)
        by_q, by_v, by_u, by_tables, *by_slots = kernel(full, q, v, u, numbers, contacts)
        columns = _SlotColumns(contacts, by_slots[0], slot_columns(moving)) if by_slots else None
        if directions is not None:
            by_tables = {ALONG: _along(directions, by_tables, len(q), columns)}
        elif columns is not None:
            by_tables = {**by_tables, **self._slot_tables(columns, by_tables, moving)}
        return Cotangents(by_q, by_v, by_u, by_tables)

    def _slot_tables(self, columns: "_SlotColumns", direct: Tables, moving: tuple[str, ...]) -> dict:
        """Cotangents of the tables whose values the slots hold: sums over the slots of each pair."""
        slots = columns.slots
        used = slots[..., SlotNumber.PAIR] >= 0
        instance, slot = np.nonzero(used)
        pair = slots[instance, slot, SlotNumber.PAIR].astype(int)
        found = {}
        for name in (n for n in OF_SLOTS if n in moving):
            shape = self.engine.model.shape(name)
            total = np.zeros((len(slots), *shape), slots.dtype)
            values = columns.cotangents(name)[instance, slot]
            np.add.at(total, (instance, pair), values if len(shape) > 1 else values[:, 0])
            found[name] = total
        if "body_invweight0" in moving:
            total = np.array(direct["body_invweight0"])
            values = columns.cotangents("weight")[instance, slot, 0]
            for entry in (SlotNumber.FIRST_BODY, SlotNumber.SECOND_BODY):
                body = slots[instance, slot, entry].astype(int)
                np.add.at(total[..., 0], (instance, body), values)
            found["body_invweight0"] = total
        return found

    def prepare(self, names: tuple[str, ...], moving: tuple[str, ...]) -> None:
        """Compile the kernel of few contacts; raises `TruesimError` for tables without derivative."""
        self._kernel(names, moving, FEWEST_SLOTS, 1)

    def _kernel(self, names: tuple[str, ...], moving: tuple[str, ...], slots: int, threads: int) -> native.Kernel:
        refused = [name for name in moving if name in WITHOUT_DERIVATIVE]
        if refused:
            raise TruesimError(f"The routines have no derivative by {', '.join(refused)}: use backend='xla'.")
        key = names, moving, slots
        with self._lock:
            if key not in self._kernels:
                self._kernels[key] = compile_pullback_of_step(self.simulator, self.engine, names, moving, slots)
            kernel = copy.copy(self._kernels[key])
        kernel.threads = threads
        return kernel


@dataclass(frozen=True)
class _SlotColumns:
    """Contact slots, and cotangents of some of their columns."""

    slots: np.ndarray
    """Shape (rows, slots, numbers)."""
    by_columns: np.ndarray
    """Shape (rows, slots, columns)."""
    columns: np.ndarray

    def cotangents(self, name: str) -> np.ndarray:
        """Cotangents of the values of a table that the slots hold, shape (rows, slots, width)."""
        first = int(SlotNumber[name.removeprefix("pair_").upper()])
        later = [int(entry) for entry in (*SlotNumber, len(IDLE_SLOT)) if entry > first]
        return self.by_columns[..., (self.columns >= first) & (self.columns < min(later))]


def _along(directions: Tables, by_tables: Tables, rows: int, columns: _SlotColumns | None) -> np.ndarray:
    """Derivatives (rows, directions) along changes of the tables, from cotangents of the tables and of the slots."""
    count = len(next(iter(directions.values())))
    total = np.zeros((rows, count))
    for name, change in directions.items():
        if name not in OF_SLOTS:
            total += by_tables[name].reshape(rows, -1) @ change.reshape(count, -1).T
    if columns is None:
        return total
    slots = columns.slots
    used = slots[..., SlotNumber.PAIR] >= 0
    pair = np.where(used, slots[..., SlotNumber.PAIR], 0).astype(int)
    for name, change in directions.items():
        if name in OF_SLOTS:
            moved = np.moveaxis(change.reshape(count, change.shape[1], -1), 0, -1)[pair]
            total += np.einsum("rsw,rswp->rp", used[..., None] * columns.cotangents(name), moved)
    if "body_invweight0" in directions:
        bodies = slots[..., [SlotNumber.FIRST_BODY, SlotNumber.SECOND_BODY]].astype(int)
        moved = directions["body_invweight0"][:, bodies, 0].sum(axis=-1)
        total += np.einsum("rs,prs->rp", used * columns.cotangents("weight")[..., 0], moved)
    return total


def _with_room(slots: np.ndarray, count: int) -> np.ndarray:
    """A fixed number of slots of each instance, with idle ones where there are fewer."""
    if slots.shape[1] >= count:
        return np.ascontiguousarray(slots[:, :count])
    idle = np.broadcast_to(IDLE_SLOT.astype(slots.dtype), (len(slots), count - slots.shape[1], slots.shape[2]))
    return np.concatenate([slots, idle], axis=1)


def _column(h: np.ndarray) -> np.ndarray:
    """Time step as (1, 1) or (batch, 1)."""
    return h.reshape(-1, 1)
