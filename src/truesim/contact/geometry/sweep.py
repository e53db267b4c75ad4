"""Where two solids on their way will touch, so that fast bodies hit what they meet and nothing else."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from truesim.contact.geometry.touch import Touch
from truesim.core.typing import Array, Float
from truesim.spatial.transform import Pose

ADVANCES = 4
"""Newton steps towards the time of impact; the distance of convex solids on straight paths is convex in time, so that
each stops short of it and the error squares."""


def swept(
    collide: Callable[[Any, Any], Touch],
    first: tuple[Float[Array, "3"], Pose],
    second: tuple[Float[Array, "3"], Pose],
    first_path: Float[Array, "3"],
    second_path: Float[Array, "3"],
) -> tuple[Touch, Float[Array, "1 3"], Float[Array, "1 3"]]:
    """The single point in which two solids will touch, and where it is now on either of them.

    Its distance is the one that lies ahead, along the normal at the time of impact.

    Args:
        collide: Finds the point between solids at rest.
        first: Size and pose of the first solid.
        second: Size and pose of the second.
        first_path: How far the first moves in this step [m].
        second_path: How far the second moves in this step [m].
    """
    path = second_path - first_path
    time = jnp.zeros(())
    for _ in range(ADVANCES):
        touch = collide(_moved(first, time * first_path), _moved(second, time * second_path))
        closing = -touch.normal[0] @ path
        ahead = (closing > 0) & (touch.distance[0] > 0)
        to_go = jnp.where(ahead, touch.distance[0] / jnp.where(ahead, closing, 1.0), 0.0)
        time = jnp.clip(time + to_go, 0.0, 1.0)
    touch = collide(_moved(first, time * first_path), _moved(second, time * second_path))
    distance = touch.distance - time * (touch.normal @ path)
    place = touch.position
    return touch._replace(distance=distance), place - (time * first_path)[None], place - (time * second_path)[None]


def _moved(solid: tuple[Array, Pose], path: Array) -> tuple[Array, Pose]:
    size, pose = solid
    return size, Pose(pose.rotation, pose.translation + path)
