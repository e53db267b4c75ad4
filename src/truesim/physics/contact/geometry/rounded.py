"""Contact points of spheres and capsules with a solid. Normals point to the solid."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float, Int
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry.solids import BISECTIONS, Surface
from truesim.physics.contact.geometry.touch import Touch

Around = Callable[[Float[Array, "3"]], Surface]
"""Signed distance function in the solid's frame."""


def ball_solid(radius: Float[Array, ""], center: Float[Array, "3"], solid: Pose, surface: Around) -> Touch:
    """Contact point of a sphere and a solid with a signed distance function."""
    distance, away = surface(solid.rotation.T @ (center - solid.translation))
    normal = -solid.rotation @ away
    position = center + normal * (radius + distance) / 2
    return Touch(position[None], normal[None], (distance - radius)[None])


def capsule_solid(size: Float[Array, "3"], capsule: Pose, solid: Pose, surface: Around) -> Touch:
    """Contact points of a capsule and a solid: both ends, and the closest point of its segment."""
    axis = capsule.rotation[:, 2]
    places = jnp.stack([size[1], -size[1], _nearest(size, capsule, solid, surface)])
    touches = jax.vmap(lambda t: ball_solid(size[0], capsule.translation + t * axis, solid, surface))(places)
    return Touch(*(part[:, 0] for part in touches))


def _nearest(size: Array, capsule: Pose, solid: Pose, surface: Around) -> Float[Array, ""]:
    """Position along the segment closest to the solid [m]; the distance to a convex set is convex along a line."""

    def derivative(t: Array, size: Array, capsule: Pose, solid: Pose) -> Array:
        p = capsule.translation + t * capsule.rotation[:, 2]
        _, away = surface(solid.rotation.T @ (p - solid.translation))
        return (solid.rotation @ away) @ capsule.rotation[:, 2]

    fixed = jax.lax.stop_gradient((size, capsule, solid))

    def halve(_: Int[Array, ""], bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        falling = derivative(middle, *fixed) < 0
        return jnp.where(falling, middle, low), jnp.where(falling, high, middle)

    half = fixed[0][1]
    t = sum(jax.lax.fori_loop(0, BISECTIONS, halve, (-half, half))) / 2
    rise = jax.lax.stop_gradient(jax.jvp(lambda t: derivative(t, *fixed), (t,), (jnp.ones_like(t),))[1])
    within = (jnp.abs(t) < half * (1 - 1e-9)) & (rise > 1e-6 / size[0])
    follows = t - derivative(t, size, capsule, solid) / jnp.where(within, rise, 1.0)
    return jnp.where(within, jnp.clip(follows, -size[1], size[1]), t / half * size[1])
