"""Transforms: unconstrained coordinates of a parameter, and the physical value that they stand for.

Coordinates have no unit and are of order one, so that a step of a solver means the same for a mass and for a delay.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math.spatial.inertia import INERTIA_ENTRIES, six_of
from truesim.math.spatial.rotation import normalize, quaternion_exp, quaternion_log, quaternion_product

FLATNESS = 1e-6
"""Ratio of smallest to largest second moment of mass below which a body counts as flat; larger counts more bodies."""
SINGULAR = 1e-13
"""Ratio below which second moments are not positive definite to rounding; larger counts more bodies."""
MIN_THICKNESS = 1e-3
"""Ratio that a flat body (thin rod, plate) is given, since a logarithm cannot start from zero; larger is thicker."""
POINT_MASS_MOMENT = 1e-6
"""Second moment that a point mass is given [kg m^2]; larger is wider."""


Linearization = tuple[Float[np.ndarray, "*batch numbers"], Float[np.ndarray, "*batch numbers size"]]
"""Values and their derivatives by the coordinates."""


class AbstractTransform(eqx.Module):
    """A map from coordinates to a physical value."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @abc.abstractmethod
    def value(self, coordinates: Float[Array, " size"]) -> Array:
        """Physical value, in SI units."""

    @abc.abstractmethod
    def coordinates(self, value: Any) -> Float[np.ndarray, " size"]:
        """Coordinates of a value."""

    @abc.abstractmethod
    def linearize(self, coordinates: Float[np.ndarray, "*batch size"]) -> Linearization:
        """Physical values as vectors, and their derivatives by the coordinates, for a batch of NumPy arrays."""


class Linear(AbstractTransform):
    """`value = scale * coordinates`."""

    scale: float | Float[np.ndarray, "*shape"]
    """One for all numbers, or one for each [SI units]."""
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """One coordinate for each number."""
        return int(np.prod(self.shape, dtype=int))

    def value(self, coordinates: Float[Array, " size"]) -> Array:
        """The scaled coordinates."""
        return self.scale * jnp.reshape(coordinates, self.shape)

    def coordinates(self, value: Any) -> Float[np.ndarray, " size"]:
        """The value in units of the scale."""
        return np.ravel(np.asarray(value, float) / self.scale)

    def linearize(self, coordinates: Float[np.ndarray, "*batch size"]) -> Linearization:
        """The scaled coordinates and the scales."""
        scale = np.broadcast_to(self.scale, self.shape).ravel()
        return scale * coordinates, np.broadcast_to(np.diag(scale), (*coordinates.shape, self.size))


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

    def linearize(self, coordinates: Float[np.ndarray, "*batch 1"]) -> Linearization:
        """The positive number, which is its own derivative."""
        value = self.reference * np.exp(coordinates)
        return value, value[..., None]


