"""Shapes of a robot as triangles in the frames of its bodies."""

import dataclasses

import mujoco
import numpy as np

from truesim.core.typing import Float, Int
from truesim.physics.model.model import Model
from truesim.scenes import solids
from truesim.scenes.simplify import simplify

MAX_SCENE_FACES = 60_000
"""Triangles of a robot; more show finer details in larger files."""
MIN_MESH_FACES = 200
"""Triangles that a mesh may keep for any number of meshes."""
FLOOR_HALF_SIZE = 2.0
"""Half size of a plane without one [m]."""
COLORLESS, FLOOR_COLOR = (0.5, 0.5, 0.5, 1.0), (0.86, 0.87, 0.89, 1.0)
"""Color of shapes without one in MuJoCo, and of floors without one here, on which gray bodies are seen."""
STICK_RADIUS = 0.12
"""Radius of the sticks that stand for a robot without shapes, relative to the longest of them."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """Triangles of one color, fixed to a body."""

    body: int
    """Index of the body; -1 is the world."""
    vertices: Float[np.ndarray, "n 3"]
    """In the frame of the body [m]."""
    faces: Int[np.ndarray, "m 3"]
    color: tuple[float, float, float, float]
    """Red, green, blue, opacity in 0 to 1."""
    is_floor: bool = False

    def grown(self, by: float) -> Float[np.ndarray, "n 3"]:
        """Vertices moved outward along the normals of the surface.

        Args:
            by: Distance [m].
        """
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        faces = np.repeat(np.cross(b - a, c - a), 3, axis=0)
        at = self.faces.ravel()
        normal = np.stack([np.bincount(at, faces[:, k], len(self.vertices)) for k in range(3)], axis=1)
        return self.vertices + by * normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)

    @property
    def muted(self) -> tuple[float, float, float, float]:
        """The color as a light gray, so that colors are left to tell simulated robots from the recorded one."""
        r, g, b, opacity = self.color
        gray = 0.5 + 0.35 * (0.3 * r + 0.59 * g + 0.11 * b)
        return gray, gray, gray, opacity


def drawn_shapes(model: Model, max_faces: int = MAX_SCENE_FACES) -> list[Shape]:
    """Shapes of a robot to draw: those for drawing where a body has such, else those of its collisions.

    A robot without any shape is drawn as sticks between its joints.

    Args:
        model: The robot.
        max_faces: Triangles of all meshes together; meshes with more are simplified.
    """
    drawn = drawn_geoms(model)
    sizes = {g: len(mesh.faces) for g in drawn if (mesh := model.geoms.meshes[g]) is not None}
    share = max_faces / max(1, sum(sizes.values()))
    found = []
    for g in drawn:
        made = _triangles(model, g, max(MIN_MESH_FACES, int(share * sizes.get(g, 0))))
        if made is None or not len(made[1]):
            continue
        R = _matrix(np.asarray(model.geoms.orientation[g]))
        vertices = np.asarray(made[0], float) @ R.T + np.asarray(model.geoms.position[g], float)
        is_floor, own = model.geoms.shapes[g] == "plane", model.geoms.colors[g]
        r, green, b, a = FLOOR_COLOR if is_floor and np.allclose(own, COLORLESS) else own
        found.append(Shape(model.geoms.bodies[g], vertices, made[1], (r, green, b, a), is_floor))
    return found if any(not shape.is_floor for shape in found) else found + _sticks(model)


def drawn_geoms(model: Model) -> list[int]:
    """Geoms to draw: on each body those that collide with nothing, if it has any, else all."""
    geoms = model.geoms
    visual = [not (geoms.contype[g] or geoms.conaffinity[g]) for g in range(len(geoms.names))]
    decorated = {geoms.bodies[g] for g in range(len(visual)) if visual[g] and geoms.colors[g][3] > 0}
    return [g for g in range(len(visual)) if geoms.colors[g][3] > 0 and (visual[g] or geoms.bodies[g] not in decorated)]


def _triangles(model: Model, g: int, most: int) -> solids.Triangles | None:
    size, mesh = np.asarray(model.geoms.size[g], float), model.geoms.meshes[g]
    match model.geoms.shapes[g]:
        case "mesh" if mesh is not None:
            return simplify(np.asarray(mesh.vertices, float), np.asarray(mesh.faces), most)
        case "box":
            return solids.box(size)
        case "sphere":
            return solids.ellipsoid(np.full(3, size[0]))
        case "ellipsoid":
            return solids.ellipsoid(size)
        case "capsule":
            return solids.capsule(float(size[0]), float(size[1]))
        case "cylinder":
            return solids.cylinder(float(size[0]), float(size[1]))
        case "plane":
            return solids.rectangle(float(size[0]) or FLOOR_HALF_SIZE, float(size[1]) or FLOOR_HALF_SIZE)
    return None


def _sticks(model: Model) -> list[Shape]:
    """A capsule from every body to each of its children, or to its center of mass at the end of a chain."""
    bodies = model.bodies
    parents = set(bodies.parents)
    ends = [(bodies.parents[b], np.asarray(bodies.position[b], float)) for b in range(len(bodies.names))]
    ends += [(b, np.asarray(bodies.com[b], float)) for b in range(len(bodies.names)) if b not in parents]
    longest = max((float(np.linalg.norm(end)) for _, end in ends), default=0.1) or 0.1
    found = []
    for body, end in ends:
        length = float(np.linalg.norm(end))
        vertices, faces = solids.capsule(STICK_RADIUS * longest, length / 2)
        R = np.eye(3)
        if length > 0:
            quaternion = np.empty(4)
            mujoco.mju_quatZ2Vec(quaternion, end / length)
            R = _matrix(quaternion)
        found.append(Shape(body, vertices @ R.T + end / 2, faces, (0.6, 0.62, 0.66, 1.0)))
    return found


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, np.asarray(quaternion, dtype=float))
    return R.reshape(3, 3)
