"""Shooting: short stretches of a log, each simulated from a first state of its own, with exact derivatives.

A stretch is a number of consecutive intervals between samples. All stretches of all logs are lanes of one native
kernel, which returns the residual at the start of each interval, the state at the end, and the derivatives of both with
respect to the parameters and to the first state. With a step's own Jacobians A (by state) and B (by parameters) the
derivatives of the state follow X <- A X + B.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.core.typing import Array, Float
from truesim.dynamics import difference, integrate
from truesim.identify.channels import Channel, residual
from truesim.model.model import Model
from truesim.simulate import Simulator, State
from truesim.simulate.augment.memory import Memory
from truesim.simulate.history import SHORTEST, History


class Stretch(NamedTuple):
    """What one stretch of a log gives to the simulator."""

    q: Float[Array, "nq"]
    """Configuration at its start."""
    v: Float[Array, "nv"]
    """Velocity at its start."""
    commands: Float[Array, "length nu"]
    """Commands before its start, oldest first; as many as delays can look back into."""
    stamps: Float[Array, "length"]
    """When each of them began, from the start on [s]."""
    intervals: "Interval"
    """Its intervals, stacked."""
    memory: Float[Array, "remembered"] = np.zeros(0)
    """What networks remember at its start; NaN, or nothing, where they begin anew."""


class Interval(NamedTuple):
    """From one sample to the next."""

    duration: Float[Array, ""]
    """[s]"""
    command: Float[Array, "nu"]
    """Control of each actuator, held."""
    inputs: Float[Array, "inputs"]
    """Numbers of the robot that follow a column of the log."""
    measured: Float[Array, "columns"]
    """Measurements at the start."""
    later: Float[Array, "ahead columns"]
    """The next measurements, in which what happens at the start shows if readings are late."""
    stamps: Float[Array, "ahead"]
    """When they were made, from the start on [s]."""


class Shot(NamedTuple):
    """A simulated stretch."""

    residual: Float[Array, "intervals rows"]
    q: Float[Array, "nq"]
    """Configuration at the end."""
    v: Float[Array, "nv"]
    """Velocity at the end."""
    memory: Float[Array, "remembered"]
    """What networks remember at the end."""


class Sensitivity(NamedTuple):
    """Derivatives of a shot: columns for the parameters, then for the first state in its tangent space."""

    residual: Float[Array, "intervals rows columns"]
    state: Float[Array, "nx columns"]
    """Of the state at the end, in its tangent space."""


Moving = tuple[Array, Array, Memory | None]
"""What of a state depends on the parameters: configuration, velocity, and what networks remember."""
StretchOf = Callable[[Array], Stretch]
"""Makes a stretch from coordinates of the parameters."""
Collect = Callable[[Any, Array, Array, Array], Any]
"""From a total, the place of an interval, its residual and the derivatives of that to the next total."""


@dataclasses.dataclass(frozen=True)
class Shooting:
    """How stretches are simulated and compared."""

    model: Model
    """The robot as it starts; only its structure counts."""
    simulator_of: Callable[[Array, Array], Simulator]
    """Makes the simulator from coordinates of the free parameters and from numbers that are known for each log."""
    with_inputs: Callable[[Simulator, Array], Simulator]
    """Puts the inputs of an interval in their places."""
    channels: Sequence[Channel]
    """What is compared."""
    remembered: int = 0
    """How many numbers networks remember from step to step."""
    substeps: int = 1
    """Steps of the simulator within each interval."""

    def shoot(self, theta: Float[Array, "size"], known: Float[Array, "known"], stretch: Stretch) -> Shot:
        """A stretch without derivatives."""
        everything = self._everything(theta, known)

        def advance(state: State, interval: Interval) -> tuple[State, Array]:
            r = self._residual(everything, state, interval)

            def step(state: State, _: None) -> tuple[State, None]:
                return self._step(everything, state, interval), None

            return jax.lax.scan(step, state, length=self.substeps)[0], r

        end, r = jax.lax.scan(advance, self._begun(everything, self._first(stretch), stretch), stretch.intervals)
        return Shot(r, end.q, end.v, _flat(end.memory))

    def differentiate(
        self, theta: Float[Array, "size"], known: Float[Array, "known"], stretch: Stretch
    ) -> tuple[Shot, Sensitivity]:
        """A stretch with its derivatives."""
        numbers, rest = eqx.partition(self._everything(theta, known), eqx.is_inexact_array)
        tangents = _columns(lambda theta: eqx.filter(self._everything(theta, known), eqx.is_inexact_array), theta)
        nx = 2 * stretch.v.size

        def jacobians(f: Callable[[Any, State], Array], state: State) -> tuple[Array, Array]:
            """Derivatives of `f(everything, state)` by the state and by the parameters."""
            zero = jnp.zeros(nx + _flat(state.memory).size)
            by_state = _columns(lambda dx: f(eqx.combine(numbers, rest), self._moved(state, dx)), zero)
            by_numbers = jax.vmap(
                lambda tangent: jax.jvp(lambda n: f(eqx.combine(n, rest), state), (numbers,), (tangent,))[1]
            )(tangents)
            return by_state.T, by_numbers.T

        def step(state: State, X: Array, interval: Interval) -> tuple[State, Array]:
            after = self._step(eqx.combine(numbers, rest), state, interval)
            A, B = jacobians(lambda e, s: self._apart(self._step(e, s, interval), after), state)
            return after, A @ X + _widened(B, nx)

        def advance(carry: tuple[State, Array], interval: Interval) -> tuple[tuple[State, Array], tuple[Array, Array]]:
            state, X = carry
            everything = eqx.combine(numbers, rest)
            r = self._residual(everything, state, interval)
            C, D = jacobians(lambda e, s: self._residual(e, s, interval), state)
            Y = C @ X + _widened(D, nx)
            carry, _ = jax.lax.scan(lambda at, _: (step(*at, interval), None), carry, length=self.substeps)
            return carry, (r, Y)

        X = jnp.concatenate([jnp.zeros((nx, theta.size)), jnp.eye(nx)], axis=1)
        first = self._first(stretch)
        if self.remembered:
            by_state, by_numbers = jacobians(lambda e, s: _flat(self._begun(e, s, stretch).memory), first)
            X = jnp.concatenate([X, jnp.concatenate([by_numbers, by_state], axis=1)])
        first = self._begun(eqx.combine(numbers, rest), first, stretch)
        (end, X), (r, J) = jax.lax.scan(advance, (first, X), stretch.intervals)
        return Shot(r, end.q, end.v, _flat(end.memory)), Sensitivity(J, X[:nx])

    def fold(
        self,
        theta: Float[Array, "size"],
        known: Float[Array, "known"],
        stretch: StretchOf,
        collect: Collect,
        total: Any,
    ) -> Any:
        """Residuals and their derivatives by the parameters, collected interval by interval without keeping them.

        Args:
            theta: Coordinates of the parameters.
            known: Numbers that are known for the log.
            stretch: Makes the stretch; its first state may depend on the parameters.
            collect: From the total so far, an interval's place, residual and derivatives to the next total.
            total: What to begin with.
        """
        numbers, rest = eqx.partition(self._everything(theta, known), eqx.is_inexact_array)
        by_theta = _columns(lambda theta: eqx.filter(self._everything(theta, known), eqx.is_inexact_array), theta)

        def first(theta: Array) -> State:
            begin = stretch(theta)
            return self._begun(self._everything(theta, known), self._first(begin), begin)

        def pushed(f: Callable[[Any, State], Any], state: State, X: Moving) -> tuple[Any, Any]:
            """A function of parameters and state, and its derivatives along each coordinate."""

            def at(numbers: Any, moving: Moving) -> Any:
                q, v, memory = moving
                return f(eqx.combine(numbers, rest), dataclasses.replace(state, q=q, v=v, memory=memory))

            here = numbers, _moving(state)
            return at(*here), jax.vmap(lambda *along: jax.jvp(at, here, along)[1])(by_theta, X)

        def advance(carry: tuple[State, Moving, Any], x: tuple[Array, Interval]) -> tuple[tuple, None]:
            state, X, total = carry
            k, interval = x
            r, J = pushed(lambda e, s: self._residual(e, s, interval), state, X)

            def step(at: tuple[State, Moving], _: None) -> tuple[tuple[State, Moving], None]:
                after, dx = pushed(lambda e, s: self._step(e, s, interval), *at)
                return (after, _moving(dx)), None

            (state, X), _ = jax.lax.scan(step, (state, X), length=self.substeps)
            return (state, X, collect(total, k, r, J.T)), None

        intervals = stretch(theta).intervals
        carry = first(theta), _columns(lambda theta: _moving(first(theta)), theta), total
        return jax.lax.scan(advance, carry, (jnp.arange(intervals.duration.size), intervals))[0][2]

    def _first(self, stretch: Stretch) -> State:
        history = History(stretch.commands, stretch.stamps) if stretch.stamps.size else None
        return State(stretch.q, stretch.v, jnp.zeros(()), history)

    def _begun(self, everything: tuple[Simulator, Any], state: State, stretch: Stretch) -> State:
        """A first state with what networks remember there."""
        if not self.remembered:
            return state
        interval = jax.tree.map(lambda x: x[0], stretch.intervals)
        simulator, _ = self._at(everything, interval)
        scale = simulator.model.time_scale
        state = _aged(simulator.started(_aged(state, scale), interval.command), 1 / scale)
        anew, unflatten = ravel_pytree(state.memory)
        if not stretch.memory.size:
            return state
        known = jnp.isfinite(stretch.memory)
        return dataclasses.replace(state, memory=unflatten(jnp.where(known, stretch.memory, anew)))

    def _everything(self, theta: Array, known: Array) -> tuple[Simulator, Any]:
        """The simulator, and what follows from its parameters alone."""
        simulator = self.simulator_of(theta, known)
        return simulator, simulator.constants()

    def _at(self, everything: tuple[Simulator, Any], interval: Interval) -> tuple[Simulator, Any]:
        """The simulator in one interval."""
        simulator, constants = everything
        simulator = self.with_inputs(simulator, interval.inputs)
        timestep = interval.duration * simulator.model.time_scale / self.substeps
        return eqx.tree_at(lambda s: s.timestep, simulator, timestep), constants

    def _step(self, everything: tuple[Simulator, Any], state: State, interval: Interval) -> State:
        simulator, constants = self._at(everything, interval)
        scale = simulator.model.time_scale
        return _aged(simulator.step(_aged(state, scale), interval.command, constants)[0], 1 / scale)

    def _residual(self, everything: tuple[Simulator, Any], state: State, interval: Interval) -> Array:
        simulator, constants = self._at(everything, interval)
        state = _aged(state, simulator.model.time_scale)
        measured = self._measured(simulator.model, interval)
        return residual(self.channels, simulator, constants, state, interval.command, measured)

    def _measured(self, model: Model, interval: Interval) -> Array:
        """What was measured of the start: readings that are late, interpolated between samples."""
        if not interval.stamps.size:
            return interval.measured
        names = [column.removeprefix("sensor/") for channel in self.channels for column in channel.columns]
        delay = jnp.asarray(model.sensors.delay)[np.array([model.sensors.names.index(name) for name in names])]
        time = jnp.concatenate([jnp.zeros(1), interval.stamps]) * model.time_scale
        values = jnp.concatenate([interval.measured[None], interval.later])
        span = jnp.maximum(jnp.diff(time), SHORTEST)
        passed = jnp.clip((delay[None] - time[:-1, None]) / span[:, None], 0.0, 1.0)
        return values[0] + jnp.sum(passed * jnp.diff(values, axis=0), axis=0)

    def _moved(self, state: State, dx: Array) -> State:
        """The state after a small move in its tangent space."""
        nv = state.v.size
        q, memory = integrate(self.model, state.q, dx[:nv]), state.memory
        if memory is not None:
            flat, unflatten = ravel_pytree(memory)
            memory = unflatten(flat + dx[2 * nv :])
        return dataclasses.replace(state, q=q, v=state.v + dx[nv : 2 * nv], memory=memory)

    def _apart(self, state: State, start: State) -> Array:
        """The small move from `start` to `state`."""
        moves = difference(self.model, state.q, start.q), state.v - start.v
        return jnp.concatenate([*moves, *[_flat(state.memory) - _flat(start.memory)] * bool(self.remembered)])


def _flat(memory: Memory | None) -> Float[Array, "remembered"]:
    """What networks remember as one vector."""
    return jnp.zeros(0) if memory is None else ravel_pytree(memory)[0]


def _moving(state: State) -> Moving:
    return state.q, state.v, state.memory


def _aged(state: State, scale: Array) -> State:
    """The state with all its stamps on another scale: between steps they are those of the log."""
    if state.history is None:
        return state
    return eqx.tree_at(lambda s: (s.time, s.history.time), state, (scale * state.time, scale * state.history.time))


def _columns(f: Callable[[Array], Any], x: Float[Array, "n"]) -> Any:
    """Derivatives of `f` along each coordinate of `x`, stacked in front."""
    return jax.vmap(lambda e: jax.jvp(f, (x,), (e,))[1])(jnp.eye(x.size))


def _widened(D: Float[Array, "rows size"], nx: int) -> Float[Array, "rows columns"]:
    """Derivatives by the parameters, with zeros for the first state beside them."""
    return jnp.concatenate([D, jnp.zeros((D.shape[0], nx))], axis=1)
