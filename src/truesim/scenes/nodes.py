"""Robots as nodes of a viser scene, and recordings of a replay that need no server."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from truesim.scenes.cameras import FIELD_OF_VIEW
from truesim.scenes.motions import BodyPoses
from truesim.scenes.replay import FITTED_COLOR, START_COLOR, Replay
from truesim.scenes.shapes import Shape
from truesim.scenes.viewer_library import LOOPBACK, open_server, quiet

SCENE_GHOST_OPACITY = 0.4
TINTS = {"fitted": FITTED_COLOR, "start": START_COLOR}
GHOST_GROWTH = {"start": 0.002, "fitted": 0.003}
"""Growth of ghosts relative to the size of the scene; different, because robots that agree would flicker."""
PLAIN_COLOR = (0.62, 0.64, 0.68)
"""Color of a simulated robot that is neither the fitted nor the start one."""


@dataclasses.dataclass(frozen=True)
class RobotNodes:
    """Frames of the bodies of one robot in a scene; their meshes move with them."""

    root: Any
    frames: tuple[Any, ...]
    """One per body."""

    @classmethod
    def add(cls, scene: Any, name: str, shapes: Sequence[Shape], bodies: int, growth: float = 0.0) -> "RobotNodes":
        """Add a robot to a scene; one whose name is not `recorded` is drawn as a ghost.

        Args:
            scene: `server.scene`.
            name: Name of the motion: `recorded`, `fitted` or `start`.
            shapes: Shapes of the robot.
            bodies: Number of its bodies.
            growth: Distance by which a ghost is larger, so that it covers a robot that it agrees with [m].
        """
        root = scene.add_frame(f"/{name}", show_axes=False)
        frames = tuple(scene.add_frame(f"/{name}/body{b}", show_axes=False) for b in range(bodies))
        ghost = name != "recorded"
        for k, ((body, color), own) in enumerate(_grouped(shapes).items()):
            if ghost and body < 0:
                continue
            starts = np.cumsum([0, *(len(s.vertices) for s in own)])
            tint = TINTS.get(name, PLAIN_COLOR) if ghost else color[:3]
            scene.add_mesh_simple(
                f"/{name}/mesh{k}" if body < 0 else f"/{name}/body{body}/mesh{k}",
                np.concatenate([s.grown(growth) if ghost else s.vertices for s in own]).astype(np.float32),
                np.concatenate([s.faces + start for s, start in zip(own, starts, strict=False)]).astype(np.uint32),
                color=tuple(int(255 * c) for c in tint),
                opacity=SCENE_GHOST_OPACITY if ghost else (None if color[3] >= 1 else color[3]),
                flat_shading=True,
                side="double",
                cast_shadow=not ghost,
            )
        return cls(root, frames)

    def move(self, poses: BodyPoses, frame: int) -> None:
        """Move the bodies to one frame of their poses."""
        for b, node in enumerate(self.frames):
            node.position = poses.translation[frame, b]
            node.wxyz = poses.quaternion[frame, b]

    def move_changed(self, poses: BodyPoses, frame: int, before: int) -> None:
        """Move the bodies whose pose differs from that of the frame shown before."""
        turned = np.any(poses.quaternion[frame] != poses.quaternion[before], axis=-1)
        shifted = np.any(poses.translation[frame] != poses.translation[before], axis=-1)
        for b in np.flatnonzero(shifted):
            self.frames[b].position = poses.translation[frame, b]
        for b in np.flatnonzero(turned):
            self.frames[b].wxyz = poses.quaternion[frame, b]


def add_replay(server: Any, replay: Replay) -> dict[str, RobotNodes]:
    """Add all robots of a replay to a scene at their first frame, with a floor and a camera that sees them."""
    scene, camera = server.scene, replay.camera
    scene.set_up_direction("+z")
    server.initial_camera.position = camera.position
    server.initial_camera.look_at = camera.target
    server.initial_camera.up = (0.0, 0.0, 1.0)
    server.initial_camera.fov = float(FIELD_OF_VIEW)
    size = float(10 ** np.floor(np.log10(2 * camera.radius)))
    scene.add_grid("/floor", 40 * size, 40 * size, cell_size=size / 2, section_size=size, fade_distance=60 * size)
    nodes, shapes = (
        {},
        replay.shapes if len(replay.poses) == 1 else [dataclasses.replace(s, color=s.muted) for s in replay.shapes],
    )
    for name, poses in replay.poses.items():
        growth = GHOST_GROWTH.get(name, 0.0) * camera.radius
        nodes[name] = RobotNodes.add(scene, name, shapes, poses.translation.shape[1], growth)
        nodes[name].move(poses, 0)
    return nodes


def record_page(replay: Replay, max_frames: int | None = None) -> str:
    """A page that plays the replay without a server: one HTML text that loads nothing.

    Args:
        replay: What to play.
        max_frames: Frames that are recorded; longer replays have a lower frame rate. All by default.
    """
    count = len(replay.time)
    shown = np.unique(np.linspace(0, count - 1, min(count, max_frames or count)).astype(int))
    server = open_server(LOOPBACK)
    try:
        nodes = add_replay(server, replay)
        recording = server.get_scene_serializer()
        for before, frame in itertools.pairwise(shown):
            recording.insert_sleep(float(replay.time[frame] - replay.time[before]))
            for name, poses in replay.poses.items():
                nodes[name].move_changed(poses, frame, before)
        page = recording.as_html()
    finally:
        with quiet():
            server.stop()
    return page.replace(
        "__VISER_EMBED_CONFIG__={darkMode:false}",
        "__VISER_EMBED_CONFIG__={darkMode:matchMedia('(prefers-color-scheme: dark)').matches}",
    )


def _grouped(shapes: Sequence[Shape]) -> dict[tuple[int, tuple[float, ...]], list[Shape]]:
    """Shapes by body and color."""

    def key(shape: Shape) -> tuple[int, tuple[float, ...]]:
        return shape.body, shape.color

    return {k: list(own) for k, own in itertools.groupby(sorted(shapes, key=key), key)}
