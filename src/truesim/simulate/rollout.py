"""Many steps: a scan over commands, and the trajectory it leaves."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.simulate.backend import Backend, call_native, chosen
from truesim.simulate.sensors import read_sensors
from truesim.simulate.simulator import Simulator
from truesim.simulate.state import State, StepInfo


def keep_states(state: State, info: StepInfo) -> State:
    """Keeps the state after each step, without what it remembers of how it came there."""
    return dataclasses.replace(state, history=None, impulses=None, memory=None)


def rollout(
    simulator: Simulator,
    state: State,
    commands: Float[Array, "steps nu"],
    *,
    keep: Callable[[State, StepInfo], Any] = keep_states,
    checkpoint: bool = True,
    backend: Backend | None = None,
) -> tuple[State, Any]:
    """The last state, and what `keep` returned after each step, stacked over steps.

    Args:
        simulator: The simulator.
        state: Where the robot starts.
        commands: Control of each actuator, one row per time step, held over the step.
        keep: Chooses what to keep of each step, such as `lambda state, info: state.q`.
        checkpoint: Whether reverse mode stores only the states and computes each step again, instead of storing every
            intermediate number.
        backend: `native` runs all steps as one native kernel, the default on a CPU; `xla` is a plain `jax.lax.scan`.
    """
    steps = functools.partial(_steps, keep, checkpoint)
    if chosen(backend) == "xla":
        return steps(simulator, state, commands)
    return call_native(steps, (simulator, state, commands), identity=(_steps, keep, checkpoint))


def _steps(
    keep: Callable[[State, StepInfo], Any], checkpoint: bool, simulator: Simulator, state: State, commands: Array
) -> tuple[State, Any]:
    constants = simulator.constants()
    state = _started(simulator, state, commands)

    def advance(state: State, command: Array) -> tuple[State, Any]:
        state, info = simulator.step(state, command, constants)
        return state, keep(state, info)

    return jax.lax.scan(jax.checkpoint(advance) if checkpoint else advance, state, jnp.asarray(commands))


def _started(simulator: Simulator, state: State, commands: Array) -> State:
    """The state with room for what it remembers; without steps there is no first command."""
    return simulator.started(state, commands[0]) if len(commands) else state


class Trajectory(eqx.Module):
    """A recorded motion: `steps + 1` samples, the first at the start. Commands hold from their sample on."""

    time: Float[Array, "samples"]
    """[s]"""
    q: Float[Array, "samples nq"]
    v: Float[Array, "samples nv"]
    command: Float[Array, "samples nu"]
    """The last command is repeated at the last sample."""
    sensors: dict[str, Float[Array, "samples *components"]]
    """Reading of each sensor by name."""
    info: StepInfo
    """Diagnostics of each step."""
    end: State
    """The state after the last step, from which the motion can go on."""


def record(
    simulator: Simulator, state: State, commands: Float[Array, "steps nu"], *, backend: Backend | None = None
) -> Trajectory:
    """The motion from `state` under these commands, with all sensors read at every sample.

    Args:
        simulator: The simulator.
        state: Where the robot starts.
        commands: Control of each actuator, one row per time step, held over the step.
        backend: As in `rollout`.
    """
    args = (simulator, state, jnp.asarray(commands))
    native = chosen(backend) == "native"
    samples, last, info, end = call_native(_samples, args, identity=_samples) if native else _samples(*args)
    time, q, v, commands, sensors = jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), samples, last)
    return Trajectory(time, q, v, commands, sensors, info, end)


def _samples(simulator: Simulator, state: State, commands: Array) -> tuple[tuple, tuple, StepInfo, State]:
    """What is sampled at the start of every step and at the end, diagnostics of every step, and the last state."""
    constants = simulator.constants()
    state = _started(simulator, state, commands)

    def sample(state: State, command: Array) -> tuple:
        return state.time, state.q, state.v, command, read_sensors(simulator, state, command, constants)

    def advance(state: State, command: Array) -> tuple[State, tuple]:
        after, info = simulator.step(state, command, constants)
        return after, (sample(state, command), info)

    state, (samples, info) = jax.lax.scan(advance, state, commands)
    return samples, sample(state, commands[-1]), info, state
