"""Pictures of the robot before and after the fit, and a replay in 3-D that needs no server."""

import base64
import dataclasses
import gzip
from pathlib import Path

from truesim.core.errors import TruesimError
from truesim.scenes.nodes import record_page
from truesim.scenes.picture import data_address
from truesim.scenes.replay import Replay, fit_replays, snapshot, snapshots
from truesim.scenes.viewer_library import has_viewer

MAX_REPLAY_BYTES = 5_000_000
"""Size above which a packed replay is left out of the page."""
MAX_REPLAY_FRAMES = 240
"""Frames of a replay within a page; more are smoother, and each costs a millisecond when the page is written."""
PICTURE_WIDTH = 560
"""Width of a picture [pixels]."""


@dataclasses.dataclass(frozen=True)
class ReplayPicture:
    """A picture with its caption."""

    source: str
    """Address of the picture, which holds the picture itself."""
    caption: str
    kind: str
    """`recorded`, `start` or `fitted`."""


@dataclasses.dataclass(frozen=True)
class ReplaySection:
    """Pictures of one log, and its replay."""

    log: str
    seconds: float
    """Time of the pictures within the log [s]."""
    pictures: tuple[ReplayPicture, ...]
    packed: str
    """Page of the replay, compressed; empty without the viewer library."""


def replay_section(folder: Path) -> ReplaySection | None:
    """Pictures and replay of the first held-out log, else of the first log; None if the folder has no robot."""
    try:
        replay = next(iter(fit_replays(folder).values()), None)
    except (TruesimError, OSError, KeyError):
        return None
    if replay is None:
        return None
    packed = ""
    if has_viewer():
        page = base64.b64encode(gzip.compress(record_page(replay, MAX_REPLAY_FRAMES).encode(), 6, mtime=0)).decode()
        packed = page if len(page) <= MAX_REPLAY_BYTES else ""
    return ReplaySection(replay.name, float(replay.time[replay.largest_difference]), _pictures(replay), packed)


def _pictures(replay: Replay) -> tuple[ReplayPicture, ...]:
    if "fitted" not in replay.poses:
        return (
            ReplayPicture(data_address(snapshot(replay, width=PICTURE_WIDTH)), "The robot as recorded", "recorded"),
        )
    words = {"start": "Before: simulated with the start values", "fitted": "After: simulated with the estimates"}
    pictures = zip(words.items(), snapshots(replay, tuple(words), width=PICTURE_WIDTH), strict=True)
    return tuple(ReplayPicture(data_address(picture), text, name) for (name, text), picture in pictures)
