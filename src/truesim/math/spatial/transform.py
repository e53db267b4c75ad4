"""Poses of frames and their Pluecker transforms."""

import equinox as eqx
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import quaternion_matrix, skew


class Pose(eqx.Module):
    """Pose `X_AB` of a frame B in a frame A.

    `motion` transforms motions from A to B (down a tree), `force` transforms forces from B to A (up a tree).
    """

    rotation: Float[Array, "3 3"]
    """R_AB: columns are the axes of B, expressed in A."""
    translation: Float[Array, "3"]
    """Origin of B, seen from the origin of A, expressed in A [m]."""

    @classmethod
    def identity(cls) -> "Pose":
        """Pose of a frame in itself."""
        return cls(jnp.eye(3), jnp.zeros(3))

    @classmethod
    def from_quaternion(cls, translation: Float[Array, "3"], quaternion: Float[Array, "4"]) -> "Pose":
        """Pose with this origin [m] and unit quaternion."""
        return cls(quaternion_matrix(quaternion), jnp.asarray(translation))

    def __matmul__(self, other: "Pose") -> "Pose":
        """Composition: `X_AC = X_AB @ X_BC`."""
        return Pose(self.rotation @ other.rotation, self.point(other.translation))

    def inverse(self) -> "Pose":
        """Pose of A in B."""
        return Pose(self.rotation.T, -self.rotation.T @ self.translation)

    def point(self, p: Float[Array, "3"]) -> Float[Array, "3"]:
        """Point `p` of B, expressed in A [m]."""
        return self.translation + self.rotation @ p

    def motion(self, V: Float[Array, "6"]) -> Float[Array, "6"]:
        """Spatial motion, transformed from A to B: `[R^T w, R^T (v + w x p)]`."""
        w, v = V[:3], V[3:]
        return jnp.concatenate([self.rotation.T @ w, self.rotation.T @ (v + jnp.cross(w, self.translation))])

    def force(self, F: Float[Array, "6"]) -> Float[Array, "6"]:
        """Spatial force, transformed from B to A: `[R n + p x R f, R f]`."""
        n, f = self.rotation @ F[:3], self.rotation @ F[3:]
        return jnp.concatenate([n + jnp.cross(self.translation, f), f])

    def matrix(self) -> Float[Array, "6 6"]:
        """Six-by-six matrix X of motions: `motion` multiplies by X, `force` by its transpose."""
        E = self.rotation.T
        return jnp.block([[E, jnp.zeros((3, 3))], [-E @ skew(self.translation), E]])


def cross_motion(V: Float[Array, "6"], W: Float[Array, "6"]) -> Float[Array, "6"]:
    """Rate of the motion W that moves with velocity V (Featherstone's `V x W`)."""
    w, v = V[:3], V[3:]
    return jnp.concatenate([jnp.cross(w, W[:3]), jnp.cross(v, W[:3]) + jnp.cross(w, W[3:])])


def cross_force(V: Float[Array, "6"], F: Float[Array, "6"]) -> Float[Array, "6"]:
    """Rate of the force F that moves with velocity V (Featherstone's `V x* F`)."""
    w, v = V[:3], V[3:]
    return jnp.concatenate([jnp.cross(w, F[:3]) + jnp.cross(v, F[3:]), jnp.cross(w, F[3:])])
