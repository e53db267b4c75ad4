"""Many steps: a scan over commands, and the trajectory it leaves."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.simulate.sensors import read_sensors
from truesim.simulate.simulator import Simulator
from truesim.simulate.state import State, StepInfo


def keep_states(state: State, info: StepInfo) -> State:
    """Keeps the state after each step."""
    return state


def rollout(
    simulator: Simulator,
    state: State,
    commands: Float[Array, "steps nu"],
    *,
    keep: Callable[[State, StepInfo], Any] = keep_states,
    checkpoint: bool = True,
) -> tuple[State, Any]:
    """The last state, and what `keep` returned after each step, stacked over steps.

    Args:
        simulator: The simulator.
        state: Where the robot starts.
        commands: Control of each actuator, one row per time step, held over the step.
        keep: Chooses what to keep of each step, such as `lambda state, info: state.q`.
        checkpoint: Whether reverse mode stores only the states and computes each step again, instead of storing every
            intermediate number.
    """
    constants = simulator.constants()

    def advance(state: State, command: Array) -> tuple[State, Any]:
        state, info = simulator.step(state, command, constants)
        return state, keep(state, info)

    return jax.lax.scan(jax.checkpoint(advance) if checkpoint else advance, state, jnp.asarray(commands))


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


def record(simulator: Simulator, state: State, commands: Float[Array, "steps nu"]) -> Trajectory:
    """The motion from `state` under these commands, with all sensors read at every sample."""
    commands = jnp.asarray(commands)
    _, (states, info) = rollout(simulator, state, commands, keep=lambda state, info: (state, info))
    states = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, states)
    commands = jnp.concatenate([commands, commands[-1:]])
    sensors = jax.lax.map(lambda sample: read_sensors(simulator, *sample), (states, commands))
    return Trajectory(states.time, states.q, states.v, commands, sensors, info)
