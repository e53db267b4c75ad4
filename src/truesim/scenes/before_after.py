"""One picture of a fit that needs no words: the real robot with the simulation before and after."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truesim.scenes.picture import write_png
from truesim.scenes.replay import FITTED_COLOR, START_COLOR, Replay, fit_replays, snapshot

BACKGROUND = (0.965, 0.97, 0.976)
GAP = 16
"""White between the halves [pixels]."""
CROSS = (((0.0, 0.0), (1.0, 1.0)), ((0.0, 1.0), (1.0, 0.0)))
CHECK = (((0.0, 0.55), (0.37, 0.95)), ((0.37, 0.95), (1.0, 0.1)))
"""Lines of the marks, from one point (right, down) to another, in a square of side 1."""
MARKS = {"start": (CROSS, START_COLOR), "fitted": (CHECK, FITTED_COLOR)}


def write_before_after(folder: Path, out: Path, width: int = 640) -> None:
    """Write the picture of the first held-out log, else the first log, of the fit in a folder.

    Args:
        folder: Folder of the fit.
        out: PNG file to write.
        width: Width of each half [pixels].
    """
    write_png(out, before_after(next(iter(fit_replays(folder).values())), width))


def before_after(replay: Replay, width: int = 640) -> np.ndarray:
    """The robot before (left, with a cross) and after the fit (right, with a check mark), where they differ most.

    Args:
        replay: Recorded, start and fitted motion; a replay without the latter two gives one half without a mark.
        width: Width of each half [pixels].
    """
    halves = [_half(replay, name, width) for name in (("start", "fitted") if "fitted" in replay.poses else (None,))]
    gap = np.ones((halves[0].shape[0], GAP, 3))
    joined = np.concatenate([halves[0], *(part for half in halves[1:] for part in (gap, half))], axis=1)
    image = np.full((*joined.shape[:2], 4), 255, np.uint8)
    image[..., :3] = np.round(255 * joined)
    return image


def _half(replay: Replay, name: str | None, width: int) -> np.ndarray:
    image = snapshot(replay, ghost=name, width=width) / 255.0
    alpha = image[..., 3:]
    image = image[..., :3] * alpha + np.array(BACKGROUND) * (1 - alpha)
    if name is None:
        return image
    lines, color = MARKS[name]
    image[: max(2, width // 100)] = color
    return _marked(image, lines, color, corner=0.055 * width, size=0.07 * width, thickness=0.016 * width)


def _marked(
    image: np.ndarray,
    lines: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    color: tuple[float, float, float],
    corner: float,
    size: float,
    thickness: float,
) -> np.ndarray:
    """The picture with a mark of lines with round ends in its upper left corner; lengths in pixels."""
    rows, columns = np.indices(image.shape[:2]) + 0.5
    places = np.stack([columns, rows], axis=-1)
    distance = np.full(image.shape[:2], np.inf)
    for begin, end in lines:
        first, last = (corner + size * np.array(point) for point in (begin, end))
        along = np.clip((places - first) @ (last - first) / ((last - first) @ (last - first)), 0, 1)
        nearest = first + along[..., None] * (last - first)
        distance = np.minimum(distance, np.linalg.norm(places - nearest, axis=-1))
    cover = np.clip(thickness / 2 - distance + 0.5, 0, 1)[..., None]
    return image * (1 - cover) + np.array(color) * cover
