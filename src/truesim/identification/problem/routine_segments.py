"""Segments simulated with MuJoCo's constraint model: the table-driven routines, with exact derivatives.

A compiled kernel of a whole segment would hold the constraint solver and the collision functions. Here the routines
simulate the steps, small kernels compute what surrounds them (tables from values, delayed commands, residuals), and
sensitivities follow `X <- A X + B` on NumPy arrays.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.core.typing import Array
from truesim.identification.problem.shooting import Interval, Segment, Sensitivity, Shooting, SimulatedSegment
from truesim.native.runtime.threads import scoped_threads
from truesim.physics.simulation import Simulator, State, StepRoutine
from truesim.physics.simulation.linearize import fill_zeros, jacobian
from truesim.physics.simulation.step_derivatives import ALONG

STEPS_AT_ONCE = 1024
"""Time steps, over all segments of a part, whose Jacobians are held in memory. Larger needs more memory."""
SAME_TIMESTEP = 1e-6
"""Relative difference of time steps that counts as rounding of the log's time stamps."""


@dataclasses.dataclass(frozen=True)
class _Motion:
    """States of segments with the same parameters, before and after each time step."""

    before: list[np.ndarray]
    """`(q, v, acceleration, command)` of each step, shape (segments, steps, ...)."""
    after: list[np.ndarray]
    """`(q, v)` after each step."""
    tables: dict[str, np.ndarray]
    """Parameters of the routines; the time step, if it differs from the file's, has shape (segments, steps, 1)."""


