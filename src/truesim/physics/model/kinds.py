"""Kinds of joints: pose and motion subspace as functions of the coordinates.

A joint is at `anchor` in the frame of the body that it moves. Angular coordinates of ball and free joints are
unit quaternions; angular velocities are expressed in the moved body. A free joint's velocity is the linear velocity
in the world followed by the angular velocity in the body (MuJoCo's convention).
"""

import abc
from typing import ClassVar

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import (
    normalize,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    rotation_about,
    skew,
)
from truesim.math.spatial.transform import Pose


class AbstractJointKind(abc.ABC):
    """Kind of joint, without state; kinds compare and hash by class."""

    name: ClassVar[str]
    nq: ClassVar[int]
    """Number of position coordinates."""
    nv: ClassVar[int]
    """Number of velocity coordinates."""

    @abc.abstractmethod
    def pose(self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]) -> Pose:
        """Pose of the moved body, at coordinate `q`, in its frame at the zero of the joint."""

    @abc.abstractmethod
    def subspace(
        self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]
    ) -> Float[Array, "6 nv"]:
        """Motion subspace S in the moved body's frame: relative velocity = S v."""

    def bias(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
        """Rate of change of S in the moved body's frame, times `v`."""
        return jnp.zeros(6)

    def integrate(self, q: Float[Array, " nq"], dq: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """Coordinate reached from `q` along `dq` (velocity times time)."""
        return q + dq

    def difference(self, q: Float[Array, " nq"], start: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """Displacement `dq` from `start` to `q`, the inverse of `integrate`."""
        return q - start

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return self.name


class Hinge(AbstractJointKind):
    """Rotation about an axis [rad]."""

    name, nq, nv = "hinge", 1, 1

    def pose(self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]) -> Pose:
        """Rotation about the axis through the anchor."""
        R = rotation_about(axis, q[0])
        return Pose(R, anchor - R @ anchor)

    def subspace(
        self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]
    ) -> Float[Array, "6 nv"]:
        """`[axis, anchor x axis]`."""
        return jnp.concatenate([axis, jnp.cross(anchor, axis)])[:, None]


class Slide(AbstractJointKind):
    """Translation along an axis [m]."""

    name, nq, nv = "slide", 1, 1

    def pose(self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]) -> Pose:
        """Translation along the axis."""
        return Pose(jnp.eye(3), axis * q[0])

    def subspace(
        self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]
    ) -> Float[Array, "6 nv"]:
        """`[0, axis]`."""
        return jnp.concatenate([jnp.zeros(3), axis])[:, None]


class Ball(AbstractJointKind):
    """Free rotation about a point; a unit quaternion."""

    name, nq, nv = "ball", 4, 3

    def pose(self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]) -> Pose:
        """Rotation about the anchor."""
        R = quaternion_matrix(normalize(q))
        return Pose(R, anchor - R @ anchor)

    def subspace(
        self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]
    ) -> Float[Array, "6 nv"]:
        """`[1, skew(anchor)]`."""
        return jnp.concatenate([jnp.eye(3), skew(anchor)])

    def integrate(self, q: Float[Array, " nq"], dq: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """`q exp(dq)`, normalized."""
        return normalize(quaternion_product(q, quaternion_exp(dq)))

    def difference(self, q: Float[Array, " nq"], start: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """`log(start^-1 q)` [rad]."""
        return quaternion_log(quaternion_product(quaternion_conjugate(normalize(start)), normalize(q)))


class Free(AbstractJointKind):
    """Unconstrained motion; position [m] and unit quaternion in the world."""

    name, nq, nv = "free", 7, 6

    def pose(self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]) -> Pose:
        """Pose given by the coordinates."""
        return Pose(quaternion_matrix(normalize(q[3:])), q[:3])

    def subspace(
        self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]
    ) -> Float[Array, "6 nv"]:
        """`[[0, 1], [R^T, 0]]`: angular velocity in the body, linear velocity in the world."""
        R = jnp.asarray(quaternion_matrix(normalize(q[3:])))
        return jnp.block([[jnp.zeros((3, 3)), jnp.eye(3)], [R.T, jnp.zeros((3, 3))]])

    def bias(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "6"]:
        """`[0, -w x R^T v]`: rate, in the body, of a velocity that is fixed in the world."""
        R = quaternion_matrix(normalize(q[3:]))
        return jnp.concatenate([jnp.zeros(3), -jnp.cross(v[3:], R.T @ v[:3])])

    def integrate(self, q: Float[Array, " nq"], dq: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """Position plus the linear part, orientation as for a ball joint."""
        return jnp.concatenate([q[:3] + dq[:3], BALL.integrate(q[3:], dq[3:])])

    def difference(self, q: Float[Array, " nq"], start: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """Difference of positions, then of orientations as for a ball joint."""
        return jnp.concatenate([q[:3] - start[:3], BALL.difference(q[3:], start[3:])])


class Fixed(AbstractJointKind):
    """No motion: a body welded to its parent."""

    name, nq, nv = "fixed", 0, 0

    def pose(self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]) -> Pose:
        """Identity."""
        return Pose.identity()

    def subspace(
        self, axis: Float[Array, "3"], anchor: Float[Array, "3"], q: Float[Array, " nq"]
    ) -> Float[Array, "6 nv"]:
        """Empty."""
        return jnp.zeros((6, 0))


HINGE, SLIDE, BALL, FREE, FIXED = Hinge(), Slide(), Ball(), Free(), Fixed()
KINDS: dict[str, AbstractJointKind] = {kind.name: kind for kind in (HINGE, SLIDE, BALL, FREE, FIXED)}
