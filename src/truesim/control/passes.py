"""Passes over a horizon, as functions to be compiled: backward and forward pass, and costs of simulations."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.control.transcription import Expansion, Transcription
from truesim.core.typing import Array, Float, Int
from truesim.math import dense
from truesim.math.box_newton import held, minimize_in_box

FEEDBACK_DAMPING = 10.0
"""Damping up to which the feedback, too, holds the next state at the motion; beyond it the feedback fades, so that
short enough steps always decrease the cost, also with commands at their bounds."""
SMALLEST_CURVATURE = 1e-12
"""Curvature of commands that neither cost nor move anything."""


class Policy(NamedTuple):
    """Feedback `du = k + K [dx, dp]` of every knot, and what it changes."""

    feedback: Float[Array, "steps nu n+1"]
    """`[k, K]` of every knot."""
    gradient: Float[Array, "steps nu"]
    """Derivative of the cost by each command, along the motion; exact where there are no defects."""
    prediction: Float[Array, "2"]
    """First-order and whole predicted change of the cost by a step of length one, at fixed designed numbers."""
    design: Float[Array, "np np+2"]
    """Derivatives by the designed numbers at the first knot: first order under the policy, value function's gradient,
    and value function's Hessian."""


class RiccatiCarry(NamedTuple):
    """Value function of a knot and what is summed up on the way."""

    Vx: Array
    Vxx: Array
    costate: Array
    """Derivative of the cost by the state at fixed commands."""
    closed: Array
    """Derivative of the cost by the state under the policy."""
    first: Array
    change: Array


class CommandBox(NamedTuple):
    """Bounds of the changes of the commands of a knot."""

    low: Float[Array, " nu"]
    high: Float[Array, " nu"]
    derivatives: tuple[Float[Array, "nu n"], Float[Array, "nu n"]] | None = None
    """Derivatives of the bounds by the state and the designed numbers; None if they are constant."""


def backward_pass(
    functions: Transcription,
    expansions: tuple[Float[Array, "steps size"], Float[Array, "steps nx"]],
    end: tuple[Array, Array, Array, Array],
    u: Float[Array, "steps nu"],
    limits: tuple[Array, Array] | None,
    moving: Int[np.ndarray, " n"],
    damping: Float[Array, ""],
) -> Policy:
    """Riccati recursion from the last knot to the first, with bounds of the commands (Tassa 2014).

    Defects enter as in multiple shooting: the value function of the next knot is taken at `A dx + B du + gap`.

    Args:
        functions: Functions of the task.
        expansions: Expansion and defect of every knot.
        end: States of all knots, designed numbers, `theta` and row of the last knot.
        u: Commands.
        limits: Bounds of every command that do not depend on the state; None without bounds.
        moving: Commands that change; bounds fix all others.
        damping: Weight of the change of the next state: larger gives shorter steps.
    """
    nx, (states, p, theta, row) = functions.nx, end

    def box_at(z: Array, u: Array, bounds: tuple[Array, Array] | None) -> CommandBox | None:
        if bounds is None:
            return None
        low, high = functions.bounds(z, p, theta, *bounds)
        derivatives = None if functions.servo_forces is None else functions.bound_derivatives(z, p, theta, *bounds)
        return CommandBox(low - u, high - u, derivatives)

    def step(carry: RiccatiCarry, knot: tuple) -> tuple[RiccatiCarry, tuple]:
        vector, gap, *here = knot
        box = box_at(*here)
        own = lambda H, Qu, Qux: gains(H, Qu, Qux, box, moving)  # noqa: E731
        return riccati_step(functions.unpack(vector), gap, carry, damping, own)

    last = first_carry(*functions.expand_end(states[-1], p, theta, row))
    knots = *expansions, states[:-1], u, limits
    carry, (feedback, gradient) = jax.lax.scan(step, last, knots, reverse=True)
    design = jnp.concatenate([carry.closed[nx:, None], carry.Vx[nx:, None], carry.Vxx[nx:, nx:]], axis=1)
    return Policy(feedback, gradient, jnp.stack([carry.first, carry.change]), design)


