"""Replays: a robot with its recorded and simulated motions on one time axis."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.files.robots import load
from truesim.identification import fit_folder
from truesim.physics.model.model import Model
from truesim.scenes.cameras import Camera, camera_for
from truesim.scenes.motions import (
    BodyPoses,
    ShownMotion,
    poses_of,
    position_rows,
    recorded_motion,
    simulated_motion,
    start_configuration,
)
from truesim.scenes.picture import Canvas, PosedShapes
from truesim.scenes.shapes import Shape, drawn_shapes

FITTED_COLOR, START_COLOR = (0.0, 0.45, 0.70), (0.90, 0.38, 0.05)
"""Colors of the robot as simulated with the estimates and with the start values."""
GHOST_OPACITY = 0.55


@dataclasses.dataclass(frozen=True)
class Replay:
    """Shapes of a robot and its poses at the frames of one or several motions."""

    name: str
    """Log or robot that is shown."""
    shapes: Sequence[Shape]
    parents: Sequence[int]
    """Parent of each body; -1 is the world."""
    time: Float[np.ndarray, " frames"]
    """[s]"""
    poses: Mapping[str, BodyPoses]
    """Poses by motion: `recorded`, `fitted`, `start`; the first one is drawn solid."""
    camera: Camera

    @classmethod
    def of(
        cls, name: str, model: Model, motions: Sequence[ShownMotion], shapes: Sequence[Shape] | None = None
    ) -> "Replay":
        """The replay of motions that have the same frames.

        Args:
            name: Log or robot that is shown.
            model: The robot.
            motions: The motions; the first one is drawn solid.
            shapes: Shapes of the robot, if they were made before.
        """
        shapes = drawn_shapes(model) if shapes is None else shapes
        joined = poses_of(model, np.concatenate([m.q for m in motions]))
        ends = np.cumsum([len(m.q) for m in motions])[:-1]
        parts = zip(*(np.split(part, ends) for part in joined), strict=True)
        poses = {m.name: BodyPoses(*part) for m, part in zip(motions, parts, strict=True)}
        return cls(name, shapes, model.bodies.parents, motions[0].time, poses, camera_for(shapes, list(poses.values())))

    @property
    def largest_difference(self) -> int:
        """Frame at which a simulated robot is farthest from the recorded one; the middle if there is none."""
        first, *others = self.poses.values()
        if not others:
            return len(self.time) // 2
        return int(np.argmax(np.linalg.norm(others[-1].translation - first.translation, axis=-1).max(axis=1)))


def robot_replay(model: Model, name: str = "robot") -> Replay:
    """A robot at rest in its start configuration."""
    return Replay.of(name, model, [ShownMotion("recorded", np.zeros(1), start_configuration(model)[None])])


class Replays(Mapping[str, Replay]):
    """Replays of one robot by name, each made when it is first asked for."""

    def __init__(self, model: Model, makers: Mapping[str, Callable[[], Sequence[ShownMotion]]]):
        """Remember how to make them.

        Args:
            model: The robot.
            makers: Functions that make the motions of a replay, by its name.
        """
        self._model, self._makers = model, dict(makers)
        self._shapes = functools.cache(functools.partial(drawn_shapes, model))
        self._made: dict[str, Replay] = {}

    def __getitem__(self, name: str) -> Replay:
        """The replay of this name."""
        if name not in self._made:
            motions, shown = self._makers[name](), name.rpartition("/")[2]
            self._made[name] = Replay.of(shown, self._model, motions, self._shapes())
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._makers)

    def __len__(self) -> int:
        """Their number."""
        return len(self._makers)


def log_replays(model: Model, logs: Sequence[Log]) -> Replays:
    """Motions of prepared logs, by log; logs of the same name by their numbers as well."""
    names = [log.name for log in logs]
    labels = [name if names.count(name) == 1 else f"{name} ({k + 1})" for k, name in enumerate(names)]
    makers = {label: functools.partial(_recorded_only, model, log) for label, log in zip(labels, logs, strict=True)}
    return Replays(model, makers)


def _recorded_only(model: Model, log: Log) -> list[ShownMotion]:
    return [recorded_motion(model, log)]


def fit_replays(folder: Path) -> Replays:
    """Recorded, fitted and start motion of the logs in the folder of a fit, by `part/log`; held-out logs first."""
    model = load(fit_folder.robot_file(folder))
    logs, signals = fit_folder.logs_in(folder), fit_folder.read_arrays(folder, fit_folder.SIGNALS)
    each = {f"{part}/{log.name}": log for part in ("held_out", "train") for log in logs[part]}
    makers = {
        key: functools.partial(motions_of, model, log, signals, key)
        for key, log in each.items()
        if f"{key}/time" in signals
    }
    return Replays(model, makers)


def motions_of(model: Model, log: Log, signals: Mapping[str, np.ndarray], key: str) -> list[ShownMotion]:
    """Recorded motion of a log, and the simulated ones where joint positions are measured."""
    recorded = recorded_motion(model, log)
    if not position_rows(model, [str(row) for row in signals["rows"]]):
        return [recorded]
    return [recorded, *(simulated_motion(model, recorded, signals, key, name) for name in ("fitted", "start"))]


def snapshot(replay: Replay, frame: int | None = None, ghost: str | None = None, width: int = 640) -> np.ndarray:
    """A picture of one frame: the recorded robot, with one simulated robot as a ghost over it.

    Args:
        replay: What to draw.
        frame: Frame; that of the largest difference by default.
        ghost: Simulated motion to draw; none by default.
        width: Width of the picture [pixels]; its height is three quarters of it.
    """
    return snapshots(replay, (ghost,), frame, width)[0]


def snapshots(
    replay: Replay, ghosts: Sequence[str | None], frame: int | None = None, width: int = 640
) -> list[np.ndarray]:
    """Pictures of one frame as `snapshot` makes them, one per ghost."""
    frame = replay.largest_difference if frame is None else frame
    here = [BodyPoses(*(part[frame : frame + 1] for part in poses)) for poses in replay.poses.values()]
    is_plain = all(ghost is None for ghost in ghosts)
    shapes = replay.shapes if is_plain else [dataclasses.replace(shape, color=shape.muted) for shape in replay.shapes]
    canvas = Canvas.blank(camera_for(replay.shapes, here), width, width * 3 // 4)
    canvas = canvas.paint(PosedShapes(shapes, next(iter(replay.poses.values())), frame))
    pictures = []
    for ghost in ghosts:
        if ghost is None:
            pictures.append(canvas.image())
            continue
        tint = FITTED_COLOR if ghost == "fitted" else START_COLOR
        robot = PosedShapes(replay.shapes, replay.poses[ghost], frame, tint, GHOST_OPACITY)
        pictures.append(canvas.paint(robot).image())
    return pictures
