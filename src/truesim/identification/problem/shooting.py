"""Shooting: simulation of short segments of a log, each from its own initial state, with exact derivatives.

A segment is a number of consecutive intervals between samples. All segments of all logs are batch elements of one
kernel, which returns the residual at the start of each interval, the state at the end, and the derivatives of both.

Values and derivatives share one scan over intervals and substeps, and are traced together. Two rules propagate the
derivatives through a step. `differentiate` needs columns for the parameters and for the initial state: it forms the
Jacobians A (by the state, in its tangent space) and B (by the parameters) and updates X <- A X + B. `fold` needs
columns for the parameters alone and may not store the Jacobian of a segment: it pushes each column through the step by
forward-mode differentiation and accumulates, for instance, normal equations.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim import native
from truesim.core.typing import Array, Float
from truesim.identification.problem.channels import Channel, residual
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.equation_of_motion import Constants
from truesim.physics.simulation.history import SHORTEST, History
from truesim.physics.simulation.linearize import (
    StateArrays,
    fill_zeros,
    flat_memory,
    jacobian,
    propagate,
    state_arrays,
    step_jacobian,
)


class Segment(NamedTuple):
    """Initial state and inputs of one segment of a log."""

    q: Float[Array, "*batch nq"]
    """Configuration at the start."""
    v: Float[Array, "*batch nv"]
    """Velocity at the start."""
    commands: Float[Array, "*batch length nu"]
    """Commands before the start, oldest first; as many as the longest delay needs."""
    stamps: Float[Array, "*batch length"]
    """Time at which each of them began, relative to the start [s]."""
    intervals: "Interval"
    """Intervals of the segment, stacked."""
    memory: Float[Array, "*batch memory"] = np.zeros(0)
    """Memory of the networks at the start; NaN or empty where it is initialized."""


class Interval(NamedTuple):
    """Inputs and measurements from one sample to the next."""

    duration: Float[Array, "*batch"]
    """[s]"""
    command: Float[Array, "*batch nu"]
    """Control of each actuator, held over the interval."""
    inputs: Float[Array, "*batch inputs"]
    """Values of model parameters that follow a column of the log."""
    measured: Float[Array, "*batch columns"]
    """Measurements at the start."""
    next_measured: Float[Array, "*batch lookahead columns"]
    """Measurements of the following samples, for sensors with a delay."""
    stamps: Float[Array, "*batch lookahead"]
    """Time of these samples, relative to the start [s]."""


class SimulatedSegment(NamedTuple):
    """Residuals and end state of a segment."""

    residual: Float[Array, "*batch intervals rows"]
    """Prediction minus measurement at the start of each interval."""
    q: Float[Array, "*batch nq"]
    """Configuration at the end."""
    v: Float[Array, "*batch nv"]
    """Velocity at the end."""
    memory: Float[Array, "*batch memory"]
    """Memory of the networks at the end."""


class Sensitivity(NamedTuple):
    """Derivatives of a simulated segment: columns by the parameters, then by the tangent of the initial state."""

    residual: Float[Array, "*batch intervals rows columns"]
    """Derivatives of the residuals."""
    state: Float[Array, "*batch nx columns"]
    """Derivatives of the end state, in its tangent space."""

    def part(self, segments: slice) -> "Sensitivity":
        """Derivatives of some of a batch of segments."""
        return Sensitivity(self.residual[segments], self.state[segments])


System = tuple[Simulator, Any]
"""A simulator and the constants that follow from its parameters."""
MakeSegment = Callable[[Array], Segment]
"""Builds a segment from coordinates of the parameters."""
Accumulate = Callable[[Any, Array, Array, Array], Any]
"""From a total, the index of an interval, its residual and the residual's derivatives to the next total."""