def first_carry(lx: Array, lxx: Array) -> RiccatiCarry:
    """Value function at the last knot, from gradient and Hessian of the final cost."""
    return RiccatiCarry(lx, lxx, lx, lx, np.zeros(()), np.zeros(()))


def riccati_step(
    e: Expansion,
    gap: Float[Array, " nx"],
    carry: RiccatiCarry,
    damping: Float[Array, ""],
    gains: Callable[[Array, Array, Array], tuple[Array, Array]],
) -> tuple[RiccatiCarry, tuple[Float[Array, "nu n+1"], Float[Array, " nu"]]]:
    """One knot of the backward pass, on arrays of JAX or NumPy: carry of the earlier knot, feedback and gradient.

    Args:
        e: Expansion of the knot.
        gap: Its defect.
        carry: Value function of the next knot.
        damping: Weight of the change of the next state.
        gains: Feedforward and feedback `(k, K)` from a Hessian, gradient and mixed derivatives of the command.
    """
    xp = jnp if isinstance(e.A, jax.Array) else np
    nx, n = e.A.shape
    V = carry.Vxx
    Vgap = V[:, :nx] @ gap
    vx = carry.Vx + Vgap
    VA = V[:, :nx] @ e.A
    if n > nx:
        VA = jnp.asarray(VA).at[:, nx:].add(V[:, nx:])
    VB = V[:nx, :nx] @ e.B
    Qu = e.lu + e.B.T @ vx[:nx]
    Qux = e.lux + e.B.T @ VA[:nx]
    Quu = e.luu + e.B.T @ VB
    damped = Quu + damping * (e.B.T @ e.B) + SMALLEST_CURVATURE * np.eye(len(Qu))
    held_states = xp.where(damping <= FEEDBACK_DAMPING, damping, 0.0)
    k, K = gains(damped, Qu, Qux + held_states * (e.B.T @ e.A))
    gradient = e.lu + e.B.T @ carry.costate[:nx]
    effort = e.lu + e.B.T @ carry.closed[:nx]
    Vxx = e.lxx + _pull(e.A, VA) + Qux.T @ K + K.T @ Qux + K.T @ (Quu @ K)
    after = RiccatiCarry(
        Vx=e.lx + _pull(e.A, vx) + K.T @ (Quu @ k + Qu) + Qux.T @ k,
        Vxx=0.5 * (Vxx + Vxx.T),
        costate=e.lx + _pull(e.A, carry.costate),
        closed=e.lx + _pull(e.A, carry.closed) + K.T @ effort,
        first=carry.first + e.lu @ k + carry.closed[:nx] @ (e.B @ k + gap),
        change=carry.change + carry.Vx[:nx] @ gap + 0.5 * (Vgap[:nx] @ gap) + Qu @ k + 0.5 * (k @ (Quu @ k)),
    )
    return after, (xp.concatenate([k[:, None], K], axis=1), gradient)


def _pull(A: Float[Array, "nx n"], V: Float[Array, " n *columns"]) -> Float[Array, " n *columns"]:
    """`[[A], [0 I]]^T V`: designed numbers stay as they are over a step."""
    nx, n = A.shape
    pulled = A.T @ V[:nx]
    return pulled if n == nx else jnp.asarray(pulled).at[nx:].add(V[nx:])


