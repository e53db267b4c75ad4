"""Derivatives of one step on the tangent space of configurations, and the recursion of sensitivities along a motion.

A small change of a state is a vector `dx = [dq, dv, dm]`: `dq` in the tangent space of the configuration (nv numbers;
rotation vectors for ball and free joints), `dv` of the velocity, and `dm` of what networks remember, if anything.
With A the derivative of a step by the state and B that by parameters, sensitivities follow `X <- A X + B`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from truesim import native
from truesim.core.typing import Array, Float
from truesim.physics.augmentation.memory import NetworkMemory
from truesim.physics.dynamics import difference, integrate
from truesim.physics.model.model import Model
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State
from truesim.physics.simulation.step_routine import differentiable_routine

StateArrays = tuple[Array, Array, NetworkMemory | None]
"""Arrays of a state that depend on the parameters: configuration, velocity, memory of the networks."""


def linearize(
    simulator: Simulator, state: State, command: Float[Array, " nu"]
) -> tuple[Float[Array, "nx nx"], Float[Array, "nx nu"]]:
    """Jacobians A and B of one step: `dx' = A dx + B du` with `dx = [dq, dv]` in the tangent space, `nx = 2 nv`.

    Past commands of a delay and the memory of networks are held; at zero delay B is the whole effect of the command.
    With `MujocoContact` the routines compute them, inside `jit` and `vmap` too (`StepRoutine.linearize`).

    Args:
        simulator: The simulator.
        state: State to linearize at.
        command: Control of each actuator, held over the step.
    """
    routine = differentiable_routine(simulator)
    if routine is not None:
        return routine.linearize(state, command)[1:]
    constants = simulator.constants()
    command = jnp.asarray(command)
    state = simulator.started(jax.tree.map(jnp.asarray, state), command)
    model, nx = simulator.model, 2 * simulator.model.nv

    def step(command: Array, state: State) -> State:
        return simulator.step(state, command, constants)[0]

    _, J = step_jacobian(step, model, (command, state), jnp.eye(command.size))
    return J[:nx, command.size :][:, :nx], J[:nx, : command.size]


def jacobian(
    f: Callable[[Any, State], Any], model: Model, at: tuple[Any, State], tangents: Any
) -> tuple[Any, Float[Array, "rows columns"]]:
    """Value of `f(numbers, state)`, and derivatives of its last result by the numbers and then by the state.

    Args:
        f: Function of any tree of floating-point numbers (parameters, a command) and of a state. It returns any tree
            and a vector, and is traced once.
        model: The robot; only its structure counts.
        at: Numbers and state to differentiate at.
        tangents: Tree like the numbers with a leading axis, the directions of the first columns; None for numbers that
            do not move. The other columns are a basis of the state's tangent space.
    """
    numbers, state = at
    nx = tangent_size(state)
    count = next((len(t) for t in jax.tree.leaves(tangents)), 0)

    def along(numbers: Any, arrays: StateArrays) -> Any:
        q, v, memory = arrays
        return f(numbers, dataclasses.replace(state, q=q, v=v, memory=memory))

    basis = native.columns(lambda dx: state_arrays(perturb(model, state, dx)), (jnp.zeros(nx),), (jnp.eye(nx),))[1]
    first = jax.tree.map(lambda t: jnp.concatenate([t, jnp.zeros((nx, *t.shape[1:]), t.dtype)]), tangents)
    last = jax.tree.map(lambda t: jnp.concatenate([jnp.zeros((count, *t.shape[1:]), t.dtype), t]), basis)
    (value, result), (_, J) = native.columns(along, (numbers, state_arrays(state)), (first, last))
    return value, fill_zeros(J, result, count + nx).T


def step_jacobian(
    step: Callable[[Any, State], State], model: Model, at: tuple[Any, State], tangents: Any
) -> tuple[State, Float[Array, "nx columns"]]:
    """State after a step, and its derivatives `[B, A]` by the numbers and by the state before, in the tangent space.

    Args:
        step: Function of numbers and a state.
        model: The robot; only its structure counts.
        at: Numbers and state before the step.
        tangents: Directions of the first columns, as in `jacobian`.
    """

    def moved(numbers: Any, state: State) -> tuple[State, Array]:
        after = step(numbers, state)
        return after, displacement(model, after, jax.lax.stop_gradient(after))

    return jacobian(moved, model, at, tangents)


def propagate(J: Float[Array, "rows columns"], X: Float[Array, "nx columns"]) -> Float[Array, "rows columns"]:
    """`A X + B` for `J = [B, A]`: the first columns of X belong to the numbers; B is zero in all others."""
    count = J.shape[1] - X.shape[0]
    return J[:, count:] @ X + widen(J[:, :count], X.shape[1])


def perturb(model: Model, state: State, dx: Float[Array, " nx"]) -> State:
    """The state after a small change in its tangent space."""
    nv = state.v.size
    q, memory = integrate(model, state.q, dx[:nv]), state.memory
    if memory is not None:
        flat, unflatten = ravel_pytree(memory)
        memory = unflatten(flat + dx[2 * nv :])
    return dataclasses.replace(state, q=q, v=state.v + dx[nv : 2 * nv], memory=memory)


def displacement(model: Model, state: State, start: State) -> Float[Array, " nx"]:
    """The small change from `start` to `state` in the tangent space: the inverse of `perturb`."""
    moves = difference(model, state.q, start.q), state.v - start.v
    remembered = [] if start.memory is None else [flat_memory(state.memory) - flat_memory(start.memory)]
    return jnp.concatenate([*moves, *remembered])


def state_arrays(state: State) -> StateArrays:
    """Arrays of a state that move."""
    return state.q, state.v, state.memory


def tangent_size(state: State) -> int:
    """Dimension of the tangent space of a state."""
    return int(2 * state.v.size + flat_memory(state.memory).size)


def flat_memory(memory: NetworkMemory | None) -> Float[Array, " remembered"]:
    """Memory of networks as one vector."""
    return jnp.zeros(0) if memory is None else ravel_pytree(memory)[0]


def fill_zeros(derivatives: Any, values: Any, count: int) -> Any:
    """Derivatives along `count` directions, with zeros in place of None for values that do not move."""
    tree: Any
    leaves, tree = jax.tree.flatten(values)
    given = zip(tree.flatten_up_to(derivatives), leaves, strict=True)
    return jax.tree.unflatten(tree, [jnp.zeros((count, *x.shape), x.dtype) if d is None else d for d, x in given])


def widen(B: Float[Array, "rows size"], count: int) -> Float[Array, "rows count"]:
    """The matrix with columns of zeros appended, `count` columns in all."""
    return jnp.concatenate([B, jnp.zeros((B.shape[0], count - B.shape[1]))], axis=1)