@dataclasses.dataclass(frozen=True)
class Shooting:
    """Simulation of segments and comparison with the log."""

    model: Model
    """The model at its start values; only its structure is used."""
    simulator_of: Callable[[Array, Array], Simulator]
    """Builds the simulator from coordinates of the free parameters and from values that are known for each log."""
    with_inputs: Callable[[Simulator, Array], Simulator]
    """Writes the inputs of an interval to the simulator."""
    channels: Sequence[Channel]
    """Channels of the residual."""
    memory_size: int = 0
    """Number of values in the memory of the networks."""
    substeps: int = 1
    """Simulator steps in each interval."""

    def shoot(self, theta: Float[Array, " size"], known: Float[Array, " known"], segment: Segment) -> SimulatedSegment:
        """Simulate a segment without derivatives."""
        system = self.system(theta, known)
        first = self._with_memory(system, self.initial_state(segment), segment)
        (end, _, _), r = self._scan(
            (first, (), ()),
            (None, segment.intervals),
            observe=lambda state, X, interval: (self.residual(system, state, interval), ()),
            step=lambda state, X, interval: (self._step(system, state, interval), X),
            collect=lambda total, k, r, J: (total, r),
        )
        return SimulatedSegment(r, end.q, end.v, flat_memory(end.memory))

    def differentiate(
        self, theta: Float[Array, " size"], known: Float[Array, " known"], segment: Segment
    ) -> tuple[SimulatedSegment, Sensitivity]:
        """Simulate a segment with its derivatives."""
        arrays, static, tangents = self.linearize_system(theta, known)
        nx = 2 * segment.v.size

        def observe(state: State, X: Array, interval: Interval) -> tuple[Array, Array]:
            def residual(arrays: Any, state: State) -> tuple[Array, Array]:
                r = self.residual(eqx.combine(arrays, static), state, interval)
                return r, r

            r, J = jacobian(residual, self.model, (arrays, state), tangents)
            return r, propagate(J, X)

        def step(state: State, X: Array, interval: Interval) -> tuple[State, Array]:
            def move(arrays: Any, state: State) -> State:
                return self._step(eqx.combine(arrays, static), state, interval)

            after, J = step_jacobian(move, self.model, (arrays, state), tangents)
            return after, propagate(J, X)

        def start(arrays: Any, state: State) -> tuple[State, Array]:
            begin = self._with_memory(eqx.combine(arrays, static), state, segment)
            return begin, flat_memory(begin.memory)

        X = jnp.concatenate([jnp.zeros((nx, theta.size)), jnp.eye(nx)], axis=1)
        first = self.initial_state(segment)
        if self.memory_size:
            first, J = jacobian(start, self.model, (arrays, first), tangents)
            X = jnp.concatenate([X, J])
        carry, xs = (first, X, ()), (None, segment.intervals)
        (end, X, _), (r, J) = self._scan(carry, xs, observe, step, lambda total, k, r, J: (total, (r, J)))
        return SimulatedSegment(r, end.q, end.v, flat_memory(end.memory)), Sensitivity(J, X[:nx])

    def fold(
        self,
        theta: Float[Array, " size"],
        known: Float[Array, " known"],
        segment: MakeSegment,
        collect: Accumulate,
        total: Any,
    ) -> Any:
        """Accumulate residuals and their derivatives by the parameters over intervals without storing them.

        Args:
            theta: Coordinates of the parameters.
            known: Values that are known for the log.
            segment: Builds the segment; its initial state may depend on the parameters.
            collect: From the total so far, an interval's index, residual and derivatives to the next total.
            total: Initial total.
        """
        arrays, static, tangents = self.linearize_system(theta, known)

        def initial_state(theta: Array) -> State:
            begin = segment(theta)
            return self._with_memory(self.system(theta, known), self.initial_state(begin), begin)

        def push(f: Callable[[System, State], Any], state: State, X: StateArrays) -> tuple[Any, Any]:
            """A function of system and state, and its derivatives along each column."""

            def at(arrays: Any, moving: StateArrays) -> Any:
                q, v, memory = moving
                return f(eqx.combine(arrays, static), dataclasses.replace(state, q=q, v=v, memory=memory))

            value, changes = native.columns(at, (arrays, state_arrays(state)), (tangents, X))
            return value, fill_zeros(changes, value, theta.size)

        def observe(state: State, X: StateArrays, interval: Interval) -> tuple[Array, Array]:
            r, J = push(lambda e, s: self.residual(e, s, interval), state, X)
            return r, J

        def step(state: State, X: StateArrays, interval: Interval) -> tuple[State, StateArrays]:
            after, dx = push(lambda e, s: self._step(e, s, interval), state, X)
            return after, state_arrays(dx)

        intervals = segment(theta).intervals
        begin, X = native.columns(initial_state, (theta,), (jnp.eye(theta.size),))
        carry = begin, state_arrays(fill_zeros(X, begin, theta.size)), total
        xs = jnp.arange(intervals.duration.size), intervals
        return self._scan(carry, xs, observe, step, lambda total, k, r, J: (collect(total, k, r, J.T), None))[0][2]

    def _scan(
        self,
        carry: tuple[State, Any, Any],
        xs: tuple[Array | None, Interval],
        observe: Callable[[State, Any, Interval], tuple[Array, Any]],
        step: Callable[[State, Any, Interval], tuple[State, Any]],
        collect: Callable[[Any, Any, Array, Any], tuple[Any, Any]],
    ) -> tuple[tuple[State, Any, Any], Any]:
        """Scan the intervals of a segment.

        Args:
            carry: Initial state, its derivatives, and an initial total.
            xs: Indices of the intervals, if needed, and the intervals.
            observe: Residual and its derivatives from a state and its derivatives.
            step: Next state and its derivatives.
            collect: From a total, an index, a residual and its derivatives to the next total and an output to stack.
        """

        def advance(carry: tuple[State, Any, Any], x: tuple[Any, Interval]) -> tuple[tuple[State, Any, Any], Any]:
            state, X, total = carry
            k, interval = x
            r, J = observe(state, X, interval)
            (state, X), _ = jax.lax.scan(lambda at, _: (step(*at, interval), None), (state, X), length=self.substeps)
            total, out = collect(total, k, r, J)
            return (state, X, total), out

        return jax.lax.scan(advance, carry, xs)

    def linearize_system(self, theta: Array, known: Array) -> tuple[Any, Any, Any]:
        """Arrays of the system, its static part, and the derivatives of the arrays along each coordinate.

        Derivatives are None for arrays that do not depend on the coordinates.
        """
        static: list[Any] = []

        def arrays_of(theta: Array) -> Any:
            arrays, rest = eqx.partition(self.system(theta, known), eqx.is_inexact_array)
            static[:] = [rest]
            return arrays

        arrays, tangents = native.columns(arrays_of, (theta,), (jnp.eye(theta.size),))
        return arrays, static[0], tangents

    def initial_state(self, segment: Segment) -> State:
        """State at the start of a segment, without the memory of networks."""
        history = History(segment.commands, segment.stamps) if segment.stamps.size else None
        return State(segment.q, segment.v, jnp.zeros(()), history)

    def _with_memory(self, system: System, state: State, segment: Segment) -> State:
        """Initial state with the segment's memory; initialized where that is NaN or empty."""
        if not self.memory_size:
            return state
        interval = jax.tree.map(lambda x: x[0], segment.intervals)
        simulator, _ = self._at(system, interval)
        scale = simulator.model.time_scale
        state = _scale_time(simulator.started(_scale_time(state, scale), interval.command), 1 / scale)
        initialized, unflatten = ravel_pytree(state.memory)
        if not segment.memory.size:
            return state
        known = jnp.isfinite(segment.memory)
        return dataclasses.replace(state, memory=unflatten(jnp.where(known, segment.memory, initialized)))

    def system(self, theta: Array, known: Array) -> System:
        """The simulator with these parameters, and its constants."""
        simulator = self.simulator_of(theta, known)
        by_routines = simulator.constraint_contact is not None  # they have constants of their own
        return simulator, Constants(None, None, None) if by_routines else simulator.constants()

    def _at(self, system: System, interval: Interval) -> System:
        """The system with the inputs and the time step of one interval."""
        simulator, constants = system
        simulator = self.with_inputs(simulator, interval.inputs)
        timestep = interval.duration * simulator.model.time_scale / self.substeps
        return eqx.tree_at(lambda s: s.timestep, simulator, timestep), constants

    def _step(self, system: System, state: State, interval: Interval) -> State:
        simulator, constants = self._at(system, interval)
        scale = simulator.model.time_scale
        return _scale_time(simulator.step(_scale_time(state, scale), interval.command, constants)[0], 1 / scale)

    def residual(self, system: System, state: State, interval: Interval) -> Float[Array, " rows"]:
        """Prediction minus measurement at the start of an interval."""
        simulator, constants = self._at(system, interval)
        state = _scale_time(state, simulator.model.time_scale)
        measured = self._measured(simulator.model, interval)
        return residual(self.channels, simulator, constants, state, interval.command, measured)

    def _measured(self, model: Model, interval: Interval) -> Array:
        """Measurements of the state at the start: those of delayed sensors, interpolated between samples."""
        if not interval.stamps.size:
            return interval.measured
        names = [column.removeprefix("sensor/") for channel in self.channels for column in channel.columns]
        delay = jnp.asarray(model.sensors.delay)[np.array([model.sensors.names.index(name) for name in names])]
        time = jnp.concatenate([jnp.zeros(1), interval.stamps]) * model.time_scale
        values = jnp.concatenate([interval.measured[None], interval.next_measured])
        span = jnp.maximum(jnp.diff(time), SHORTEST)
        fraction = jnp.clip((delay[None] - time[:-1, None]) / span[:, None], 0.0, 1.0)
        return values[0] + jnp.sum(fraction * jnp.diff(values, axis=0), axis=0)


def _scale_time(state: State, scale: Array | float) -> State:
    """The state with its time and stamps scaled: between steps they are in the time of the log."""
    if state.history is None:
        return state
    return eqx.tree_at(lambda s: (s.time, s.history.time), state, (scale * state.time, scale * state.history.time))
