"""The recordings as logs: positions of two markers relative to the pivot's [m].

The pivot's marker is rounded to whole units and moves with the camera's vibration; its mean over a few frames is
subtracted, not each measurement. The camera had two positions, which are told by the length of the upper arm in the
image.
"""

from pathlib import Path

import numpy as np

from experiments.recorded import folder
from truesim.core.typing import Float
from truesim.files.logs import Log

RIG = Path(__file__).with_name("rig.xml")
FRAME = 0.0025
"""Nominal time between frames [s]."""
GIVEN = 4
"""Number of given frames of a validation sequence."""
PIVOT_FRAMES = 5
"""Number of frames over which the pivot's marker is averaged in training."""
FAR, NEAR = 588.6, 602.0
"""Length of the upper arm in the image for the two camera positions [units]."""
METERS = 0.091 / FAR
"""Length of a unit with the camera far away [m]."""
MARKERS = ("middle", "tip")

Cameras = dict[str, dict[str, float | str]]


def training() -> tuple[list[Log], Cameras]:
    """All training recordings with the scales of their images."""
    paths = sorted((folder("ibm_double_pendulum") / "train").glob("*.csv"), key=lambda path: int(path.stem))
    frames = {path.name: np.loadtxt(path) for path in paths}
    logs = [_log(name, x, _running_mean(x[:, :2], PIVOT_FRAMES)) for name, x in frames.items()]
    return logs, {name: _camera(x) for name, x in frames.items()}


def first_second() -> tuple[Log, Cameras]:
    """The second that Tiny Differentiable Simulator's own experiment fits: the first 400 frames of a recording."""
    path = folder("ibm_double_pendulum") / "train" / "28.csv"
    frames = np.loadtxt(path, max_rows=400)
    after = np.full((1, 6), np.nan)  # a log's last sample is not compared
    log = _log(
        path.name, np.concatenate([frames, after]), np.pad(_running_mean(frames[:, :2], PIVOT_FRAMES), ((0, 1), (0, 0)))
    )
    return log, {path.name: _camera(frames)}


def validation() -> tuple[list[Log], Cameras]:
    """The validation sequences, given frames first; pivot and camera are known from the given frames alone."""
    root = folder("ibm_double_pendulum")
    logs, cameras = [], {}
    for path in sorted((root / "validation_inputs").glob("*.csv")):
        given, target = np.loadtxt(path), np.loadtxt(root / "validation_targets" / path.name)
        after = np.full((1, 6), np.nan)  # a log's last sample is not predicted
        logs.append(_log(path.name, np.concatenate([given, target, after]), given[:, :2].mean(axis=0)))
        cameras[path.name] = _camera(given)
    return logs, cameras


def _log(name: str, frames: Float[np.ndarray, "frames 6"], pivot: np.ndarray) -> Log:
    columns = {
        f"sensor/{marker}/{axis}": METERS * (frames[:, 2 * k + 2 + i] - np.broadcast_to(pivot, (len(frames), 2))[:, i])
        for k, marker in enumerate(MARKERS)
        for i, axis in enumerate("xy")
    }
    return Log(FRAME * np.arange(len(frames)), columns, name)


def _camera(frames: np.ndarray) -> dict[str, float | str]:
    """Scale of the markers' positions."""
    length = np.median(np.hypot(frames[:, 2] - frames[:, 0], frames[:, 3] - frames[:, 1]))
    scale = NEAR / FAR if length > (NEAR + FAR) / 2 else 1.0
    return {f"sensors/{marker}/{axis}.scale": scale for marker in MARKERS for axis in "xy"}


def _running_mean(x: Float[np.ndarray, "frames 2"], count: int) -> np.ndarray:
    padded = np.pad(x, ((count // 2, count - 1 - count // 2), (0, 0)), mode="edge")
    return np.stack([np.convolve(column, np.full(count, 1 / count), mode="valid") for column in padded.T], axis=1)
