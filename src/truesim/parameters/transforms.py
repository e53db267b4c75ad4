"""Transforms: unconstrained coordinates of a parameter, and the physical value that they stand for.

Coordinates have no unit and are of order one, so that a step of a solver means the same for a mass and for a delay.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.spatial.inertia import ENTRIES, six_of
from truesim.spatial.rotation import normalise, quaternion_exp, quaternion_log, quaternion_product

FLAT = 1e-6
"""A body whose smallest second moment of mass is less than this part of its largest has no width there."""
THINNEST = 1e-3
"""The part that it is given instead, since a search cannot leave from none (thin rods, plates)."""
SMALLEST = 1e-6
"""The second moment that a point mass is given [kg m^2]."""


class AbstractTransform(eqx.Module):
    """A map from coordinates to a physical value."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @abc.abstractmethod
    def value(self, coordinates: Float[Array, "size"]) -> Array:
        """The physical value, in SI units."""

    @abc.abstractmethod
    def coordinates(self, value: Any) -> Float[np.ndarray, "size"]:
        """The coordinates of a value."""


class Linear(AbstractTransform):
    """`value = scale * coordinates`."""

    scale: float | Float[np.ndarray, "*shape"]
    """One for all numbers, or one for each [SI units]."""
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """One coordinate for each number."""
        return int(np.prod(self.shape, dtype=int))

    def value(self, coordinates: Float[Array, "size"]) -> Array:
        """The scaled coordinates."""
        return self.scale * jnp.reshape(coordinates, self.shape)

    def coordinates(self, value: Any) -> Float[np.ndarray, "size"]:
        """The value in units of the scale."""
        return np.ravel(np.asarray(value, float) / self.scale)


class Positive(AbstractTransform):
    """`value = reference * exp(coordinate)`: a positive number on a logarithmic scale."""

    reference: float

    @property
    def size(self) -> int:
        """One coordinate."""
        return 1

    def value(self, coordinates: Float[Array, "1"]) -> Array:
        """A positive number."""
        return self.reference * jnp.exp(coordinates[0])

    def coordinates(self, value: Any) -> Float[np.ndarray, "1"]:
        """Logarithm of the ratio to the reference."""
        return np.log(np.ravel(np.asarray(value, float)) / self.reference)


class PhysicalInertia(AbstractTransform):
    """Six coordinates of which every choice is the rotational inertia of some rigid body.

    With the second moments of mass about the centre of mass, `S = tr(I)/2 1 - I`, a body is physical exactly when S is
    positive definite. Coordinates are the logarithms of the diagonal and the entries below it of a Cholesky factor U in
    `S = L U U^T L^T`, where L is the factor of the reference. Together with a positive mass and any centre of mass
    these are the log-Cholesky coordinates of the pseudo-inertia (Rucker and Wensing 2022).
    """

    factor: Float[np.ndarray, "3 3"]
    """Lower Cholesky factor of the reference's second moments."""

    @classmethod
    def at(cls, inertia: Float[np.ndarray, "6"]) -> "PhysicalInertia":
        """Coordinates around a reference inertia `[xx, yy, zz, xy, xz, yz]` [kg m^2]."""
        return cls(np.linalg.cholesky(_second_moments(inertia)))

    @property
    def size(self) -> int:
        """Six coordinates."""
        return 6

    def value(self, coordinates: Float[Array, "6"]) -> Array:
        """The inertia [kg m^2] about the centre of mass: xx, yy, zz, xy, xz, yz."""
        a, b, c, ba, ca, cb = (coordinates[k] for k in range(6))
        zero = jnp.zeros_like(a)
        U = jnp.stack(
            [
                jnp.stack([jnp.exp(a), zero, zero]),
                jnp.stack([ba, jnp.exp(b), zero]),
                jnp.stack([ca, cb, jnp.exp(c)]),
            ]
        )
        F = jnp.asarray(self.factor) @ U
        S = F @ F.T
        return six_of(jnp.trace(S) * jnp.eye(3) - S)

    def coordinates(self, value: Any) -> Float[np.ndarray, "6"]:
        """Coordinates of the physical inertia nearest to `value`."""
        inverse = np.linalg.inv(self.factor)
        U = np.linalg.cholesky(inverse @ _second_moments(value) @ inverse.T)
        return np.array([*np.log(np.diag(U)), U[1, 0], U[2, 0], U[2, 1]])


class Direction(AbstractTransform):
    """A vector of constant length: two coordinates tilt the reference."""

    reference: Float[np.ndarray, "3"]

    @property
    def size(self) -> int:
        """Two tilts [rad, for small ones]."""
        return 2

    def value(self, coordinates: Float[Array, "2"]) -> Array:
        """The tilted vector."""
        length = float(np.linalg.norm(self.reference))
        tilted = jnp.asarray(self.reference / length) + coordinates @ jnp.asarray(self._across())
        return length * tilted / jnp.sqrt(tilted @ tilted)

    def coordinates(self, value: Any) -> Float[np.ndarray, "2"]:
        """Tilts of a vector within 90 degrees of the reference."""
        unit = self.reference / np.linalg.norm(self.reference)
        value = np.asarray(value, float)
        return self._across() @ (value / (value @ unit))

    def _across(self) -> Float[np.ndarray, "2 3"]:
        """Two unit vectors across the reference."""
        return np.linalg.svd(self.reference[None])[2][1:]


class Orientation(AbstractTransform):
    """A unit quaternion: a rotation vector turns the reference, in its own frame."""

    reference: Float[np.ndarray, "4"]

    @property
    def size(self) -> int:
        """Rotation vector [rad]."""
        return 3

    def value(self, coordinates: Float[Array, "3"]) -> Array:
        """The turned quaternion, scalar first."""
        return normalise(quaternion_product(jnp.asarray(self.reference), quaternion_exp(coordinates)))

    def coordinates(self, value: Any) -> Float[np.ndarray, "3"]:
        """Rotation vector from the reference to `value`."""
        inverse = self.reference * np.array([1.0, -1.0, -1.0, -1.0])
        return np.asarray(quaternion_log(quaternion_product(jnp.asarray(inverse), jnp.asarray(value, float))))


def _second_moments(inertia: Any) -> Float[np.ndarray, "3 3"]:
    """Second moments of mass about the centre of mass [kg m^2], widened where they are next to nothing."""
    matrix = np.empty((3, 3))
    for value, (i, j) in zip(np.asarray(inertia, float), ENTRIES, strict=True):
        matrix[i, j] = matrix[j, i] = value
    values, vectors = np.linalg.eigh(np.trace(matrix) / 2 * np.eye(3) - matrix)
    largest = values[-1] if values[-1] > 0 else SMALLEST / THINNEST
    return vectors @ np.diag(np.where(values < FLAT * largest, THINNEST * largest, values)) @ vectors.T
