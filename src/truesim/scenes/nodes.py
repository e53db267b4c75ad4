"""Robots as nodes of a viser scene, and recordings of a replay that need no server."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.scenes.cameras import ASPECT, FIELD_OF_VIEW, Camera, camera_for
from truesim.scenes.motions import BodyPoses
from truesim.scenes.replay import FITTED_COLOR, START_COLOR, Replay
from truesim.scenes.shapes import Shape
from truesim.scenes.viewer_library import LOOPBACK, open_server, quiet

SCENE_GHOST_OPACITY = 0.4
TINTS = {"fitted": FITTED_COLOR, "start": START_COLOR}
MIN_SHOWN_CHANGE = 1e-9
"""Change of a position [m] or quaternion from frame to frame below which a body stays where it is."""
GHOST_GROWTH = {"start": 0.002, "fitted": 0.003}
"""Growth of ghosts relative to the size of the scene; different, because robots that agree would flicker."""
MAX_DIP = 0.3
"""Depth to which a standing robot may reach below its foot, relative to the size of the scene; deeper, it hangs."""
CELL_COLOR, SECTION_COLOR = (205, 208, 214), (165, 170, 178)
"""Colors of the thin and the strong lines of the floor."""
PLAIN_COLOR = (0.62, 0.64, 0.68)
"""Color of a simulated robot that is neither the fitted nor the start one."""


@dataclasses.dataclass(frozen=True)
class RobotNodes:
    """Frames of the bodies of one robot in a scene, each within that of its parent; their meshes move with them."""

    root: Any
    frames: tuple[Any, ...]
    """One per body."""
    parents: Sequence[int]

    @classmethod
    def add(
        cls, scene: Any, name: str, shapes: Sequence[Shape], parents: Sequence[int], growth: float = 0.0
    ) -> "RobotNodes":
        """Add a robot to a scene; one whose name is not `recorded` is drawn as a ghost.

        Args:
            scene: `server.scene`.
            name: Name of the motion: `recorded`, `fitted` or `start`.
            shapes: Shapes of the robot.
            parents: Parent of each body; -1 is the world.
            growth: Distance by which a ghost is larger, so that it covers a robot that it agrees with [m].
        """
        paths = {-1: f"/{name}"}
        root = scene.add_frame(paths[-1], show_axes=False)
        for body, parent in enumerate(parents):  # parents come first
            paths[body] = f"{paths[parent]}/body{body}"
        frames = tuple(scene.add_frame(paths[body], show_axes=False) for body in range(len(parents)))
        ghost = name != "recorded"
        for k, ((body, color), own) in enumerate(_grouped(shapes).items()):
            if ghost and body < 0:
                continue
            starts = np.cumsum([0, *(len(s.vertices) for s in own)])
            tint = TINTS.get(name, PLAIN_COLOR) if ghost else color[:3]
            scene.add_mesh_simple(
                f"{paths[body]}/mesh{k}",
                np.concatenate([s.grown(growth) if ghost else s.vertices for s in own]).astype(np.float32),
                np.concatenate([s.faces + start for s, start in zip(own, starts, strict=False)]).astype(np.uint32),
                color=tuple(int(255 * c) for c in tint),
                opacity=SCENE_GHOST_OPACITY if ghost else (None if color[3] >= 1 else color[3]),
                flat_shading=True,
                side="double",
                cast_shadow=not ghost,
            )
        return cls(root, frames, parents)

    def move(self, poses: BodyPoses, frame: int) -> None:
        """Move the bodies to one frame of their poses."""
        for moves in self.moves(BodyPoses(*(x[frame : frame + 1] for x in poses))):
            moves()

    def moves(self, poses: BodyPoses) -> Iterator[Callable[[], None]]:
        """Functions that move the bodies from frame to frame, those that have moved by more than rounding."""
        translation, quaternion = poses.in_parents(self.parents)
        shifted, turned = (_changes(x) for x in (translation, quaternion))

        def move(frame: int) -> None:
            for b in np.flatnonzero(shifted[frame]):
                self.frames[b].position = translation[frame, b]
            for b in np.flatnonzero(turned[frame]):
                self.frames[b].wxyz = quaternion[frame, b]

        return (functools.partial(move, frame) for frame in range(len(translation)))


def add_replay(server: Any, replay: Replay, aspect: float = ASPECT, upper: float = 1.0) -> dict[str, RobotNodes]:
    """Add all robots of a replay to a scene at their first frame, with a floor and a camera that sees them.

    Args:
        server: Server of the scene.
        replay: The robots.
        aspect: Width of the scene relative to its height, for the camera.
        upper: Part of the scene, from above, that is not covered by a panel.
    """
    scene, camera = server.scene, camera_for(replay.shapes, list(replay.poses.values()), aspect, upper)
    scene.set_up_direction("+z")
    server.initial_camera.position = camera.position
    server.initial_camera.look_at = camera.target
    server.initial_camera.up = (0.0, 0.0, 1.0)
    server.initial_camera.fov = float(FIELD_OF_VIEW)
    size = float(10 ** np.floor(np.log10(2 * camera.radius)))
    add_floor(scene, size, floor_height(replay.shapes, camera))
    nodes, shapes = (
        {},
        replay.shapes if len(replay.poses) == 1 else [dataclasses.replace(s, color=s.muted) for s in replay.shapes],
    )
    for name, poses in replay.poses.items():
        growth = GHOST_GROWTH.get(name, 0.0) * camera.radius
        nodes[name] = RobotNodes.add(scene, name, shapes, replay.parents, growth)
        nodes[name].move(poses, 0)
    return nodes


def floor_height(shapes: Sequence[Shape], camera: Camera) -> float:
    """Height of the floor [m]: that of the file, else the foot of what does not move, else below a robot that hangs.

    Args:
        shapes: Shapes of the robot and of the world.
        camera: Camera that sees their motion.
    """
    if any(shape.is_floor for shape in shapes):
        return 0.0
    foot = min((float(shape.vertices[:, 2].min()) for shape in shapes if shape.body < 0), default=0.0)
    is_standing = camera.lowest > foot - MAX_DIP * camera.radius
    return min(0.0, foot if is_standing else camera.lowest)


def add_floor(scene: Any, size: float, height: float = 0.0) -> None:
    """Add or replace the grid on which robots stand, in shades that stay behind them on light and dark pages.

    Args:
        scene: `server.scene`.
        size: Distance of the stronger lines [m].
        height: Height of the floor [m].
    """
    scene.add_grid(
        "/floor", 40 * size, 40 * size, cell_size=size / 2, section_size=size, fade_distance=40 * size,
        cell_color=CELL_COLOR, section_color=SECTION_COLOR, cell_thickness=0.6, section_thickness=0.8,
        position=(0.0, 0.0, height),
    )  # fmt: skip


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
        with server.atomic():  # nobody is connected who would have to be told of every message
            nodes = add_replay(server, replay)
            recording = server.get_scene_serializer()
            moves = [nodes[name].moves(BodyPoses(*(x[shown] for x in poses))) for name, poses in replay.poses.items()]
            for pause, *each in zip(np.diff(replay.time[shown], prepend=replay.time[0]), *moves, strict=True):
                recording.insert_sleep(float(pause))
                for move in each:
                    move()
            page = recording.as_html()
    finally:
        with quiet():
            server.stop()
    return page.replace(
        "__VISER_EMBED_CONFIG__={darkMode:false}",
        "__VISER_EMBED_CONFIG__={darkMode:matchMedia('(prefers-color-scheme: dark)').matches}",
    )


def _changes(x: Float[np.ndarray, "frames bodies n"]) -> Bool[np.ndarray, "frames bodies"]:
    """True where a body differs from the frame before by more than rounding; at the first frame everywhere."""
    changed = np.ones(x.shape[:2], bool)
    changed[1:] = np.any(np.abs(np.diff(x, axis=0)) > MIN_SHOWN_CHANGE, axis=-1)
    return changed


def _grouped(shapes: Sequence[Shape]) -> dict[tuple[int, tuple[float, ...]], list[Shape]]:
    """Shapes by body and color."""

    def key(shape: Shape) -> tuple[int, tuple[float, ...]]:
        return shape.body, shape.color

    return {k: list(own) for k, own in itertools.groupby(sorted(shapes, key=key), key)}
