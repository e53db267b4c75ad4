"""Cameras: where to stand so that a robot and its motion fill the picture."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.scenes.motions import BodyPoses
from truesim.scenes.shapes import Shape

AZIMUTH, ELEVATION = np.deg2rad(-50.0), np.deg2rad(18.0)
"""Direction of the default camera, seen from the robot: from the right in front, a little from above."""
FIELD_OF_VIEW = np.deg2rad(32.0)
"""Vertical angle of the picture; smaller is flatter."""
FRAMING = 1.12
"""Size of the picture relative to that of the robot in it."""
ASPECT = 4 / 3
"""Width of a picture relative to its height."""


@dataclasses.dataclass(frozen=True)
class Camera:
    """A point to look from and a point to look at [m]."""

    position: Float[np.ndarray, "3"]
    target: Float[np.ndarray, "3"]
    radius: float
    """Radius of what is to be seen [m]."""


def camera_for(
    shapes: Sequence[Shape], poses: Sequence[BodyPoses], aspect: float = ASPECT, upper: float = 1.0
) -> Camera:
    """A camera that sees the whole robot, floors aside, in every frame of its motions.

    Args:
        shapes: Shapes of the robot.
        poses: Its motions.
        aspect: Width of the picture relative to its height.
        upper: Part of the picture, from above, that the robot shall fill.
    """
    points = []
    for shape in shapes:
        if shape.is_floor:
            continue
        low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        if shape.body < 0:
            points.append(corners)
            continue
        for pose in poses:
            R, p = pose.rotation[:, shape.body], pose.translation[:, shape.body]
            points.append((np.einsum("tij,cj->tci", R, corners) + p[:, None]).reshape(-1, 3))
    every = np.concatenate(points) if points else np.zeros((1, 3))
    middle = (every.min(axis=0) + every.max(axis=0)) / 2
    radius = float(np.linalg.norm(every - middle, axis=1).max()) or 0.5
    away = np.array([np.cos(AZIMUTH) * np.cos(ELEVATION), np.sin(AZIMUTH) * np.cos(ELEVATION), np.sin(ELEVATION)])
    right = np.array([-np.sin(AZIMUTH), np.cos(AZIMUTH), 0.0])
    up = np.cross(away, right)
    x, y, z = ((every - middle) @ axis for axis in (right, up, away))
    half = FRAMING * np.maximum(np.abs(x) / aspect, np.abs(y) / upper)
    distance = float((half / np.tan(FIELD_OF_VIEW / 2) + z).max()) or 1.0
    target = middle - (1 - upper) * distance * np.tan(FIELD_OF_VIEW / 2) * up
    return Camera(target + distance * away, target, radius)
