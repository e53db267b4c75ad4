"""Derivatives of steps by the routines for a batch, on NumPy arrays: pullbacks along a motion, and step Jacobians."""

import copy
import functools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.physics.routines.engine import Engine
from truesim.physics.routines.layout import RK4
from truesim.physics.simulation.adjoint_rows import FEWEST_SLOTS, AdjointRows, Tables
from truesim.physics.simulation.displacements import Displacements
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.slot_derivatives import SlotColumns, derivatives_along
from truesim.physics.simulation.stage_derivatives import PullAcceleration, Pulled, Stages
from truesim.physics.simulation.step_adjoint import (
    WITHOUT_DERIVATIVE,
    compile_pullback_of_step,
    slot_columns,
)

ROWS_AT_ONCE = 4096
"""Rows of step Jacobians that one call of the kernel computes; larger leaves the processor's cache."""
Turns = list[tuple[slice, np.ndarray, np.ndarray]]
"""Of every quaternion, its place and the derivatives of `Displacements.after_turn`."""
ALONG = "along"
"""Name of the derivatives along given directions of the tables."""


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
    _unit: np.ndarray = field(init=False)
    _numbers: np.ndarray = field(init=False)
    """Unit matrix of coordinates that are numbers, zero for rotation vectors."""
    _held: np.ndarray = field(init=False)
    """Derivatives of the velocity before the step by `[dq, v, u]`."""
    _own_timestep: np.ndarray = field(init=False)
    _own_cotangents: np.ndarray = field(init=False)
    """Time step times the unit matrix, unless tables replace it."""
    _kernels: dict[Any, native.Kernel] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _spare: dict[Any, list[AdjointRows]] = field(default_factory=dict)
    """Prepared calls for one instance that nobody uses, by the shapes of their arrays."""

    def __post_init__(self) -> None:
        self.space = Displacements.of(self.engine.model)
        nv, dtype = self.engine.sizes["nv"], self.engine.dtype
        self._unit = np.eye(nv, dtype=dtype)
        self._numbers = np.diag(np.isin(np.arange(nv), self.space.dofs).astype(dtype))
        self._held = np.eye(nv, 2 * nv + self.engine.sizes["nu"], nv, dtype)
        self._own_timestep = np.asarray(self.engine.model.parameters["timestep"], dtype).reshape(1, 1)
        self._own_cotangents = self._own_timestep[..., None] * self._unit

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
        adjoint = self._adjoint_rows(states, (h * velocity)[:, None], tables, moving)
        rows, own = self._results(adjoint, moving, threads)
        by_q, by_v, by_u = self._parts(rows)
        displacement += by_q
        return Cotangents(displacement, velocity + by_v, by_u, own)

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
        spare, adjoint = self._take(states, tables, moving)
        found = self._stack(*self._results(adjoint, moving, threads, directions), after, self._timestep(tables))
        spare.append(adjoint)
        return found

    def linearize(
        self, states: Sequence[np.ndarray], tables: Tables, threads: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Configuration, velocity and acceleration after a step, and its Jacobians by `[dq, dv]` and the control.

        Args:
            states: `(q, v, acceleration, control)` before the step; the solver starts at the acceleration.
            tables: Parameters that differ from the engine's.
            threads: Number of threads.
        """
        if len(states[0]) * self.engine.sizes["nv"] > ROWS_AT_ONCE:
            found = [self.linearize(part, own, threads) for part, own, _ in self._parts_of(states, tables)]
            q, v, acceleration, A, B = (np.concatenate(x) for x in zip(*found, strict=True))
            return q, v, acceleration, A, B
        if self._has_stages:
            q, v, start, u = states
            rolled = self.engine.rollout(q, v, start, u[:, None], threads, tables)
            after = rolled.qpos[:, 0], rolled.qvel[:, 0], rolled.warmstart[:, 0]
            return *after, *self.jacobian([q, v, after[2], u], after[1], tables, (), threads)[:2]
        spare, adjoint = self._take(states, tables, (), steps=True)
        rows, _ = self._results(adjoint, (), threads)
        q, v, acceleration = map(np.array, adjoint.after)
        A, B, _ = self._stack(rows, {}, v, self._timestep(tables))
        spare.append(adjoint)
        return q, v, acceleration, A, B

    def _stack(
        self, rows: np.ndarray, own: Tables, after: np.ndarray, h: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Jacobians of a step as of `jacobian`, from rows for the time step times the acceleration."""
        nv, batch = self.engine.sizes["nv"], len(after)
        turns, scale = self.space.after_turn(h * after), h[..., None]
        J = np.empty((batch, 2 * nv, rows.shape[1]), self.engine.dtype)
        np.add(rows.reshape(batch, nv, -1), self._held, out=J[:, nv:])
        _displace(J, scale, turns)
        for at, by_start, _ in turns:
            J[:, at, at] += by_start
        J[:, :nv, :nv] += self._numbers
        by_tables = {}
        for name, x in own.items():
            by_tables[name] = np.empty((batch, 2 * nv, x[0].size), self.engine.dtype)
            by_tables[name][:, nv:] = x.reshape(batch, nv, -1)
            _displace(by_tables[name], scale, turns)
        return J[..., : 2 * nv], J[..., 2 * nv :], by_tables

    def _take(
        self, states: Sequence[np.ndarray], tables: Tables, moving: tuple[str, ...], steps: bool = False
    ) -> tuple[list[AdjointRows], AdjointRows]:
        """Rows of the velocity after a step, and a list to which they are given back once they are copied.

        For one instance they are on arrays of their own. Calls may come from several threads at once.
        """
        h = self._timestep(tables)
        cotangents = self._own_cotangents if h is self._own_timestep else h[..., None] * self._unit
        if len(states[0]) > 1:
            return [], self._adjoint_rows(states, cotangents, tables, moving, steps)
        key = steps, moving, *((name, x.shape) for name, x in tables.items())
        spare = self._spare.setdefault(key, [])
        try:
            adjoint = spare.pop()
        except IndexError:
            own = {name: np.array(x, order="C") for name, x in tables.items()}
            made = [np.array(x, self.engine.dtype, order="C") for x in states]
            return spare, self._adjoint_rows(made, cotangents, own, moving, steps)
        adjoint.set(states, cotangents, tables)
        return spare, adjoint

    def _adjoint_rows(
        self,
        states: Sequence[np.ndarray],
        cotangents: np.ndarray,
        tables: Tables,
        moving: tuple[str, ...],
        steps: bool = False,
    ) -> AdjointRows:
        """Derivatives of the acceleration on these arrays."""
        kernel = functools.partial(self._kernel, tuple(sorted(tables)), moving)
        return AdjointRows(self.engine, kernel, states, cotangents, tables, steps)

    @property
    def _has_stages(self) -> bool:
        return self.engine.sizes["integrator"] == RK4

    def _stages(self, states: Sequence[np.ndarray], tables: Tables, threads: int) -> Stages:
        h = self._timestep(tables)
        return Stages.of(self.engine, self.space, states, h, dict(tables), threads)

    def _acceleration_rows(
        self, tables: Tables, moving: tuple[str, ...], threads: int, directions: Tables | None = None
    ) -> PullAcceleration:
        """Rows of derivatives of the acceleration at a state."""

        def rows_of(states: Sequence[np.ndarray], cotangents: np.ndarray) -> Pulled:
            rows, own = self._results(
                self._adjoint_rows(states, cotangents, tables, moving), moving, threads, directions
            )
            batch, count = cotangents.shape[:2]
            by_q, by_v, by_u = self._parts(rows.reshape(batch, count, -1))
            by_tables = {name: x.reshape(batch, count, *x.shape[1:]) for name, x in own.items()}
            return by_q, by_v, by_u, by_tables

        return rows_of

    def _jacobian_in_parts(
        self, states: Sequence[np.ndarray], after: np.ndarray, tables: Tables, *rest: Any
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """`jacobian` of a large batch, part by part."""
        found = [self.jacobian(part, after[at], own, *rest) for part, own, at in self._parts_of(states, tables)]
        A, B, C = zip(*found, strict=True)
        return np.concatenate(A), np.concatenate(B), {name: np.concatenate([c[name] for c in C]) for name in C[0]}

    def _parts_of(
        self, states: Sequence[np.ndarray], tables: Tables
    ) -> Iterator[tuple[list[np.ndarray], dict[str, np.ndarray], slice]]:
        """States and tables of parts of a large batch, and where they are in it."""
        shapes, size = self.engine.model.shape, max(1, ROWS_AT_ONCE // self.engine.sizes["nv"])
        for first in range(0, len(states[0]), size):
            at = slice(first, first + size)
            own = {name: x[at] if x.ndim > len(shapes(name)) else x for name, x in tables.items()}
            yield [x[at] for x in states], own, at

    def _timestep(self, tables: Tables) -> np.ndarray:
        """Time step [s], (1, 1) or (batch, 1)."""
        if "timestep" not in tables:
            return self._own_timestep
        return np.asarray(tables["timestep"], self.engine.dtype).reshape(-1, 1)

    def _results(
        self, adjoint: AdjointRows, moving: tuple[str, ...], threads: int, directions: Tables | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Cotangents of `[dq, v, u]` and of tables at fixed accelerations, a row for each adjoint vector."""
        by_state, by_tables, by_slots, contacts = adjoint(threads)
        columns = None
        if by_slots:
            every = np.repeat(contacts, len(by_state) // len(contacts), axis=0)
            columns = SlotColumns(every, by_slots[0], slot_columns(moving))
        if directions is not None:
            return by_state, {ALONG: derivatives_along(directions, by_tables, len(by_state), columns)}
        if columns is not None:
            by_tables = {**by_tables, **columns.sum_over_pairs(by_tables, moving, self.engine.model.shape)}
        return by_state, by_tables

    def _parts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parts `(dq, v, u)` of the last axis."""
        nv = self.engine.sizes["nv"]
        return rows[..., :nv], rows[..., nv : 2 * nv], rows[..., 2 * nv :]

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
            kernel = self._kernels[key]
        if kernel.threads != threads:
            kernel = copy.copy(kernel)
            kernel.threads = threads
        return kernel


def _displace(rows: np.ndarray, h: np.ndarray, turns: Turns) -> None:
    """Derivatives of the displacement after a step, above those of the velocity after it, (batch, 2 nv, columns)."""
    nv = rows.shape[1] // 2
    above = rows[:, :nv]
    np.multiply(rows[:, nv:], h, out=above)
    for at, _, by_turn in turns:
        above[:, at] = by_turn @ above[:, at]
