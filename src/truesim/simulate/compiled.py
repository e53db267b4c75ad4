"""Rollouts and their derivatives as compiled functions of batches: native kernels, or XLA on request."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.simulate.backend import Backend, plain_jax
from truesim.simulate.rollout import keep_states, rollout
from truesim.simulate.simulator import Simulator
from truesim.simulate.state import State, StepInfo

Compiled = Callable[..., Any]
"""Takes arguments like the examples, any of them with leading batch axes; returns NumPy arrays."""


def compiled(f: Callable[..., Any], *example_args: Any, backend: Backend = "native", threads: int = 1) -> Compiled:
    """`f` compiled for arguments like the examples, in the examples' own precision.

    Args:
        f: Any function that JAX can trace.
        example_args: Arguments without batch axes.
        backend: Where it runs; the results agree to rounding.
        threads: Number of threads over which a native kernel splits a batch.
    """
    if backend == "native":
        return native.compile(f, *example_args, threads=threads)
    if backend == "xla":
        return _Xla(f, example_args)
    raise ValueError(f"backend must be 'native' or 'xla', not {backend!r}")


class _Xla:
    """A function compiled by XLA, called like a native kernel."""

    def __init__(self, f: Callable[..., Any], example_args: tuple[Any, ...]):
        self._f = f
        self._ranks = [np.ndim(x) if _is_array(x) else None for x in jax.tree.leaves(example_args)]
        self._wide = any(_is_array(x) and x.dtype.itemsize == 8 for x in jax.tree.leaves(example_args))
        self._jitted: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        leaves, structure = jax.tree.flatten(args)
        arrays = [x for x in leaves if _is_array(x)]
        ranks = [r for r in self._ranks if r is not None]
        extra = tuple(np.ndim(x) - r for x, r in zip(arrays, ranks, strict=True))
        rest = tuple(None if _is_array(x) else x for x in leaves)
        with jax.enable_x64(self._wide or jax.config.read("jax_enable_x64")):
            key = (structure, extra)
            if key not in self._jitted:
                self._jitted[key] = jax.jit(self._batched(structure, rest, extra))
            return jax.tree.map(np.asarray, self._jitted[key](*arrays))

    def _batched(self, structure: Any, rest: tuple[Any, ...], extra: tuple[int, ...]) -> Callable[..., Any]:
        """The function of the arrays alone, mapped over their batch axes."""

        def flat(*arrays: Any) -> Any:
            given = iter(arrays)
            leaves = [next(given) if r is not None else s for r, s in zip(self._ranks, rest, strict=True)]
            with plain_jax():
                return self._f(*jax.tree.unflatten(structure, leaves))

        axes = [0 if count else None for count in extra]
        mapped: Callable[..., Any] = flat
        for _ in range(max(extra, default=0)):
            mapped = jax.vmap(mapped, in_axes=axes)
        return mapped


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray | np.generic | jax.Array)


def compile_rollout(
    simulator: Simulator,
    state: State,
    commands: Float[Array, "steps nu"],
    *,
    keep: Callable[[State, StepInfo], Any] = keep_states,
    backend: Backend = "native",
    threads: int = 1,
) -> Compiled:
    """`rollout(simulator, state, commands)` as one compiled function.

    Args:
        simulator: Example; all its numbers may differ from instance to instance.
        state: Example.
        commands: Example, of the number of steps wanted.
        keep: Chooses what to keep of each step.
        backend: Where it runs.
        threads: Number of threads of a native kernel.
    """

    def run(simulator: Simulator, state: State, commands: Array) -> Any:
        return rollout(simulator, state, commands, keep=keep)

    return compiled(run, simulator, state, commands, backend=backend, threads=threads)


def compile_value_and_gradient(
    loss: Callable[..., Float[Array, ""]], *example_args: Any, backend: Backend = "native", threads: int = 1
) -> Compiled:
    """A loss and its gradient with respect to all its arguments, forward and reverse pass in one function.

    Args:
        loss: A number that follows from the arguments, such as a misfit of a rollout.
        example_args: Arguments without batch axes, of floating-point numbers.
        backend: Where it runs.
        threads: Number of threads of a native kernel.
    """
    every = tuple(range(len(example_args)))
    return compiled(jax.value_and_grad(loss, argnums=every), *example_args, backend=backend, threads=threads)


def compile_jacobian(
    simulator_of: Callable[[Any], Simulator],
    theta: Any,
    state: State,
    commands: Float[Array, "steps nu"],
    *,
    backend: Backend = "native",
    threads: int = 1,
) -> Compiled:
    """The states of a rollout and their derivatives with respect to parameters and the initial state.

    With the step's own Jacobians A (by state) and B (by parameters), the sensitivities follow X <- A X + B: the cost
    of a step does not grow with the number of steps. The result is a function of (theta, state, commands) that returns
    the configurations and velocities after each step, one row a step, and their derivatives, with one column for every
    number of `theta` and then of the initial configuration and velocity.

    Args:
        simulator_of: Makes the simulator from parameters.
        theta: Example of the parameters.
        state: Example.
        commands: Example, of the number of steps wanted.
        backend: Where it runs.
        threads: Number of threads of a native kernel.
    """

    def run(theta: Any, state: State, commands: Array) -> tuple[Array, Array]:
        return sensitivities(simulator_of, theta, state, commands)

    return compiled(run, theta, state, commands, backend=backend, threads=threads)


def sensitivities(
    simulator_of: Callable[[Any], Simulator], theta: Any, state: State, commands: Float[Array, "steps nu"]
) -> tuple[Float[Array, "steps nx"], Float[Array, "steps nx columns"]]:
    """States after each step and their derivatives, as `compile_jacobian` describes them."""
    parameters, unflatten = ravel_pytree(theta)
    size_q = math.prod(jnp.shape(state.q))

    def step(x: Array, parameters: Array, state: State, command: Array) -> tuple[Array, State]:
        before = dataclasses.replace(state, q=x[:size_q], v=x[size_q:])
        after, _ = simulator_of(unflatten(parameters)).step(before, command)
        return jnp.concatenate([after.q, after.v]), after

    def advance(carry: tuple[State, Array], command: Array) -> tuple[Any, tuple[Array, Array]]:
        state, X = carry
        x = jnp.concatenate([state.q, state.v])
        (A, B), state = jax.jacfwd(step, argnums=(0, 1), has_aux=True)(x, parameters, state, command)
        X = A @ X + jnp.concatenate([B, jnp.zeros((len(x), len(x)))], axis=1)
        return (state, X), (jnp.concatenate([state.q, state.v]), X)

    commands, size = jnp.asarray(commands), size_q + math.prod(jnp.shape(state.v))
    X = jnp.concatenate([jnp.zeros((size, len(parameters))), jnp.eye(size)], axis=1)
    simulator, state = simulator_of(theta), jax.tree.map(jnp.asarray, state)
    if simulator.learned is not None and simulator.learned.remembers:
        raise TruesimError("A network that remembers is more than configuration and velocity: differentiate a rollout.")
    state = simulator.started(state, commands[0])
    return jax.lax.scan(advance, (state, X), commands)[1]
