"""Motion of a contact point with its two bodies: one linear system of the tangent plane, no search.

Bodies A and B have the witness points `xA = pos - n d/2`, `xB = pos + n d/2`, outward normals n and -n, and radius
tensors C: the Hessians of their support functions on the tangent plane (radius for a sphere; zero for a vertex; zero
across and infinite along an edge; infinite for a face). If material points move with velocities u and bodies turn with
angular velocities w, then

    (d 1 + CA + CB) dn = P (uB - uA) + CA (wA x n) + CB (wB x n),     dd = n . (uB - uA),
    tB = CB (wB x n - dn),  tA = tB + P (uB - uA) - d dn,             dpos = (uA + tA + uB + tB) / 2,

with P the projection onto the tangent plane. A change of size moves a surface like a velocity u.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float, Int
from truesim.math.spatial.transform import Pose
from truesim.physics.constraints.contacts import ContactSlots
from truesim.physics.constraints.surfaces import Surface, surface

SHAPES = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")
"""Shapes with a rule; others count as faces."""
HINT_COSINE = 0.999999999
"""Cosine between MuJoCo's default tangent and the actual one below which the collision function gave a tangent."""


class ContactTangent(NamedTuple):
    """Derivative of contact points."""

    distance: Float[Array, " slots"]
    position: Float[Array, "slots 3"]
    frame: Float[Array, "slots 3 3"]


class SurfaceMotion(NamedTuple):
    """Motion of one body's surface at a contact point."""

    velocity: Float[Array, "3"]
    turn: Float[Array, "3"]
    """Angular velocity."""
    radius: Float[Array, "3 3"]
    """Radius tensor in the world."""
    axis: Float[Array, "3"]
    """The geom's z axis."""


Placed = tuple[Pose, Float[Array, "geoms 3"]]
"""Poses and sizes of all geoms, or their derivatives."""


def contact_tangent(shapes: tuple[str, ...], slots: ContactSlots, geoms: Placed, changes: Placed) -> ContactTangent:
    """Derivative of contact points under a change of the poses and sizes of all geoms.

    Args:
        shapes: Shape of every geom.
        slots: The contact points.
        geoms: Poses and sizes of all geoms.
        changes: Their derivatives.
    """
    kinds = jnp.asarray([SHAPES.index(shape) if shape in SHAPES else len(SHAPES) for shape in shapes], dtype=int)
    pick = jnp.maximum(slots.geoms, 0)

    def of_slot(g: Int[Array, "2"], d: Array, x: Array, frame: Array, used: Array) -> ContactTangent:
        own = [jax.tree.map(lambda array, k=k: array[g[k]], (geoms, changes)) for k in (0, 1)]
        shape, n = (kinds[g[0]], kinds[g[1]]), frame[0]
        first = _side(own[0], shape, x - n * d / 2, n)
        second = _side(own[1], shape[::-1], x + n * d / 2, -n)
        moved = point_motion(first, second, n, d)
        change = ContactTangent(moved[0], moved[1], _frame_change(frame, moved[2], first, second, shape))
        return jax.tree.map(lambda value: jnp.where(used, value, 0.0), change)

    return jax.vmap(of_slot)(pick, slots.distance, slots.position, slots.frame, slots.used)


def _side(own: tuple[Placed, Placed], kinds: tuple[Array, Array], x: Array, outward: Array) -> SurfaceMotion:
    """Motion of one surface: velocity of its point, angular velocity, and radius tensor.

    Args:
        own: The geom and its derivative.
        kinds: Its shape, and the other one's.
        x: Contact point.
        outward: Normal.
    """
    (pose, size), (moved, resized) = own
    R = pose.rotation
    local, normal = R.T @ (x - pose.translation), R.T @ outward
    shape: Surface = surface(kinds[0], size, local, normal, kinds[1])
    spin = moved.rotation @ R.T
    turn = jnp.stack([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2
    velocity = moved.translation + moved.rotation @ local + R @ (shape.growth @ resized)
    return SurfaceMotion(velocity, turn, R @ shape.radius @ R.T, R[:, 2])


def point_motion(first: SurfaceMotion, second: SurfaceMotion, n: Array, d: Array) -> tuple[Array, Array, Array]:
    """Derivative of distance, position and normal."""
    P = jnp.eye(3) - n[:, None] * n[None]
    apart = second.velocity - first.velocity
    CA, CB = P @ first.radius @ P, P @ second.radius @ P
    turned_A, turned_B = jnp.cross(first.turn, n), jnp.cross(second.turn, n)
    right = P @ apart + CA @ turned_A + CB @ turned_B
    matrix = d * P + CA + CB
    dn = _solve_on_plane(matrix, n, right)
    slide = CB @ (turned_B - dn)
    other = slide + P @ apart - d * dn
    return n @ apart, (first.velocity + other + second.velocity + slide) / 2, dn


def _solve_on_plane(matrix: Array, n: Array, right: Array) -> Array:
    """Solution in the plane across n of a matrix that is regular there, in closed form."""
    axis = jnp.where(jnp.abs(n[0]) < 0.6, jnp.eye(3)[0], jnp.eye(3)[1])
    s = axis - (axis @ n) * n
    s = s / jnp.sqrt(s @ s)
    E = jnp.stack([s, jnp.cross(n, s)])
    (a, b), (c, e) = E @ matrix @ E.T
    y = E @ right
    determinant = a * e - b * c
    size = jnp.maximum(jnp.abs(a), jnp.abs(e))
    regular = jnp.abs(determinant) > 1e-14 * size**2
    inverse = jnp.where(regular, 1 / jnp.where(regular, determinant, 1.0), 0.0)
    return E.T @ (inverse * jnp.stack([e * y[0] - b * y[1], a * y[1] - c * y[0]]))


def _frame_change(
    frame: Array, dn: Array, first: SurfaceMotion, second: SurfaceMotion, kinds: tuple[Array, Array]
) -> Array:
    """Derivative of normal and tangents.

    MuJoCo makes the first tangent from the axis y (or z, if the normal is near y), or from a direction that the
    collision function gives, such as the axis of a capsule, which turns with its body.
    """
    n, t = frame[0], frame[1]
    hint = jnp.where((n[1] < 0.5) & (n[1] > -0.5), jnp.eye(3)[1], jnp.eye(3)[2])
    default = hint - (hint @ n) * n
    is_default = default @ t > HINT_COSINE * jnp.sqrt(default @ default)
    from_second = kinds[1] == SHAPES.index("capsule")
    axis = jnp.where(from_second, second.axis, first.axis)
    turn = jnp.where(from_second, second.turn, first.turn)
    given = axis - (axis @ n) * n
    aligned = jnp.abs(given @ t) > HINT_COSINE * jnp.sqrt(jnp.maximum(given @ given, 1e-30))
    h = jnp.where(is_default, hint, jnp.where(aligned, axis, t))
    return turn_frame(frame, dn, h, jnp.where(is_default, 0.0, jnp.cross(turn, h)))


def turn_frame(frame: Array, dn: Array, h: Array, dh: Array) -> Array:
    """Derivative of a frame whose normal turns by dn and whose first tangent is made from the direction h."""
    n, t = frame[0], frame[1]
    across = h - (h @ n) * n
    size = jnp.sqrt(jnp.maximum(across @ across, 1e-30))
    sign = jnp.where(across @ t < 0, -1.0, 1.0)
    change = dh - (dh @ n) * n - (h @ dn) * n - (h @ n) * dn
    dt = sign * (change - (change @ t) * t) / size
    return jnp.stack([dn, dt, jnp.cross(dn, t) + jnp.cross(n, dt)])
