"""Swept contact: the point at which two moving solids will touch, so that fast bodies do not pass through others."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import Pose
from truesim.physics.contact.geometry.touch import Touch

IMPACT_NEWTON_STEPS = 4
"""Newton steps towards the time of impact; the distance of convex solids on straight paths is convex in time, so that
each step stops short of it and the error squares."""


def sweep(
    collide: Callable[[Any, Any], Touch],
    first: tuple[Float[Array, "3"], Pose],
    second: tuple[Float[Array, "3"], Pose],
    first_path: Float[Array, "3"],
    second_path: Float[Array, "3"],
) -> tuple[Touch, Float[Array, "1 3"], Float[Array, "1 3"]]:
    """Point at which two solids will touch, and its present position on either of them.

    Its distance is the remaining one, along the normal at the time of impact.

    Args:
        collide: Collision function of solids at rest.
        first: Size and pose of the first solid.
        second: Size and pose of the second.
        first_path: Displacement of the first solid in this step [m].
        second_path: Displacement of the second solid in this step [m].
    """
    path = second_path - first_path
    time = jnp.zeros(())
    for _ in range(IMPACT_NEWTON_STEPS):
        touch = collide(_translate(first, time * first_path), _translate(second, time * second_path))
        closing = -touch.normal[0] @ path
        ahead = (closing > 0) & (touch.distance[0] > 0)
        to_go = jnp.where(ahead, touch.distance[0] / jnp.where(ahead, closing, 1.0), 0.0)
        time = jnp.clip(time + to_go, 0.0, 1.0)
    touch = collide(_translate(first, time * first_path), _translate(second, time * second_path))
    distance = touch.distance - time * (touch.normal @ path)
    place = touch.position
    return touch._replace(distance=distance), place - (time * first_path)[None], place - (time * second_path)[None]


def _translate(solid: tuple[Array, Pose], path: Array) -> tuple[Array, Pose]:
    size, pose = solid
    return size, Pose(pose.rotation, pose.translation + path)
