"""Tangent spaces of batches of configurations on NumPy arrays: rotations as rotation vectors in the body's frame."""

import math
from dataclasses import dataclass

import numpy as np

from truesim.physics.routines.layout import BALL_JOINT, FREE_JOINT
from truesim.physics.routines.tables import StepTables

_SMALL_ANGLE = 1e-4
"""Angle below which series replace quotients that lose digits [rad]."""


@dataclass(frozen=True)
class Displacements:
    """Coordinates of a robot: numbers, and unit quaternions."""

    coordinates: np.ndarray
    """Positions in q of the coordinates that are numbers."""
    dofs: np.ndarray
    """Their positions in v."""
    quaternions: tuple[tuple[slice, slice], ...]
    """Ranges of every quaternion in q and of its rotation vector in v."""

    @classmethod
    def of(cls, tables: StepTables) -> "Displacements":
        """Tangent space of a model."""
        s, numbers, quaternions = tables.structure, [], []
        for kind, q, d in zip(s["jnt_type"], s["jnt_qposadr"], s["jnt_dofadr"], strict=True):
            moves = {FREE_JOINT: 3, BALL_JOINT: 0}.get(int(kind), 1)
            numbers += [(q + i, d + i) for i in range(moves)]
            if kind in (FREE_JOINT, BALL_JOINT):
                quaternions.append((slice(q + moves, q + moves + 4), slice(d + moves, d + moves + 3)))
        at = np.array(numbers, dtype=int).reshape(-1, 2)
        return cls(at[:, 0], at[:, 1], tuple(quaternions))

    def pull(self, q: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        """Cotangents (..., nv) of displacements from those (..., nq) of coordinates."""
        nv = len(self.dofs) + 3 * len(self.quaternions)
        found = np.empty((*q.shape[:-1], nv), q.dtype)
        found[..., self.dofs] = cotangent[..., self.coordinates]
        for at, to in self.quaternions:
            found[..., to] = np.einsum("...ij,...i->...j", _turned_basis(q[..., at]), cotangent[..., at]) / 2
        return found

    def push(self, q: np.ndarray, displacement: np.ndarray, scale: float = 0.5) -> np.ndarray:
        """Changes (..., nq) of coordinates under displacements (..., nv)."""
        found = np.empty(np.broadcast_shapes(q.shape[:-1], displacement.shape[:-1]) + q.shape[-1:], q.dtype)
        found[..., self.coordinates] = displacement[..., self.dofs]
        for at, to in self.quaternions:
            found[..., at] = scale * np.einsum("...ij,...j->...i", _turned_basis(q[..., at]), displacement[..., to])
        return found

    def project(self, q: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Displacements (..., nv) under changes (..., nq) of coordinates: the inverse of `push` on the manifold."""
        found = self.pull(q, change)
        for _, to in self.quaternions:
            found[..., to] *= 4  # coordinates change by half of the rotation vector
        return found

    def lift(self, q: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        """Cotangents (..., nq) of coordinates that `pull` maps to these, without parts across the manifold."""
        return self.push(q, cotangent, scale=2.0)

    def integrate(self, q: np.ndarray, displacement: np.ndarray) -> np.ndarray:
        """Configurations (batch, nq) moved by displacements (batch, nv)."""
        found = np.array(q)
        found[:, self.coordinates] += displacement[:, self.dofs]
        for at, to in self.quaternions:
            angle = np.linalg.norm(displacement[:, to], axis=1)[:, None]
            sine = np.where(angle < 1e-8, 0.5, np.sin(angle / 2) / np.where(angle == 0, 1.0, angle))
            turned = np.cos(angle / 2) * q[:, at] + np.einsum(
                "bij,bj->bi", _turned_basis(q[:, at]), sine * displacement[:, to]
            )
            found[:, at] = turned / np.linalg.norm(turned, axis=1)[:, None]
        return found

    def after_turn(self, turn: np.ndarray) -> list[tuple[slice, np.ndarray, np.ndarray]]:
        """Derivatives of the displacement after `q + turn`, by one before it and by `turn`, of every quaternion.

        Both are the identity for all other coordinates.
        """
        if len(turn) == 1:  # of one number, NumPy's functions take longer than their work
            return [(to, *_one_exponential(turn[0, to].tolist(), turn.dtype)) for _, to in self.quaternions]
        return [(to, *_exponential(turn[:, to])) for _, to in self.quaternions]


def _turned_basis(q: np.ndarray) -> np.ndarray:
    """Matrix Q with `q * (0, e) = Q e`, shape (..., 4, 3)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _exponential(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transposed rotation matrix of a rotation vector, and the right Jacobian of the exponential."""
    squared = (phi * phi).sum(axis=1)
    angle = np.sqrt(squared)
    safe = np.maximum(angle, _SMALL_ANGLE)
    sine, cosine = np.sin(safe) / safe, (1 - np.cos(safe)) / safe**2
    third = (1 - sine) / safe**2
    if angle.min(initial=1.0) < _SMALL_ANGLE:
        small = angle < _SMALL_ANGLE
        sine = np.where(small, 1 - squared / 6, sine)
        cosine = np.where(small, 0.5 - squared / 24, cosine)
        third = np.where(small, 1 / 6 - squared / 120, third)
    K, unit = crossing(phi), np.eye(3, dtype=phi.dtype)
    K2 = K @ K
    sine, cosine, third = (x[:, None, None] for x in (sine, cosine, third))
    return unit - sine * K + cosine * K2, unit - cosine * K + third * K2


def _one_exponential(phi: list[float], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The same for one rotation vector."""
    x, y, z = phi
    squared = x * x + y * y + z * z
    angle = math.sqrt(squared)
    if angle < _SMALL_ANGLE:
        sine, cosine, third = 1 - squared / 6, 0.5 - squared / 24, 1 / 6 - squared / 120
    else:
        sine, cosine = math.sin(angle) / angle, (1 - math.cos(angle)) / squared
        third = (1 - sine) / squared
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    both = np.array(
        [
            [
                [1 - b * (yy + zz), b * xy + a * z, b * xz - a * y],
                [b * xy - a * z, 1 - b * (xx + zz), b * yz + a * x],
                [b * xz + a * y, b * yz - a * x, 1 - b * (xx + yy)],
            ]
            for a, b in ((sine, cosine), (cosine, third))
        ],
        dtype,
    )
    return both[:1], both[1:]


def crossing(x: np.ndarray) -> np.ndarray:
    """Matrices X with `X y = x cross y`."""
    found = np.zeros((len(x), 3, 3), x.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        found[:, j, k], found[:, k, j] = -x[:, i], x[:, i]
    return found
