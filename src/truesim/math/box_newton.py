"""Convex quadratic programs within bounds as array code, for compiled functions.

Projected Newton (Bertsekas 1982; Tassa, Mansard and Todorov 2014): unknowns at a bound whose gradient points outward
are held; the others take a Newton step, which is projected onto the box at several lengths, of which the best is kept.
"""

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Bool, Float
from truesim.math import dense

ROUNDS = 20
"""Maximum number of rounds; most problems need two or three."""
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.02)
"""Lengths at which a Newton step is projected."""
ROUNDING = 1e-12
"""Decrease of the objective, relative to its size, below which the solution is found."""


def minimize_in_box(
    H: Float[Array, "n n"],
    g: Float[Array, " n"],
    low: Float[Array, " n"],
    high: Float[Array, " n"],
) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
    """Minimizer x in [low, high] of `x^T H x / 2 + g^T x`, and which unknowns are not at a bound.

    Args:
        H: Positive definite.
        g: Gradient at zero.
        low: Lower bounds, finite or not.
        high: Upper bounds.
    """
    if len(g) == 1:
        best = jnp.clip(-g / H[0], low, high)
        return best, unheld(H @ best + g, best, low, high)

    def value(x: Array) -> Array:
        return x @ (0.5 * (H @ x) + g)

    def step(x: Array) -> tuple[Array, Array]:
        free = unheld(H @ x + g, x, low, high)
        newton = dense.solve(held(H, free), jnp.where(free, -(H @ x + g), 0.0))
        best, lowest = x, value(x)
        for length in STEP_LENGTHS:
            trial = jnp.clip(x + length * newton, low, high)
            better = value(trial) < lowest
            best, lowest = jnp.where(better, trial, best), jnp.where(better, value(trial), lowest)
        return best, lowest

    def proceed(loop: tuple[Array, Array, Array, Array]) -> Array:
        _, _, count, active = loop
        return active & (count < ROUNDS)

    def round_(loop: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, before, count, _ = loop
        x, after = step(x)
        return x, after, count + 1, before - after > ROUNDING * (jnp.abs(after) + 1e-300)

    x: Array = jnp.clip(jnp.zeros_like(g), low, high)
    start: tuple[Array, Array, Array, Array] = (x, value(x), jnp.zeros((), jnp.int32), jnp.ones((), bool))
    x, *_ = jax.lax.while_loop(proceed, round_, start)
    return x, unheld(H @ x + g, x, low, high)


def unheld(gradient: Array, x: Array, low: Array, high: Array) -> Bool[Array, " n"]:
    """True for unknowns within the bounds, or at one with a gradient that points inward."""
    return ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)) | (low >= high))


def held(H: Float[Array, "n n"], free: Bool[Array, " n"]) -> Float[Array, "n n"]:
    """The matrix with the rows and columns of held unknowns replaced by those of the identity."""
    return jnp.where(free[:, None] & free[None, :], H, jnp.eye(H.shape[0]))
