"""Signed distance functions of solids, with the direction away from the surface.

All are in the solid's own frame, with MuJoCo's size parameters. Inside, distances are negative and the direction is
that of the nearest surface. Where it is not unique (the center of a sphere) it is arbitrary but finite.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float, Int

Surface = tuple[Float[Array, ""], Float[Array, "3"]]
"""Signed distance [m] and unit direction away from the solid."""
Solid = Callable[[Float[Array, "3"], Float[Array, "3"]], Surface]
"""Signed distance function of a size and a point."""

MIN_SQUARED_LENGTH = 1e-30
"""Squared length below which a vector counts as zero [m^2]."""
BISECTIONS = 40
"""Bisection steps; 40 reduce an interval to one part in 1e12."""


def length(x: Float[Array, " n"]) -> Float[Array, ""]:
    """Euclidean norm, with a finite derivative at zero."""
    return jnp.sqrt(jnp.maximum(x @ x, MIN_SQUARED_LENGTH))


def direction(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """`x` scaled to unit length; the last axis where x is zero."""
    vanishing = x @ x <= MIN_SQUARED_LENGTH
    last = jnp.eye(x.shape[0])[-1]
    return jnp.where(vanishing, last, x / length(jnp.where(vanishing, last, x)))


def ball(size: Float[Array, "3"], p: Float[Array, "3"]) -> Surface:
    """Sphere of radius size[0]."""
    return length(p) - size[0], direction(p)


def capsule(size: Float[Array, "3"], p: Float[Array, "3"]) -> Surface:
    """Capsule: all points within size[0] of the segment from -size[1] to size[1] along z."""
    nearest = jnp.zeros(3).at[2].set(jnp.clip(p[2], -size[1], size[1]))
    return length(p - nearest) - size[0], direction(p - nearest)


def box(size: Float[Array, "3"], p: Float[Array, "3"]) -> Surface:
    """Box of half lengths `size`."""
    beyond = jnp.abs(p) - size
    signs = jnp.where(p < 0, -1.0, 1.0)
    outside = jnp.maximum(beyond, 0.0)
    face = jax.nn.one_hot(jnp.argmax(beyond), 3, dtype=p.dtype)
    away = jnp.any(beyond > 0)
    return (
        jnp.where(away, length(outside), beyond @ face),
        signs * jnp.where(away, direction(outside), face),
    )


def cylinder(size: Float[Array, "3"], p: Float[Array, "3"]) -> Surface:
    """Cylinder of radius size[0] and half length size[1] along z: a rectangle revolved about z."""
    radial = direction(p[:2])
    flat = jnp.stack([length(p[:2]), p[2]])
    beyond = jnp.stack([flat[0] - size[0], jnp.abs(flat[1]) - size[1]])
    outside = jnp.maximum(beyond, 0.0)
    face = jax.nn.one_hot(jnp.argmax(beyond), 2, dtype=p.dtype)
    away = jnp.any(beyond > 0)
    turned = jnp.where(away, direction(outside), face)
    up = jnp.where(p[2] < 0, -1.0, 1.0) * turned[1]
    return (
        jnp.where(away, length(outside), beyond @ face),
        jnp.concatenate([radial * turned[0], up[None]]),
    )


def ellipsoid(size: Float[Array, "3"], p: Float[Array, "3"]) -> Surface:
    """Ellipsoid of half axes `size`.

    The nearest point is `x = a^2 p / (t + a^2)` with t the largest root of `|a p / (t + a^2)|^2 = 1` (Eberly, Distance
    from a point to an ellipsoid). Bisection finds t; one Newton step gives its derivatives.
    """
    a2 = size**2
    least = jnp.min(a2)
    p = jnp.where(jnp.abs(p) < 1e-9 * size, jnp.where(p < 0, -1e-9, 1e-9) * size, p)

    def excess(t: Array, p: Array, size: Array) -> Array:
        return jnp.sum((size * p / (t + size**2)) ** 2) - 1

    fixed_p, fixed_size = jax.lax.stop_gradient((p, size))
    low = jax.lax.stop_gradient(-least)
    high = low + length(fixed_size * fixed_p)

    def halve(_: Int[Array, ""], bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        beyond = excess(middle, fixed_p, fixed_size) > 0
        return jnp.where(beyond, middle, low), jnp.where(beyond, high, middle)

    t = sum(jax.lax.fori_loop(0, BISECTIONS, halve, (low, high))) / 2
    derivative = jax.lax.stop_gradient(jax.grad(excess)(t, fixed_p, fixed_size))
    t = t - excess(t, p, size) / derivative
    scaled = p / (t + a2)
    return t * length(scaled), direction(scaled)
