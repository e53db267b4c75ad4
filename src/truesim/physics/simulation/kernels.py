"""Compiled functions of batches: values, gradients, Jacobians and pullbacks as native kernels, or by XLA.

A compiled function takes arguments like its examples, any of them with leading batch axes, and returns NumPy arrays.
`backend="native"` makes one kernel of vector machine code; `backend="xla"` uses `jax.jit` and `jax.vmap`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.physics.simulation.backend import Backend, plain_jax
from truesim.physics.simulation.batches import BatchedXla, Xla
from truesim.physics.simulation.linearize import propagate, step_jacobian
from truesim.physics.simulation.rollout import Keep, keep_states, rollout
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State

Compiled = Callable[..., Any]
"""Takes arguments like the examples, any of them with leading batch axes; returns NumPy arrays."""


def compile(  # noqa: A001
    f: Callable[..., Any],
    *example_args: Any,
    backend: Backend = "native",
    threads: int = 1,
    shared: Sequence[int] = (),
    batch: int | None = None,
) -> Compiled:
    """Compile any function that JAX can trace, in the precision of the examples.

    Args:
        f: Function of trees of arrays.
        example_args: Arguments without batch axes.
        backend: Where it runs; the results agree to rounding.
        threads: Number of threads over which a native kernel splits a batch.
        shared: Positions of arguments that all batch elements share, such as the weights of a large network.
        batch: With XLA, number of batch elements that are computed at once, for one axis of any length: it compiles
            once instead of once for each length, and products with shared arguments become products of matrices.
    """
    if backend == "native":
        return native.compile(f, *example_args, threads=threads)
    if backend != "xla":
        raise ValueError(f"backend must be 'native' or 'xla', not {backend!r}")
    if batch is None:
        return Xla(f, example_args)
    axes = [None if k in shared else 0 for k in range(len(example_args))]
    return BatchedXla(jax.vmap(f, axes), example_args, tuple(shared), batch)


def compile_rollout(
    simulator: Simulator,
    state: State,
    commands: Float[Array, "steps nu"],
    *,
    keep: Keep = keep_states,
    backend: Backend = "native",
    threads: int = 1,
) -> Compiled:
    """Compile `rollout(simulator, state, commands)` as one function; closed loops go through `compile`.

    Args:
        simulator: Example; all its numbers may differ from one batch element to the next.
        state: Example.
        commands: Example, with the number of steps wanted.
        keep: Selects what to keep of each step.
        backend: Where it runs.
        threads: Number of threads of a native kernel.
    """

    def run(simulator: Simulator, state: State, commands: Array) -> Any:
        return rollout(simulator, state, commands, keep=keep)

    return compile(run, simulator, state, commands, backend=backend, threads=threads)


def compile_value_and_gradient(
    loss: Callable[..., Float[Array, ""]], *example_args: Any, backend: Backend = "native", threads: int = 1
) -> Compiled:
    """Compile a loss with its gradient by all arguments, forward and reverse pass in one function.

    Args:
        loss: Scalar function of the arguments, such as a misfit of a rollout.
        example_args: Arguments without batch axes, of floating-point numbers.
        backend: Where it runs.
        threads: Number of threads of a native kernel.
    """
    every = tuple(range(len(example_args)))
    return compile(jax.value_and_grad(loss, argnums=every), *example_args, backend=backend, threads=threads)


def compile_pullback(
    f: Callable[..., Any],
    *example_args: Any,
    by: Sequence[int],
    backend: Backend = "native",
    shared: Sequence[int] = (),
    batch: int | None = None,
) -> Compiled:
    """Compile the pullback of a function: gradients of `sum(cotangents * f(*args))`, in reverse mode.

    The compiled function takes `(*args, cotangents)`, with cotangents like the results of `f`, and returns one
    gradient for each position in `by`. Gradients by shared arguments are sums over the batch, in parts: add them up
    along the first axis.

    Args:
        f: Function of trees of arrays; results are trees of arrays.
        example_args: Arguments without batch axes.
        by: Positions of the arguments to differentiate by.
        backend: Where it runs.
        shared: Positions of arguments that all batch elements share.
        batch: As in `compile`.
    """
    with plain_jax():
        cotangents = jax.eval_shape(f, *example_args)

    def pull(f: Callable[..., Any], *all_args: Any) -> tuple[Any, ...]:
        *args, counts = all_args

        def of(*chosen: Any) -> Any:
            given = dict(zip(by, chosen, strict=True))
            return f(*[given.get(k, x) for k, x in enumerate(args)])

        return jax.vjp(of, *[args[k] for k in by])[1](counts)

    if backend == "xla" and batch is not None:
        axes = [None if k in shared else 0 for k in range(len(example_args))]
        together = jax.vmap(f, axes)

        def summed(*args: Any) -> tuple[Any, ...]:
            found = zip(by, pull(together, *args), strict=True)
            return tuple(jax.tree.map(lambda x: x[None], g) if k in shared else g for k, g in found)

        return BatchedXla(summed, (*example_args, cotangents), tuple(shared), batch, weighted=(len(example_args),))
    return compile(lambda *args: pull(f, *args), *example_args, cotangents, backend=backend)


def compile_jacobian(
    simulator_of: Callable[[Any], Simulator],
    theta: Any,
    state: State,
    commands: Float[Array, "steps nu"],
    *,
    backend: Backend = "native",
    threads: int = 1,
) -> Compiled:
    """Compile the states of a rollout and their derivatives by parameters and the initial state.

    With the step's own Jacobians A (by state) and B (by parameters), the sensitivities follow X <- A X + B: the cost
    of a step does not grow with the number of steps. The result is a function of (theta, state, commands) that returns
    the configurations and velocities after each step, one row a step, and their derivatives in the tangent space
    (`2 nv` rows), with one column for every number of `theta` and then `2 nv` for the initial state.

    Args:
        simulator_of: Makes the simulator from parameters.
        theta: Example of the parameters.
        state: Example.
        commands: Example, with the number of steps wanted.
        backend: Where it runs.
        threads: Number of threads of a native kernel.
    """

    def run(theta: Any, state: State, commands: Array) -> tuple[Array, Array]:
        return sensitivities(simulator_of, theta, state, commands)

    return compile(run, theta, state, commands, backend=backend, threads=threads)


def sensitivities(
    simulator_of: Callable[[Any], Simulator], theta: Any, state: State, commands: Float[Array, "steps nu"]
) -> tuple[Float[Array, "steps nq_nv"], Float[Array, "steps nx columns"]]:
    """States after each step and their derivatives, as `compile_jacobian` describes them."""
    parameters, unflatten = ravel_pytree(theta)
    commands, simulator = jnp.asarray(commands), simulator_of(theta)
    if simulator.learned is not None and simulator.learned.remembers:
        raise TruesimError("Networks with memory have more state than q and v: differentiate a rollout instead.")
    state = simulator.started(jax.tree.map(jnp.asarray, state), commands[0])
    directions, nx = jnp.eye(parameters.size), 2 * simulator.model.nv

    def advance(carry: tuple[State, Array], command: Array) -> tuple[Any, tuple[Array, Array]]:
        state, X = carry

        def step(parameters: Array, state: State) -> State:
            return simulator_of(unflatten(jnp.asarray(parameters))).step(state, command)[0]

        state, J = step_jacobian(step, simulator.model, (parameters, state), directions)
        X = propagate(J, X)
        return (state, X), (jnp.concatenate([state.q, state.v]), X)

    X = jnp.concatenate([jnp.zeros((nx, parameters.size)), jnp.eye(nx)], axis=1)
    return jax.lax.scan(advance, (state, X), commands)[1]
