"""Work of contact forces along a direction, as a function of state and parameters at known contact points.

With twists of bodies under the acceleration, the velocity and the direction, `z' J' f(J a - reference)` needs no
Jacobian of the size of the robot. The points move with their two bodies as `contact_motion` says; their distance,
position and frame are those that the routines found.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math.soft_constraints.cones import Cones
from truesim.math.soft_constraints.problem import Constraints
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.math.spatial.transform import Pose
from truesim.physics.constraints.contact_motion import SurfaceMotion, point_motion, turn_frame
from truesim.physics.constraints.contacts import ContactParameters, elliptic_cones, pyramid_rows, rows_of_numbers
from truesim.physics.dynamics import body_poses, carriers, motion_columns
from truesim.physics.model.model import Model
from truesim.physics.routines.adjoint import SlotNumber

ALONG_A, ALONG_V, ALONG_Z = np.eye(3)
"""Acceleration, velocity and direction as unit vectors: the columns of the Jacobians are the motions under them."""


class ContactOptions(NamedTuple):
    """Choices of the contact model that forces depend on."""

    elliptic: bool
    impratio: Float[Array, ""]
    shortest: Float[Array, ""]
    """Smallest time constant [s]."""


def contact_work(
    model: Model,
    q: Float[Array, " nq"],
    motions: tuple[Array, Array, Array],
    slots: Float[Array, "slots numbers"],
    options: ContactOptions,
) -> Float[Array, ""]:
    """`z' J' f(J a - reference)` for motions `(a, v, z)` and contact slots of the routines."""
    fixed = jax.lax.stop_gradient(slots)
    poses = _with_world(body_poses(model, q))
    twists = _twists(model, q, motions)
    bodies = [fixed[:, int(n)].astype(int) for n in (SlotNumber.FIRST_BODY, SlotNumber.SECOND_BODY)]
    ends = [jax.tree.map(lambda x, b=b: x[b], (poses, twists)) for b in bodies]
    distance, J = jax.vmap(_slot)(fixed, *ends)
    part = _parts(slots)
    numbers = ContactParameters(
        dimension=fixed[:, int(SlotNumber.DIMENSION)].astype(int),
        friction=part(SlotNumber.FRICTION, 5),
        margin=part(SlotNumber.MARGIN),
        solref=part(SlotNumber.SOLREF, 2),
        solreffriction=part(SlotNumber.SOLREFFRICTION, 2),
        solimp=part(SlotNumber.SOLIMP, 5),
    )
    weighing = part(SlotNumber.WEIGHT), options.shortest
    rows = rows_of_numbers(numbers, J, distance, fixed[:, 0] >= 0, weighing)
    cones, edges = Cones.none(3), _no_rows()
    if options.elliptic:
        cones = elliptic_cones(rows, ALONG_V, options.impratio)
    else:
        edges = pyramid_rows(rows, ALONG_V, options.impratio)
    constraints = Constraints(edges, cones)
    return ALONG_Z @ constraints.generalized(constraints.forces(constraints.deviations(ALONG_A)))


def _parts(slots: Array) -> Callable[..., Array]:
    def part(entry: SlotNumber, width: int | None = None) -> Array:
        return slots[:, int(entry)] if width is None else slots[:, int(entry) : int(entry) + width]

    return part


def _no_rows() -> SoftConstraints:
    none = jnp.zeros(0)
    return SoftConstraints(jnp.zeros((0, 3)), none, none, none, none)


def _with_world(poses: Pose) -> Pose:
    """Poses in MuJoCo's numbering: the world first."""
    return jax.tree.map(lambda one, x: jnp.concatenate([one[None], x]), Pose.identity(), poses)


def _twists(model: Model, q: Array, motions: tuple[Array, Array, Array]) -> Float[Array, "bodies_and_world 3 6"]:
    """Angular and linear velocity at the world's origin of every body under each motion; the world first."""
    moves = [np.zeros(model.nv, bool), *(carriers(model, body) for body in range(len(model.bodies.names)))]
    mask, columns = np.stack(moves).astype(float), motion_columns(model, q)
    return jnp.stack([mask @ (columns * x[:, None]) for x in motions], axis=1)


def _slot(slot: Array, first: tuple[Pose, Array], second: tuple[Pose, Array]) -> tuple[Array, Array]:
    """Distance of a contact point, and its motion along normal, tangents and about them under the three motions."""
    at = {entry: slot[int(entry) :] for entry in SlotNumber}
    d, x, frame = slot[int(SlotNumber.DISTANCE)], at[SlotNumber.POSITION][:3], at[SlotNumber.FRAME][:9].reshape(3, 3)
    n = frame[0]
    sides = [
        _side(pose, x + sign * n * d / 2, at[radius][:6])
        for (pose, _), sign, radius in (
            (first, -1.0, SlotNumber.FIRST_RADIUS),
            (second, 1.0, SlotNumber.SECOND_RADIUS),
        )
    ]
    closing, slide, turned = point_motion(sides[0], sides[1], n, d)
    side, hint = slot[int(SlotNumber.HINT_SIDE)], at[SlotNumber.HINT][:3]
    turn = jnp.where(side < 0, 0.0, jnp.where(side > 0, sides[1].turn, sides[0].turn))
    moved = frame + _change(turn_frame(frame, turned, hint, jnp.cross(turn, hint)))
    place = x + _change(slide)
    relative = second[1] - first[1]
    angular = relative[:, :3]
    linear = relative[:, 3:] + jnp.cross(angular, jnp.broadcast_to(place, angular.shape))
    return d + _change(closing), jnp.concatenate([moved @ linear.T, moved @ angular.T])


def _change(x: Array) -> Array:
    """Zero, with the derivative of x."""
    return x - jax.lax.stop_gradient(x)


def _side(pose: Pose, x: Array, six: Array) -> SurfaceMotion:
    """Motion of the surface of a body that carries the point x."""
    R, p = pose.rotation, pose.translation
    kept = jax.lax.stop_gradient((R, p))
    spin = R @ kept[0].T
    turn = jnp.stack([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2
    velocity = p + spin @ (x - kept[1]) - x
    xx, yy, zz, xy, xz, yz = six
    radius = jnp.stack([jnp.stack([xx, xy, xz]), jnp.stack([xy, yy, yz]), jnp.stack([xz, yz, zz])])
    return SurfaceMotion(velocity, turn, radius, kept[0][:, 2])
