"""Rotations and inertias in the conventions of robot files, in 64-bit NumPy."""

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from truesim.math.spatial.inertia import INERTIA_ENTRIES


def matrix_of_quaternion(quaternion: ArrayLike) -> np.ndarray:
    """Rotation matrix of a unit quaternion, scalar first."""
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=float))
    return R.reshape(3, 3)


def full_inertia(six: ArrayLike) -> np.ndarray:
    """Symmetric matrix of `[xx, yy, zz, xy, xz, yz]`."""
    full = np.empty((3, 3))
    for value, (i, j) in zip(np.asarray(six), INERTIA_ENTRIES, strict=True):
        full[i, j] = full[j, i] = value
    return full


def six_numbers(full: np.ndarray) -> np.ndarray:
    """Numbers `[xx, yy, zz, xy, xz, yz]` of a symmetric matrix."""
    return np.array([full[i, j] for i, j in INERTIA_ENTRIES])


def rotation_of_rpy(rpy: np.ndarray) -> np.ndarray:
    """Rotation matrix of roll, pitch, yaw about fixed axes [rad]: Rz(yaw) Ry(pitch) Rx(roll)."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_of_rotation(R: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw [rad] of a rotation matrix."""
    horizontal = np.hypot(R[0, 0], R[1, 0])
    pitch = np.arctan2(-R[2, 0], horizontal)
    if horizontal < 1e-9:
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def quaternion_of_rpy(rpy: np.ndarray) -> np.ndarray:
    """Unit quaternion, scalar first, of roll, pitch, yaw about fixed axes [rad]."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy / 2), np.cos(rpy / 2)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )
