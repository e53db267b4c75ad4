"""Rigid-body inertia: symmetric matrices as six numbers, spatial inertia, physical consistency."""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import skew

INERTIA_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Order of the six numbers of a rotational inertia: xx, yy, zz, xy, xz, yz (MJCF's `fullinertia`)."""


def symmetric(six: Float[Array, "6"]) -> Float[Array, "3 3"]:
    """Symmetric matrix of `[xx, yy, zz, xy, xz, yz]`."""
    xx, yy, zz, xy, xz, yz = (six[k] for k in range(6))
    return jnp.stack([jnp.stack([xx, xy, xz]), jnp.stack([xy, yy, yz]), jnp.stack([xz, yz, zz])])


def six_of(matrix: Float[Array, "3 3"]) -> Float[Array, "6"]:
    """Six numbers `[xx, yy, zz, xy, xz, yz]` of a symmetric matrix."""
    return jnp.stack([matrix[i, j] for i, j in INERTIA_ENTRIES])


def spatial_inertia(mass: Float[Array, ""], com: Float[Array, "3"], inertia: Float[Array, "6"]) -> Float[Array, "6 6"]:
    """Spatial inertia of a rigid body about its frame's origin (Featherstone, equation 2.63).

    Args:
        mass: Mass [kg].
        com: Center of mass in the body frame [m].
        inertia: Rotational inertia about the center of mass, body axes [kg m^2].
    """
    C = skew(com)
    return jnp.block([[symmetric(inertia) + mass * C @ C.T, mass * C], [mass * C.T, mass * jnp.eye(3)]])


def principal_moments(inertia: Float[Array, "6"]) -> Float[np.ndarray, "3"]:
    """Principal moments of inertia [kg m^2], ascending."""
    six = np.asarray(inertia, dtype=float)
    matrix = np.empty((3, 3))
    for value, (i, j) in zip(six, INERTIA_ENTRIES, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return np.linalg.eigvalsh(matrix)


def unphysical(mass: float, inertia: Float[Array, "6"]) -> str | None:
    """Reason why no rigid body has this mass [kg] and inertia [kg m^2]; None if one can.

    The principal moments of a real body obey the triangle inequality: none exceeds the sum of the other two.
    """
    if not np.isfinite(mass) or not np.all(np.isfinite(inertia)):
        return "mass or inertia is not a finite number"
    if mass < 0:
        return f"mass {mass:.6g} kg is negative"
    a, b, c = principal_moments(inertia)
    if a < -1e-12 * max(abs(c), 1e-300):
        return f"inertia has the negative principal moment {a:.4g} kg m^2"
    if a + b < c * (1 - 1e-9):
        return f"principal moments {a:.4g}, {b:.4g}, {c:.4g} kg m^2 break the triangle inequality"
    return None
