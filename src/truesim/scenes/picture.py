"""Pictures of robots, drawn without a graphics card: triangles in a depth buffer, written as PNG."""

import base64
import dataclasses
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truesim.core.typing import Float
from truesim.scenes.cameras import FIELD_OF_VIEW, Camera
from truesim.scenes.motions import BodyPoses
from truesim.scenes.shapes import Shape

OVERSAMPLING = 2
"""Samples per pixel and direction; more are smoother and slower."""
SMOOTH_CORNER = 0.75
"""Cosine of the angle between a face and the mean of its neighbors up to which an edge is shaded smoothly."""
AMBIENT = 0.42
"""Brightness of faces that point away from the light, relative to those that face it."""
LIGHT = np.array([0.35, -0.55, 0.75]) / np.linalg.norm([0.35, -0.55, 0.75])
BEHIND = 0.35
"""Opacity of a ghost behind the solid robot, relative to in front of it."""
EDGE = 1e-5
"""Part of a triangle's height by which it is extended, so that no gap remains between neighbors."""
COINCIDENCE = 0.004
"""Distance up to which a ghost behind the solid robot counts as in front, relative to that of the camera: it covers a
robot that it agrees with."""
CANDIDATES = 1 << 18
"""Pixels that are tested at once; more need more memory."""


@dataclasses.dataclass(frozen=True)
class PosedShapes:
    """A robot in a picture: its shapes at one frame of its poses."""

    shapes: Sequence[Shape]
    poses: BodyPoses
    frame: int = 0
    tint: tuple[float, float, float] | None = None
    """Color of all shapes, instead of their own."""
    opacity: float = 1.0


@dataclasses.dataclass(frozen=True)
class Canvas:
    """A picture that robots are painted on, with several samples per pixel."""

    camera: Camera
    shape: tuple[int, int]
    """Rows and columns of samples."""
    color: Float[np.ndarray, "samples 3"]
    opacity: Float[np.ndarray, " samples"]
    depth: Float[np.ndarray, " samples"]
    """Distance of the nearest solid face; infinite where there is none [m]."""

    @classmethod
    def blank(cls, camera: Camera, width: int, height: int) -> "Canvas":
        """A transparent canvas.

        Args:
            camera: Where to look from.
            width: Width of the picture [pixels].
            height: Height of the picture [pixels].
        """
        shape = (height * OVERSAMPLING, width * OVERSAMPLING)
        size = shape[0] * shape[1]
        return cls(camera, shape, np.zeros((size, 3), np.float32), np.zeros(size, np.float32), _far(size))

    def paint(self, actor: PosedShapes) -> "Canvas":
        """The canvas with a robot; ghosts are blended over what is there."""
        at, own_color, own_depth = _rasterize(actor, self.camera, self.shape)
        front = own_depth < self.depth[at] * (1 + (COINCIDENCE if actor.opacity < 1 else 0.0))
        alpha = np.where(front, actor.opacity, 0.0 if actor.opacity >= 1 else actor.opacity * BEHIND).astype(np.float32)
        color, opacity, depth = self.color.copy(), self.opacity.copy(), self.depth.copy()
        below = opacity[at] * (1 - alpha)
        total = alpha + below
        mixed = own_color * alpha[:, None] + color[at] * below[:, None]
        color[at], opacity[at] = mixed / np.maximum(total, 1e-9)[:, None], total
        if actor.opacity >= 1.0:
            depth[at] = np.minimum(depth[at], own_depth)
        return dataclasses.replace(self, color=color, opacity=opacity, depth=depth)

    def image(self) -> np.ndarray:
        """Red, green, blue and opacity in 0 to 255, shape (height, width, 4)."""
        return _downsample(self.color.reshape(*self.shape, 3), self.opacity.reshape(self.shape))


def png(image: np.ndarray) -> bytes:
    """A picture of `Canvas.image` as PNG."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def write_png(path: Path, image: np.ndarray) -> None:
    """Write a picture of `Canvas.image` to a file."""
    path.write_bytes(png(image))


def data_address(image: np.ndarray) -> str:
    """A picture of `Canvas.image` as the source of an image element."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()


def _far(size: int) -> Float[np.ndarray, " size"]:
    return np.full(size, np.inf, np.float32)