class RoutineSegments:
    """Segments of a problem, simulated by the routines.

    Args:
        shooting: Simulation of segments by physical values.
        example: Arguments for one segment: values, known values, the segment.
    """

    def __init__(self, shooting: Shooting, example: tuple[Any, ...]):
        self._shooting, self._example = shooting, example
        self._routines: list[StepRoutine] = []
        self._moving: tuple[str, ...] = ()
        self._history = 0
        self._tables = native.compile(self._make_tables, *example[:2])
        self._derivatives = self._routines[0].derivatives
        self._substeps = shooting.substeps

    def values(self, values: np.ndarray, known: np.ndarray, segment: Segment) -> SimulatedSegment:
        """Segments without derivatives; every argument has a leading batch axis."""
        found = []
        for at, own, part in self._parts(values, known, segment):
            motion, _, _ = self._simulate(own, part)
            r, _ = self._observe(self._residuals, own, part, motion)
            found.append((at, (SimulatedSegment(r, *self._end(motion)),)))
        return _joined(found)[0]

    def derivatives(
        self, values: np.ndarray, known: np.ndarray, segment: Segment
    ) -> tuple[SimulatedSegment, Sensitivity]:
        """Segments with their derivatives by values and initial state."""
        found = []
        for at, own, part in self._parts(values, known, segment):
            motion, directions, by_values = self._simulate(own, part)
            X = self._sensitivities(motion, directions, by_values)
            r, J = self._observe(self._residual_jacobians, own, part, motion)
            count = values.shape[-1]
            J_r = np.matmul(J[..., count:], X[:, : -1 : self._substeps])
            J_r[..., :count] += J[..., :count]
            found.append((at, (SimulatedSegment(r, *self._end(motion)), Sensitivity(J_r, X[:, -1]))))
        simulated, sensitivity = _joined(found)
        return simulated, sensitivity

    def _parts(self, values: np.ndarray, known: np.ndarray, segment: Segment) -> Iterator[tuple[Any, Any, Segment]]:
        """Segments with the same values, few enough for their Jacobians to be held: places, values, segments."""
        values, known, segment = self._widen(values, known, segment)
        both = np.concatenate([values, known], axis=1)
        steps = segment.intervals.duration.shape[1] * self._substeps
        rows, member = np.unique(both, axis=0, return_inverse=True)
        for k in range(len(rows)):
            places = np.nonzero(member.reshape(-1) == k)[0]
            for at in np.array_split(places, -(-len(places) * steps // STEPS_AT_ONCE)):
                own = values[at[0]], known[at[0]]
                yield at, own, jax.tree.map(lambda x, at=at: np.asarray(x)[at], segment)

    def _widen(self, *given: Any) -> tuple[Any, ...]:
        """Arguments, each with a batch axis."""
        pairs = zip(jax.tree.leaves(given), jax.tree.leaves(self._example[:3]), strict=True)
        batch = max(len(x) for x, own in pairs if np.ndim(x) > np.ndim(own))
        return jax.tree.map(
            lambda x, own: x if np.ndim(x) > np.ndim(own) else np.broadcast_to(x, (batch, *np.shape(x))),
            given,
            tuple(self._example[:3]),
        )

    def _simulate(
        self, own: tuple[np.ndarray, np.ndarray], segment: Segment
    ) -> tuple[_Motion, dict[str, np.ndarray], np.ndarray | None]:
        """Motion of segments, directions of the tables by values, and derivatives of delayed commands by values."""
        tables, changes = self._tables(*own)
        tables = {name: np.asarray(x) for name, x in tables.items()}
        engine, S = self._derivatives.engine, self._substeps
        commands, by_values = self._commands(*own, segment)
        timestep = self._timesteps(segment)
        q, v = (np.asarray(x, engine.dtype) for x in (segment.q, segment.v))
        threads = scoped_threads()
        parts_of_motion = 1 if timestep is None else segment.intervals.duration.shape[1]
        first = tables if timestep is None else {**tables, "timestep": timestep[:, 0]}
        start = engine.rollout(q, v, np.zeros_like(v), commands[:, :1], threads, first).warmstart[:, 0]
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for k, held in enumerate(np.split(commands, parts_of_motion, axis=1)):
            now = tables if timestep is None else {**tables, "timestep": timestep[:, k * S]}
            last_q, last_v, last = [x[:, -1] for x in parts[-1]] if parts else (q, v, start)
            rolled = engine.rollout(last_q, last_v, last, held, threads, now)
            parts.append((rolled.qpos, rolled.qvel, rolled.warmstart))
        after = [np.concatenate(x, axis=1) for x in zip(*parts, strict=True)]
        before = [np.concatenate([x[:, None], y[:, :-1]], axis=1) for x, y in zip((q, v), after, strict=False)]
        if timestep is not None:
            tables = {**tables, "timestep": timestep}
        directions = {name: np.asarray(changes[name]) for name in self._moving}
        return _Motion([*before, after[2], commands], after[:2], tables), directions, by_values

    def _sensitivities(
        self, motion: _Motion, directions: dict[str, np.ndarray], by_values: np.ndarray | None
    ) -> np.ndarray:
        """Derivatives of the states before each step and of the last one, shape (segments, steps + 1, nx, columns)."""
        count, steps, nv = motion.before[1].shape
        size, nx = self._example[0].size, 2 * nv
        flat = [x.reshape(count * steps, -1) for x in motion.before]
        tables = {n: x.reshape(count * steps, 1) if n == "timestep" else x for n, x in motion.tables.items()}
        A, B, C = self._derivatives.jacobian(
            flat,
            motion.after[1].reshape(count * steps, nv),
            tables,
            self._moving,
            scoped_threads(),
            directions or None,
        )
        A, B = (x.reshape(count, steps, nx, -1) for x in (A, B))
        more = np.zeros((count, steps, nx, size))
        if directions:
            more += C[ALONG].reshape(count, steps, nx, size)
        if by_values is not None:
            more += np.matmul(B, by_values)
        X = np.zeros((count, steps + 1, nx, size + nx))
        X[:, 0, :, size:] = np.eye(nx)
        for t in range(steps):
            np.matmul(A[:, t], X[:, t], out=X[:, t + 1])
            X[:, t + 1, :, :size] += more[:, t]
        return X

    def _observe(
        self, kernel: native.Kernel, own: tuple[np.ndarray, np.ndarray], segment: Segment, motion: _Motion
    ) -> tuple[np.ndarray, np.ndarray]:
        """Residuals at the start of each interval, and their derivatives by values and state if the kernel has them."""
        count, intervals = segment.intervals.duration.shape
        flat = jax.tree.map(lambda x: x.reshape(count * intervals, *x.shape[2:]), segment.intervals)
        q, v = (x[:, :: self._substeps].reshape(count * intervals, -1) for x in motion.before[:2])
        r, J = (np.asarray(x) for x in kernel(*own, q, v, flat))
        return r.reshape(count, intervals, -1), J.reshape(count, intervals, *J.shape[1:])

    def _end(self, motion: _Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, v = (x[:, -1] for x in motion.after)
        return q, v, np.zeros((len(q), 0))

    def _timesteps(self, segment: Segment) -> np.ndarray | None:
        """Time step of every step, shape (segments, steps, 1); None where all are the simulator's."""
        each = np.asarray(segment.intervals.duration) / self._substeps
        own = float(self._derivatives.simulator.timestep)
        if np.all(np.abs(each - own) <= SAME_TIMESTEP * own):
            return None
        return np.repeat(each, self._substeps, axis=1)[..., None]

    def _commands(
        self, values: np.ndarray, known: np.ndarray, segment: Segment
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Command of every time step (segments, steps, nu), delays included, and its derivatives by values."""
        if not self._history:
            return np.repeat(np.asarray(segment.intervals.command), self._substeps, axis=1), None
        commands, changes = self._delayed(values, known, segment)
        return np.asarray(commands), np.moveaxis(np.asarray(changes), 1, -1)

    @functools.cached_property
    def _residuals(self) -> native.Kernel:
        shooting = self._shooting

        def run(values: Array, known: Array, q: Array, v: Array, interval: Interval) -> tuple[Array, Array]:
            state = State(q, v, jnp.zeros(()))
            return shooting.residual(shooting.system(values, known), state, interval), jnp.zeros(0)

        return self._compile_at_states(run)

    @functools.cached_property
    def _residual_jacobians(self) -> native.Kernel:
        shooting = self._shooting

        def run(values: Array, known: Array, q: Array, v: Array, interval: Interval) -> tuple[Array, Array]:
            arrays, static, tangents = shooting.linearize_system(values, known)

            def residual(arrays: Any, state: State) -> tuple[Array, Array]:
                r = shooting.residual(eqx.combine(arrays, static), state, interval)
                return r, r

            return jacobian(residual, shooting.model, (arrays, State(q, v, jnp.zeros(()))), tangents)

        return self._compile_at_states(run)

    def _compile_at_states(self, run: Callable[..., tuple[Array, Array]]) -> native.Kernel:
        values, known, segment, *_ = self._example
        interval = jax.tree.map(lambda x: x[0], segment.intervals)
        with jax.enable_x64(True):
            return native.compile(run, values, known, segment.q, segment.v, interval)

    @functools.cached_property
    def _delayed(self) -> native.Kernel:
        """Commands that arrive in every time step of a segment, and their derivatives by values."""

        def arriving(values: Array, known: Array, segment: Segment) -> Array:
            simulator = self._simulator_of(values, known)

            def advance(state: State, interval: Interval) -> tuple[State, Array]:
                timestep = interval.duration / self._substeps
                here = eqx.tree_at(lambda s: s.timestep, simulator, timestep)

                def step(state: State, _: None) -> tuple[State, Array]:
                    command, history = here.delayed(state, interval.command)
                    return dataclasses.replace(state, time=state.time + timestep, history=history), command

                return jax.lax.scan(step, state, length=self._substeps)

            state = self._shooting.initial_state(segment)
            return jax.lax.scan(advance, state, segment.intervals)[1].reshape(-1, simulator.model.nu)

        def run(values: Array, known: Array, segment: Segment) -> tuple[Array, Array]:
            value, changes = native.columns(
                lambda values: arriving(values, known, segment), (values,), (jnp.eye(values.size),)
            )
            return value, fill_zeros(changes, value, values.size)

        with jax.enable_x64(True):
            return native.compile(run, *self._example[:3])

    def _simulator_of(self, values: Any, known: Any) -> Simulator:
        return self._shooting.simulator_of(values, known)

    def _make_tables(self, values: Array, known: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        """Tables of the routines that depend on values, and the derivatives of those that depend on the free ones."""

        def tables(values: Array) -> dict[str, Array]:
            simulator = self._simulator_of(values, known)
            self._history = simulator.history
            routine = StepRoutine.of(_without_delays(simulator))
            self._routines[:] = [routine]
            return routine.tables

        found, changes = native.columns(tables, (values,), (jnp.eye(values.size),))
        moving = {name: change for name, change in changes.items() if change is not None}
        self._moving = tuple(sorted(moving))
        return found, moving


def _without_delays(simulator: Simulator) -> Simulator:
    """The simulator under commands that have already been delayed; raises `TruesimError` for a free time scale."""
    if is_traced(simulator.model.time_scale) or float(simulator.model.time_scale) != 1:
        raise TruesimError("A time scale cannot be combined with the file's contact; leave time_scale fixed at 1.")
    delay = np.zeros(simulator.model.nu)
    simulator = eqx.tree_at(lambda s: s.model.actuators.delay, simulator, delay)
    return dataclasses.replace(simulator, history=0)


def _joined(found: list[tuple[np.ndarray, Any]]) -> Any:
    """Results of parts in the order of their places."""
    order = np.argsort(np.concatenate([at for at, _ in found]))
    return jax.tree.map(lambda *x: np.concatenate(x)[order], *(part for _, part in found))