def gains(
    H: Array, Qu: Array, Qux: Array, box: CommandBox | None, moving: Int[np.ndarray, " n"]
) -> tuple[Array, Array]:
    """Feedforward and feedback of one knot; commands at a bound follow it, and only those in `moving` change."""
    if not len(moving):
        return jnp.zeros_like(Qu), jnp.zeros_like(Qux)
    if len(moving) < len(Qu):
        some = jax.tree.map(lambda x: x[moving], box)
        k, K = gains(H[np.ix_(moving, moving)], Qu[moving], Qux[moving], some, np.arange(len(moving)))
        return jnp.zeros_like(Qu).at[moving].set(k), jnp.zeros_like(Qux).at[moving].set(K)
    if box is None:
        factors = dense.factor(H)
        return -dense.substitute(factors, Qu), -dense.substitute(factors, Qux)
    k, free = minimize_in_box(H, Qu, box.low, box.high)
    if box.derivatives is None:
        return k, -dense.solve(held(H, free), jnp.where(free[:, None], Qux, 0.0))
    at_bound = jnp.where((k <= box.low)[:, None], *box.derivatives)
    following = jnp.where(free[:, None], 0.0, at_bound)
    return k, following - dense.solve(held(H, free), jnp.where(free[:, None], Qux + H @ following, 0.0))


class Motion(NamedTuple):
    """States and commands of all knots, designed numbers, and their cost."""

    z: Float[Array, "knots nz"]
    u: Float[Array, "steps nu"]
    p: Float[Array, " np"]
    cost: Float[Array, ""]
    """Augmented cost."""


def forward_pass(
    functions: Transcription,
    motion: tuple[Array, Array, Array],
    policy: tuple[Array, Array, Array],
    length: Float[Array, ""],
    bounds: tuple[Array, Array],
    numbers: tuple[Array, Array],
) -> Motion:
    """Simulate the policy with a step length: defects shrink by the factor `1 - length` (feasibility-driven).

    A length of zero, without feedback, returns the motion itself with its cost.

    Args:
        functions: Functions of the task.
        motion: States, commands and designed numbers around which the policy was made; the initial state is kept.
        policy: Feedback `[k, K]`, defects, and the step of the designed numbers.
        length: Step length.
        bounds: Lower and upper bounds of the commands.
        numbers: `theta`, and the rows of the knots.
    """
    z, u, p = motion
    feedback, gaps, dp = policy
    theta, rows = numbers
    p, dp = p + length * dp, length * dp

    def step(carry: tuple[Array, Array], knot: tuple) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        here, cost = carry
        z, u, gains, gap, row = knot
        wanted = u + gains @ jnp.concatenate([length[None], functions.change(here, z), dp])
        command = jnp.clip(wanted, *functions.bounds(here, p, theta, *bounds))
        r = functions.terms(here, command, p, theta, row, final=False).residuals
        after = functions.moved(functions.step(here, command, p, theta), (length - 1) * gap)
        return (after, cost + 0.5 * (r @ r)), (here, command)

    knots = z[:-1], u, feedback, gaps, rows[:-1]
    start: tuple[Array, Array] = (z[0], jnp.zeros(()))
    (last, cost), (states, commands) = jax.lax.scan(step, start, knots)
    r = functions.terms(last, jnp.zeros(functions.nu), p, theta, rows[-1], final=True).residuals
    return Motion(jnp.concatenate([states, last[None]]), commands, p, cost + 0.5 * (r @ r))


def simulated_cost(
    functions: Transcription, z: Array, u: Float[Array, "steps nu"], numbers: tuple[Array, Array]
) -> Float[Array, ""]:
    """Augmented cost of a simulation of commands from a state.

    Args:
        functions: Functions of a task without designed numbers.
        z: Initial state.
        u: Commands.
        numbers: `theta`, and the rows of the knots.
    """
    theta, rows = numbers
    p = jnp.zeros(0)

    def step(carry: tuple[Array, Array], knot: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        here, cost = carry
        u, row = knot
        r = functions.terms(here, u, p, theta, row, final=False).residuals
        return (functions.step(here, u, p, theta), cost + 0.5 * (r @ r)), None

    start: tuple[Array, Array] = (z, jnp.zeros(()))
    (last, cost), _ = jax.lax.scan(step, start, (u, rows[:-1]))
    r = functions.terms(last, jnp.zeros(functions.nu), p, theta, rows[-1], final=True).residuals
    return cost + 0.5 * (r @ r)
