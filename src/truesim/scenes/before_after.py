"""One picture of a fit that needs no words: the real robot with the simulation before and after."""

from pathlib import Path

import numpy as np

from truesim.scenes.picture import write_png
from truesim.scenes.replay import Replay, fit_replays, snapshot


def write_before_after(folder: Path, out: Path, width: int = 640) -> None:
    """Write the picture of the first held-out log, else the first log, of the fit in a folder.

    Args:
        folder: Folder of the fit.
        out: PNG file to write.
        width: Width of each half [pixels].
    """
    write_png(out, before_after(next(iter(fit_replays(folder).values())), width))


def before_after(replay: Replay, width: int = 640) -> np.ndarray:
    """The robot before (left) and after (right) the fit, at the time of the largest difference, on white."""
    names = ["start", "fitted"] if "fitted" in replay.poses else [None]
    image = np.concatenate([snapshot(replay, ghost=name, width=width) for name in names], axis=1)
    alpha = image[..., 3:].astype(float) / 255
    image[..., :3] = np.round(image[..., :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    image[..., 3] = 255
    image[:, width - 1 : width + 1, :3] = 220
    return image