class PhysicalInertia(AbstractTransform):
    """Six coordinates of which every choice is the rotational inertia of some rigid body.

    With the second moments of mass about the center of mass, `S = tr(I)/2 1 - I`, a body is physical exactly when S is
    positive definite. Coordinates are the logarithms of the diagonal and the entries below it of a Cholesky factor U in
    `S = L U U^T L^T`, where L is the factor of the reference. Together with a positive mass and any center of mass
    these are the log-Cholesky coordinates of the pseudo-inertia (Rucker and Wensing 2022).
    """

    factor: Float[np.ndarray, "3 3"]
    """Lower Cholesky factor of the reference's second moments."""
    is_flat: bool = False
    """True if the reference was a flat body, which was given some thickness."""

    @classmethod
    def at(cls, inertia: Float[np.ndarray, "6"]) -> "PhysicalInertia":
        """Coordinates around a reference inertia `[xx, yy, zz, xy, xz, yz]` [kg m^2]."""
        moments = _second_moments(inertia)
        return cls(np.linalg.cholesky(_thicken(moments)), _is_flat(moments))

    @property
    def size(self) -> int:
        """Six coordinates."""
        return 6

    def value(self, coordinates: Float[Array, "6"]) -> Array:
        """The inertia [kg m^2] about the center of mass: xx, yy, zz, xy, xz, yz."""
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
        """Coordinates of a value; a value that is not physical, or flat like the reference, is thickened."""
        inverse, moments = np.linalg.inv(self.factor), _second_moments(value)
        thick = _thicken(moments, FLATNESS if self.is_flat else SINGULAR)
        U = np.linalg.cholesky(inverse @ thick @ inverse.T)
        return np.array([*np.log(np.diag(U)), U[1, 0], U[2, 0], U[2, 1]])

    def linearize(self, coordinates: Float[np.ndarray, "*batch 6"]) -> Linearization:
        """The inertia; `dS = L dU F^T + F dU^T L^T` with `F = L U`."""
        U, dU = np.zeros((*coordinates.shape[:-1], 3, 3)), np.zeros((*coordinates.shape, 3, 3))
        for k, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (1, 0), (2, 0), (2, 1))):
            U[..., i, j] = np.exp(coordinates[..., k]) if i == j else coordinates[..., k]
            dU[..., k, i, j] = U[..., i, j] if i == j else 1.0
        F, dF = self.factor @ U, self.factor @ dU
        half = dF @ np.swapaxes(F, -1, -2)[..., None, :, :]
        value = _inertia_of(F @ np.swapaxes(F, -1, -2))
        return value, np.swapaxes(_inertia_of(half + np.swapaxes(half, -1, -2)), -1, -2)


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

    def linearize(self, coordinates: Float[np.ndarray, "*batch 2"]) -> Linearization:
        """The tilted vector; its derivative is across it."""
        length, across = float(np.linalg.norm(self.reference)), self._across()
        tilted = self.reference / length + coordinates @ across
        norm = np.linalg.norm(tilted, axis=-1, keepdims=True)
        unit = tilted / norm
        J = (across.T - unit[..., :, None] * (across @ unit[..., None])[..., None, :, 0]) * (length / norm)[..., None]
        return length * unit, J

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
        return normalize(quaternion_product(jnp.asarray(self.reference), quaternion_exp(coordinates)))

    def coordinates(self, value: Any) -> Float[np.ndarray, "3"]:
        """Rotation vector from the reference to `value`."""
        inverse = self.reference * np.array([1.0, -1.0, -1.0, -1.0])
        return np.asarray(quaternion_log(quaternion_product(jnp.asarray(inverse), jnp.asarray(value, float))))

    def linearize(self, coordinates: Float[np.ndarray, "*batch 3"]) -> Linearization:
        """The turned quaternion: `exp(c) = (cos a, c sin(a) / (2 a))` with `a = |c| / 2`."""
        half = np.linalg.norm(coordinates, axis=-1, keepdims=True) / 2
        sine = np.sinc(half / np.pi) / 2
        small = half < 1e-3
        safe = np.where(small, 1.0, half)
        change = np.where(small, -1 / 24 + half**2 / 240, (np.cos(safe) - np.sinc(safe / np.pi)) / (8 * safe**2))
        turn = np.concatenate([np.cos(half), sine * coordinates], axis=-1)
        outer = coordinates[..., :, None] * coordinates[..., None, :]
        vector = sine[..., None] * np.eye(3) + change[..., None] * outer
        dturn = np.concatenate([-sine[..., None] * coordinates[..., None, :] / 2, vector], axis=-2)
        w, x, y, z = self.reference / np.linalg.norm(self.reference)
        left = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
        return turn @ left.T, left @ dturn


def _second_moments(inertia: Any) -> Float[np.ndarray, "3 3"]:
    """Second moments of mass about the center of mass [kg m^2]."""
    matrix = np.empty((3, 3))
    for value, (i, j) in zip(np.asarray(inertia, float), INERTIA_ENTRIES, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return np.trace(matrix) / 2 * np.eye(3) - matrix


def _inertia_of(S: Float[np.ndarray, "*batch 3 3"]) -> Float[np.ndarray, "*batch 6"]:
    """Inertia `tr(S) 1 - S` of second moments: xx, yy, zz, xy, xz, yz [kg m^2]."""
    trace = np.trace(S, axis1=-2, axis2=-1)
    return np.stack([(i == j) * trace - S[..., i, j] for i, j in INERTIA_ENTRIES], axis=-1)


def _is_flat(moments: Float[np.ndarray, "3 3"]) -> bool:
    values = np.linalg.eigvalsh(moments)
    return bool(values[0] < FLATNESS * values[-1] or values[-1] <= 0)


def _thicken(moments: Float[np.ndarray, "3 3"], flatness: float = FLATNESS) -> Float[np.ndarray, "3 3"]:
    """Second moments with some thickness where a body is flatter than this."""
    values, vectors = np.linalg.eigh(moments)
    largest = values[-1] if values[-1] > 0 else POINT_MASS_MOMENT / MIN_THICKNESS
    return vectors @ np.diag(np.where(values < flatness * largest, MIN_THICKNESS * largest, values)) @ vectors.T