def _downsample(color: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    """The picture at its own resolution; only the rectangle that anything covers is computed."""
    n, (height, width) = OVERSAMPLING, opacity.shape
    image = np.zeros((height // n, width // n, 4), np.uint8)
    rows, columns = (np.flatnonzero(opacity.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return image
    (top, bottom), (left, right) = ((x[0] // n, x[-1] // n + 1) for x in (rows, columns))

    def blocks(values: np.ndarray) -> np.ndarray:
        part = values[top * n : bottom * n, left * n : right * n]
        return np.add.reduce([part[i::n, j::n] for i in range(n) for j in range(n)]) / n**2

    alpha = blocks(opacity[..., None])
    mean = blocks(color * opacity[..., None]) / np.maximum(alpha, 1e-9)
    image[top:bottom, left:right] = np.round(255 * np.clip(np.concatenate([mean, alpha], axis=-1), 0, 1))
    return image


def _rasterize(actor: PosedShapes, camera: Camera, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Pixels that the robot covers, as places in the flat picture, with their colors and depths."""
    forward = (camera.target - camera.position) / np.linalg.norm(camera.target - camera.position)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    view = np.stack([right, np.cross(right, forward), forward])
    zoom = shape[0] / (2 * np.tan(FIELD_OF_VIEW / 2))
    corners, shades = [np.zeros((0, 3, 3))], [np.zeros((0, 3, 3))]
    for each in actor.shapes:
        if each.is_floor or each.color[3] == 0 or (each.body < 0 and actor.opacity < 1):
            continue  # a ghost consists of what moves
        vertices = each.vertices
        if each.body >= 0:
            R = actor.poses.rotation[actor.frame, each.body]
            vertices = vertices @ R.T + actor.poses.translation[actor.frame, each.body]
        brightness = _brightness(vertices, each.faces, forward)
        seen = (vertices - camera.position) @ view.T
        z = np.maximum(seen[:, 2], 1e-6)
        pixels = np.stack([shape[1] / 2 + zoom * seen[:, 0] / z, shape[0] / 2 - zoom * seen[:, 1] / z, seen[:, 2]], 1)
        corners.append(pixels[each.faces])
        shades.append(brightness[..., None] * np.array(actor.tint or each.color[:3]))
    return _fill(np.concatenate(corners).astype(np.float32), np.concatenate(shades).astype(np.float32), shape)


def _brightness(vertices: np.ndarray, faces: np.ndarray, forward: np.ndarray) -> Float[np.ndarray, "faces 3"]:
    """Brightness of the corners of every face, by a light from above and diffuse light."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    mean = np.stack([np.bincount(faces.ravel(), np.repeat(normal[:, k], 3), len(vertices)) for k in range(3)], axis=1)
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
    mean = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-30)
    corner = mean[faces]
    sharp = np.einsum("fkj,fj->fk", corner, normal) < SMOOTH_CORNER
    corner = np.where(sharp[..., None], normal[:, None], corner)
    corner = np.where((corner @ forward)[..., None] > 0, -corner, corner)
    lit = 0.75 * np.maximum(corner @ LIGHT, 0) + 0.25 * np.maximum(-(corner @ forward), 0)
    return AMBIENT + (1 - AMBIENT) * np.clip(1.2 * lit, 0, 1)


def _fill(corners: np.ndarray, shades: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Fill triangles, those with boxes of similar size at once."""
    color, depth = np.zeros((shape[0] * shape[1], 3), np.float32), _far(shape[0] * shape[1])
    low = np.floor(corners[..., :2].min(axis=1)).astype(int)
    extent = np.ceil(corners[..., :2].max(axis=1)).astype(int) - low + 1
    visible = np.all((low < [shape[1], shape[0]]) & (low + extent > 0), axis=1) & (corners[..., 2].min(axis=1) > 0)
    box = 1 << np.ceil(np.log2(np.maximum(extent, 2))).astype(int)
    for width, height in np.unique(box[visible], axis=0):
        chosen = np.flatnonzero(visible & (box[:, 0] == width) & (box[:, 1] == height))
        step = max(1, CANDIDATES // int(width * height))
        for first in range(0, len(chosen), step):
            own = chosen[first : first + step]
            _fill_boxes(corners[own], shades[own], low[own], (int(width), int(height)), shape, color, depth)
    at = np.flatnonzero(np.isfinite(depth))
    return at, color[at], depth[at]


def _fill_boxes(
    corners: np.ndarray,
    shades: np.ndarray,
    low: np.ndarray,
    box: tuple[int, int],
    shape: tuple[int, int],
    color: np.ndarray,
    depth: np.ndarray,
) -> None:
    """Fill triangles within boxes of equal width and height, in place."""
    x, y = (low[:, k, None].astype(np.int32) + np.arange(n, dtype=np.int32) for k, n in enumerate(box))
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (corners[:, k].T[..., None] for k in range(3))
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / ((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        right, down = x.astype(np.float32) + 0.5 - ax, y.astype(np.float32) + 0.5 - ay
        v = ((cy - ay) * scale * right)[:, None] - ((cx - ax) * scale * down)[..., None]
        w = ((bx - ax) * scale * down)[..., None] - ((by - ay) * scale * right)[:, None]
        hit = (v >= -EDGE) & (w >= -EDGE) & (v + w <= 1 + EDGE)
        hit &= ((x >= 0) & (x < shape[1]))[:, None] & ((y >= 0) & (y < shape[0]))[..., None]
    found = np.flatnonzero(hit)
    (t, j, i), v, w = np.unravel_index(found, hit.shape), v.ravel()[found], w.ravel()[found]
    weights = np.stack([1 - v - w, v, w], axis=1)
    z = np.einsum("nk,nk->n", weights, np.stack([az[t, 0], bz[t, 0], cz[t, 0]], axis=1))
    at: np.ndarray = y[t, j] * shape[1] + x[t, i]
    np.minimum.at(depth, at, z)
    best = z <= depth[at]
    color[at[best]] = np.einsum("nk,nkc->nc", weights[best], shades[t[best]])
