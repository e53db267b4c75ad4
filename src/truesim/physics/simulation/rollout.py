"""Rollouts: many steps under given commands or a controller, and the trajectory that they make."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.core.typing import Array, Float
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation.backend import Backend, call_native, call_xla, chosen
from truesim.physics.simulation.function_tree import FunctionTree
from truesim.physics.simulation.observation import observe
from truesim.physics.simulation.reverse_mode import recomputed, varying
from truesim.physics.simulation.routine_loops import closed_loop, ignores_info
from truesim.physics.simulation.sensors import read_sensors
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State, StepInfo
from truesim.physics.simulation.step_routine import StepRoutine, differentiable_routine
from truesim.physics.simulation.table_step import engine_of, roll

Controller = Callable[[State, Any, Float[Array, ""]], tuple[Float[Array, " nu"], Any]]
"""From state, memory and time [s] to the command of the next step and the new memory; memory is any tree of arrays."""
Keep = Callable[[State, StepInfo], Any]
"""From the state after a step, and its diagnostics, to any tree of arrays."""


def keep_states(state: State, info: StepInfo) -> State:
    """Keep the state after each step, without the parts that only the next step needs."""
    return dataclasses.replace(state, history=None, impulses=None, memory=None, acceleration=None)


def rollout(
    simulator: Simulator,
    state: State,
    control: Float[Array, "steps nu"] | Controller,
    *,
    steps: int | None = None,
    memory: Any = None,
    keep: Keep = keep_states,
    checkpoint: bool = True,
    backend: Backend | None = None,
) -> tuple[Any, Any]:
    """Simulate many steps, open or closed loop.

    A function is compiled once for all calls with the same code, whichever object it is: a lambda in a loop is not
    compiled again. JAX arrays that `control` and `keep` refer to are inputs, through which derivatives flow; numbers
    of Python and NumPy arrays in them are constants.

    Args:
        simulator: The simulator.
        state: Initial state, from `simulator.initial_state()`.
        control: Commands, one row per time step, held over the step; or a controller
            `(state, memory, time) -> (command, memory)`.
        steps: Number of time steps under a controller.
        memory: Initial memory of a controller: any tree of arrays, which keeps its structure.
        keep: Selects what to keep of each step, such as `lambda state, info: state.q`.
        checkpoint: Whether reverse mode stores only the states and the solutions of rigid contact, and computes the
            rest of each step again, instead of storing every intermediate number.
        backend: `native` runs all steps as one native kernel, the default on a CPU; `xla` is a `jax.lax.scan`.

    Returns:
        The last state, with a controller the pair of last state and last memory; and what `keep` returned after each
        step, stacked over steps.
    """
    if callable(control):
        routine = differentiable_routine(simulator) if backend != "xla" else None
        if routine is not None and ignores_info(keep, state):
            end, (_, kept) = _run_routine(
                routine, simulator, state, control, keep, (_checked(steps), checkpoint, memory)
            )
            return end, kept
        run = functools.partial(_closed_loop, _checked(steps), checkpoint)
        args: tuple[Any, ...] = (simulator, state, _arrays(memory), FunctionTree(control), FunctionTree(keep))
        return _call(run, args, (_closed_loop, steps, checkpoint), backend)
    _refuse_loop_arguments(steps, memory)
    if keep is keep_states and (engine := _engine(simulator, state, control, backend)) is not None:
        return _rolled(engine, simulator, state, np.asarray(control))
    if keep is keep_states and backend != "xla" and len(control):
        routine = differentiable_routine(simulator)
        if routine is not None:
            return routine.rollout(_started(simulator, state, jnp.asarray(control)), control)
    constrained = simulator.constraint_contact is not None and backend != "xla" and len(control) > 0
    if constrained and keep is not keep_states and ignores_info(keep, state):
        last, states = rollout(simulator, state, control, checkpoint=checkpoint, backend=backend)
        return last, jax.vmap(lambda state: keep(state, None))(states)  # type: ignore[arg-type]
    args = (simulator, state, control, FunctionTree(keep))
    return _call(functools.partial(_open_loop, checkpoint), args, (_open_loop, checkpoint), backend)


def _open_loop(checkpoint: bool, simulator: Simulator, state: State, commands: Array, keep: Keep) -> tuple[State, Any]:
    constants = simulator.constants()
    state = varying(_started(simulator, state, commands), (simulator, commands))

    def advance(state: State, command: Array) -> tuple[State, Any]:
        state, info = simulator.step(state, command, constants)
        return state, keep(state, info)

    return jax.lax.scan(recomputed(advance) if checkpoint else advance, state, jnp.asarray(commands))


def _closed_loop(
    steps: int, checkpoint: bool, simulator: Simulator, state: State, memory: Any, controller: Controller, keep: Keep
) -> tuple[tuple[State, Any], Any]:
    constants = simulator.constants()
    state = simulator.started(state, _command(controller, state, memory)[0])
    state = varying(state, (simulator, memory, controller))

    def advance(loop: tuple[State, Any], _: None) -> tuple[tuple[State, Any], Any]:
        state, memory = loop
        command, memory = _command(controller, state, memory)
        state, info = simulator.step(state, command, constants)
        return (state, memory), keep(state, info)

    return jax.lax.scan(recomputed(advance) if checkpoint else advance, (state, memory), length=steps)


def _run_routine(
    routine: StepRoutine,
    simulator: Simulator,
    state: State,
    controller: Controller,
    keep: Keep,
    loop: tuple[int, bool, Any],
) -> tuple[tuple[State, Any], Any]:
    """Closed loop by the routines; `loop` has the steps, whether to checkpoint, and the initial memory."""
    steps, checkpoint, memory = loop

    def run(routine: StepRoutine, state: State, memory: Any, controller: Controller, keep: Keep) -> Any:
        command = functools.partial(_command, controller)
        return closed_loop(steps, checkpoint, routine, state, memory, command, keep)

    memory = _arrays(memory)
    state = simulator.started(state, _command(controller, state, memory)[0])
    args = (routine, state, memory, FunctionTree(controller), FunctionTree(keep))
    return call_xla(run, args, identity=(closed_loop, steps, checkpoint))


def _engine(simulator: Simulator, state: State, control: Any, backend: Backend | None) -> Engine | None:
    """Engine of the table-driven routines, if they can simulate this motion and nothing is traced."""
    traced = any(is_traced(x) for x in jax.tree.leaves((simulator, state, control)))
    if simulator.constraint_contact is None or traced or backend == "xla" or native.compiling() or not len(control):
        return None
    found = engine_of(simulator)
    return found if isinstance(found, Engine) else None


def _rolled(engine: Engine, simulator: Simulator, state: State, commands: np.ndarray) -> tuple[State, State]:
    """Last state and all states after a step, by the table-driven routines."""
    state = _started(simulator, state, jnp.asarray(commands))
    rolled = roll(engine, state, commands)
    time = state.time + simulator.timestep * jnp.arange(1.0, len(commands) + 1)
    kept = State(jnp.asarray(rolled.qpos[0]), jnp.asarray(rolled.qvel[0]), time)
    last = dataclasses.replace(
        state, q=kept.q[-1], v=kept.v[-1], time=time[-1], acceleration=jnp.asarray(rolled.warmstart[0, -1])
    )
    return last, kept


def _rolled_samples(
    engine: Engine, simulator: Simulator, state: State, commands: np.ndarray, diagnostics: bool
) -> tuple[tuple, tuple, StepInfo | None, State]:
    """Samples and diagnostics of a motion by the table-driven routines, as `_samples` returns them."""
    state = _started(simulator, state, jnp.asarray(commands))
    rolled = roll(engine, state, commands)
    last = dataclasses.replace(state, q=rolled.qpos[0, -1], v=rolled.qvel[0, -1], acceleration=rolled.warmstart[0, -1])
    beyond = roll(engine, last, commands[-1:])  # one step more: the acceleration at the last sample
    solved = np.concatenate([rolled.warmstart[0], beyond.warmstart[0]])
    q = np.concatenate([np.asarray(state.q)[None], rolled.qpos[0]])
    v = np.concatenate([np.asarray(state.v)[None], rolled.qvel[0], beyond.qvel[0]])
    time = np.asarray(state.time) + float(simulator.timestep) * np.arange(0.0, len(commands) + 1)
    commands = np.concatenate([commands, commands[-1:]])
    samples, info = observe(simulator, (q, v, solved), time, commands, diagnostics)
    every, final = (jax.tree.map(lambda x, at=at: x[at], samples) for at in (slice(None, -1), -1))
    if info is not None:
        info = dataclasses.replace(info, iterations=jnp.asarray(rolled.iterations[0]))
    end = jax.tree.map(jnp.asarray, dataclasses.replace(last, time=final[0]))
    return every, final, info, end


class Trajectory(eqx.Module):
    """A recorded motion: `steps + 1` samples, the first at the start. Commands hold from their sample on."""

    time: Float[Array, " samples"]
    """[s]"""
    q: Float[Array, "samples nq"]
    v: Float[Array, "samples nv"]
    command: Float[Array, "samples nu"]
    """The last command is repeated at the last sample."""
    sensors: dict[str, Float[Array, " samples *components"]]
    """Measurements of each sensor by name."""
    info: StepInfo | None
    """Diagnostics of each step, if they were asked for."""
    end: State
    """State after the last step, from which the motion can continue."""
    memory: Any = None
    """Memory of the controller after the last step."""


def record(
    simulator: Simulator,
    state: State,
    control: Float[Array, "steps nu"] | Controller,
    *,
    steps: int | None = None,
    memory: Any = None,
    backend: Backend | None = None,
    diagnostics: bool = True,
) -> Trajectory:
    """Simulate and record a motion, with all sensors read at every sample.

    Args:
        simulator: The simulator.
        state: Initial state, from `simulator.initial_state()`.
        control: Commands, one row per time step, or a controller, as in `rollout`.
        steps: Number of time steps under a controller.
        memory: Initial memory of a controller.
        backend: As in `rollout`.
        diagnostics: Whether forces of the steps are needed. With the contact of an MJCF file they follow from the
            motion by inverse dynamics, which is compiled for each robot; without, `info` is then None.
    """
    routine = differentiable_routine(simulator) if callable(control) and backend != "xla" else None
    if callable(control) and routine is not None:
        (_, memory), (commands, _) = _run_routine(
            routine, simulator, state, control, keep_states, (_checked(steps), True, memory)
        )
        replayed = record(simulator, state, commands, backend=backend, diagnostics=diagnostics)
        return dataclasses.replace(replayed, memory=memory)
    if callable(control):
        run = functools.partial(_closed_samples, _checked(steps))
        args: tuple[Any, ...] = (simulator, state, _arrays(memory), FunctionTree(control))
        (samples, last, info, end), memory = _call(run, args, (_closed_samples, steps), backend)
    else:
        _refuse_loop_arguments(steps, memory)
        if (engine := _engine(simulator, state, control, backend)) is not None:
            samples, last, info, end = _rolled_samples(engine, simulator, state, np.asarray(control), diagnostics)
        else:
            args = (simulator, state, control if isinstance(control, jax.Array) else np.asarray(control))
            samples, last, info, end = _call(_samples, args, _samples, backend)
    time, q, v, commands, sensors = jax.tree.map(_append, samples, last)
    return Trajectory(time, q, v, commands, sensors, info, end, memory)


def _append(samples: Array, last: Array) -> Array:
    """Samples with one more; outside of traces by NumPy, since XLA would compile and keep a program for each length."""
    if is_traced(samples) or is_traced(last):
        return jnp.concatenate([samples, last[None]])
    return jax.device_put(np.concatenate([np.asarray(samples), np.asarray(last)[None]]))


def _samples(simulator: Simulator, state: State, commands: Array) -> tuple[tuple, tuple, StepInfo, State]:
    """Samples at the start of every step and at the end, diagnostics of every step, and the last state."""
    constants = simulator.constants()
    state = _started(simulator, state, commands)

    def advance(state: State, command: Array) -> tuple[State, tuple]:
        after, info = simulator.step(state, command, constants)
        return after, (_sample(simulator, constants, state, command), info)

    state, (samples, info) = jax.lax.scan(advance, state, jnp.asarray(commands))
    return samples, _sample(simulator, constants, state, commands[-1]), info, state


def _closed_samples(
    steps: int, simulator: Simulator, state: State, memory: Any, controller: Controller
) -> tuple[tuple[tuple, tuple, StepInfo, State], Any]:
    """The same under a controller, and its last memory."""
    constants = simulator.constants()
    state = simulator.started(state, _command(controller, state, memory)[0])

    def advance(loop: tuple[State, Any], _: None) -> tuple[tuple[State, Any], tuple]:
        state, memory = loop
        command, memory = _command(controller, state, memory)
        after, info = simulator.step(state, command, constants)
        return (after, memory), (_sample(simulator, constants, state, command), info)

    (state, memory), (samples, info) = jax.lax.scan(advance, (state, memory), length=steps)
    return (samples, _sample(simulator, constants, state, samples[3][-1]), info, state), memory


def _sample(simulator: Simulator, constants: Any, state: State, command: Array) -> tuple:
    return state.time, state.q, state.v, command, read_sensors(simulator, state, command, constants)


def _command(controller: Controller, state: State, memory: Any) -> tuple[Array, Any]:
    """Command and new memory, as arrays of JAX's precision."""
    command, memory = controller(state, memory, state.time)
    return jnp.asarray(command, dtype=state.q.dtype), _arrays(memory)


def _started(simulator: Simulator, state: State, commands: Array) -> State:
    """The state with all its parts; without steps there is no first command."""
    return simulator.started(state, commands[0]) if len(commands) else state


def _call(f: Callable[..., Any], args: tuple[Any, ...], identity: Any, backend: Backend | None) -> Any:
    on_host = args[0].constraint_contact is not None  # its collision functions are no native code
    if on_host and backend == "native":
        raise TruesimError("MujocoContact with these choices has no native kernel: leave backend out, or give 'xla'.")
    if on_host or chosen(backend) == "xla":
        return call_xla(f, args, identity=identity)
    return call_native(f, args, identity=identity)


def _arrays(tree: Any) -> Any:
    return jax.tree.map(jnp.asarray, tree)


def _checked(steps: int | None) -> int:
    if steps is None or steps < 1:
        raise TruesimError(f"A controller needs the number of time steps, steps=...; it is {steps}.")
    return steps


def _refuse_loop_arguments(steps: int | None, memory: Any) -> None:
    if steps is not None or memory is not None:
        raise TruesimError("steps and memory belong to a controller; an array of commands has one row per time step.")
