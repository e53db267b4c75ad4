"""Triangle meshes of MuJoCo's primitive shapes."""

import numpy as np

from truesim.core.typing import Float, Int

ROUND_SEGMENTS = 24
"""Segments of a circle; a larger value makes rounder shapes and larger files."""

Triangles = tuple[Float[np.ndarray, "n 3"], Int[np.ndarray, "m 3"]]
"""Vertices [m], and three of them for each face, counter-clockwise from outside."""


def box(size: Float[np.ndarray, "3"]) -> Triangles:
    """A box with the given half sizes [m]; every side has corners of its own, so that edges stay sharp."""
    corners: list[np.ndarray] = []
    faces: list[list[int]] = []
    for axis in range(3):
        for sign in (-1, 1):
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            side = sign * np.eye(3)[axis]
            u, v = (u, v) if sign > 0 else (v, u)
            first = len(corners)
            corners += [side + a * u + b * v for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            faces += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return np.array(corners) * size, np.array(faces)


def ellipsoid(size: Float[np.ndarray, "3"]) -> Triangles:
    """An ellipsoid with the given half axes [m]."""
    angles = np.linspace(0, np.pi, ROUND_SEGMENTS // 2 + 1)
    points, faces = revolve(np.sin(angles), -np.cos(angles))
    return points * size, faces


def capsule(radius: float, half: float) -> Triangles:
    """A capsule along z: a cylinder of half length `half` [m] between two half spheres."""
    angles = np.linspace(0, np.pi / 2, ROUND_SEGMENTS // 4 + 1)
    lower, upper = -half - radius * np.cos(angles), half + radius * np.sin(angles)
    return revolve(np.concatenate([radius * np.sin(angles), radius * np.cos(angles)]), np.concatenate([lower, upper]))


def cylinder(radius: float, half: float) -> Triangles:
    """A cylinder along z with sharp edges; `half` is half its length [m]."""
    r, z = np.array([0, radius, radius, radius, radius, 0]), np.array([-half, -half, -half, half, half, half])
    return revolve(r, z)


def rectangle(half_x: float, half_y: float) -> Triangles:
    """A flat rectangle in the xy-plane."""
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * [half_x, half_y, 0.0]
    return corners.astype(float), np.array([[0, 1, 2], [0, 2, 3]])


def revolve(radius: Float[np.ndarray, " rings"], height: Float[np.ndarray, " rings"]) -> Triangles:
    """A surface of revolution about z, from rings of given radius and height, bottom to top."""
    turn = np.linspace(0, 2 * np.pi, ROUND_SEGMENTS, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    rings = zip(radius, height, strict=True)
    points = np.concatenate([np.column_stack([r * circle, np.full(len(turn), z)]) for r, z in rings])
    here = np.arange(ROUND_SEGMENTS)
    after = np.roll(here, -1)
    faces = []
    for ring in range(len(radius) - 1):
        if (radius[ring], height[ring]) == (radius[ring + 1], height[ring + 1]):
            continue  # a sharp edge: the same ring twice
        low, high = ring * ROUND_SEGMENTS, (ring + 1) * ROUND_SEGMENTS
        if radius[ring] > 0:
            faces.append(np.stack([low + here, low + after, high + after], axis=1))
        if radius[ring + 1] > 0:
            faces.append(np.stack([low + here, high + after, high + here], axis=1))
    return points, np.concatenate(faces)
