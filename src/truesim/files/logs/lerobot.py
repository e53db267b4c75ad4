"""LeRobot data sets, formats v2 and v3: a folder with `meta/info.json` and Parquet files of episodes.

Vectors of a frame become one column per entry, named by the data set: the state `shoulder_pan.pos` is
`qpos/shoulder_pan`, the action of that name `ctrl/shoulder_pan`. Numbers keep the unit that they were recorded in,
which the data set does not tell: degrees, or percent of the calibrated range (`calibration_units`).
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truesim.core import libraries
from truesim.core.errors import FileError

STATE_FEATURE, ACTION_FEATURE = "observation.state", "action"
PREFIXES = {
    (STATE_FEATURE, "pos"): "qpos",
    (STATE_FEATURE, "vel"): "qvel",
    (ACTION_FEATURE, "pos"): "ctrl",
    (ACTION_FEATURE, "vel"): "ctrl",
}
"""Column prefix of an entry, by feature and ending of its name; an entry without an ending is a position."""
EFFORT_ENDINGS = ("torque", "effort", "current")
EPISODE, FRAME, STAMP = "episode_index", "frame_index", "timestamp"
BOOKKEEPING = (EPISODE, FRAME, STAMP, "index", "task_index", "next.done", "next.reward", "next.success")
GRIPPER = "gripper"
"""Name of the joint that runs from 0 to 100 percent, even where other joints are recorded in degrees."""
ENCODER_STEPS = 4095
"""Highest value of the encoders of Feetech and Dynamixel servos: one turn."""


def select_episodes(path: Path) -> tuple[Path, range | None]:
    """Split `FOLDER#2` or `FOLDER#0-7` into a data set and its episodes, both ends included; None stands for all."""
    found = re.fullmatch(r"(.+)#(\d+)(?:-(\d+))?", path.name)
    if found is None or path.exists():
        return path, None
    first = int(found[2])
    return path.with_name(found[1]), range(first, int(found[3] or first) + 1)


def is_lerobot(path: Path) -> bool:
    """True if a path is the folder of a data set, or a Parquet file inside one."""
    return info_file(path) is not None


def info_file(path: Path) -> Path | None:
    """The `meta/info.json` of the data set that a folder or file belongs to."""
    folders = [path] if path.is_dir() else path.parents[:4] if path.suffix.lower() == ".parquet" else []
    return next((f / "meta" / "info.json" for f in folders if (f / "meta" / "info.json").is_file()), None)


def read_lerobot(path: Path) -> "dict[int, libraries.polars.DataFrame]":
    """Episodes of a data set, or of one of its files: a table with `time` [s] and a column per entry, by index."""
    pl = libraries.polars
    info_path = info_file(path)
    assert info_path is not None, "the caller has checked that it is a data set"
    info = _read_json(info_path)
    files = sorted((path / "data").rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileError(f"{path} has no Parquet files in its folder data.")
    frames = pl.concat([pl.read_parquet(file) for file in files], how="diagonal_relaxed")
    if EPISODE not in frames.columns:
        raise FileError(f"{path.name} has no column {EPISODE!r}: it is not a LeRobot data set.")
    table = expand_vectors(frames, _names(info))
    return {
        int(episode[0]): _with_time(part, info, path.name).drop(*(c for c in BOOKKEEPING if c in part.columns))
        for episode, part in table.group_by(EPISODE, maintain_order=True)
    }


def expand_vectors(
    table: "libraries.polars.DataFrame", names: Mapping[str, list[str]] | None = None
) -> "libraries.polars.DataFrame":
    """The table with one column for each entry of its list columns; lists of unequal length are left out.

    Args:
        table: Columns, some of which may be lists of numbers.
        names: Names of the entries, by column.
    """
    pl = libraries.polars
    columns: dict[str, pl.Series] = {}
    for name in table.columns:
        values = table[name]
        inner = getattr(values.dtype, "inner", None)
        if inner is None or not inner.is_numeric():
            columns[name] = values
            continue
        lengths = (values.list if isinstance(values.dtype, pl.List) else values.arr.to_list().list).len()
        size = max(lengths.drop_nulls().to_list(), default=0)
        if not size or lengths.n_unique() > 1:
            continue
        given = (names or {}).get(name, [])
        labels = given if len(given) == size else [str(k) for k in range(size)]
        entries = values if isinstance(values.dtype, pl.List) else values.arr.to_list()
        for k, label in enumerate(labels):
            columns[_column(name, label)] = entries.list.get(k).cast(pl.Float64)
    return pl.DataFrame(columns)


def calibration_units(
    path: Path, joint_names: list[str], lower_limits: Mapping[str, float] | None = None
) -> dict[str, tuple[float, float]]:
    """Scale [rad per percent] and offset [rad] of each joint's normalized positions, from LeRobot's calibration file.

    Body joints run from -100 to 100 over their calibrated range, with zero in its middle. The gripper runs from 0 to
    100, and 0 is its lower limit; where that is not known, the middle of the range is taken as 0 rad.

    Args:
        path: JSON file with `range_min` and `range_max` of each joint, in encoder steps.
        joint_names: Joints to look up.
        lower_limits: Lower limits of joints in the robot file [rad], by name.
    """
    content = _read_json(path)
    found = {}
    for name in joint_names:
        entry = content.get(name)
        if not isinstance(entry, dict) or not {"range_min", "range_max"} <= set(entry):
            raise FileError(f"{path.name} has no range_min and range_max of {name!r}; it has {', '.join(content)}.")
        turn = (float(entry["range_max"]) - float(entry["range_min"])) * 2 * math.pi / ENCODER_STEPS
        found[name] = (turn / 100, (lower_limits or {}).get(name, -turn / 2)) if name == GRIPPER else (turn / 200, 0.0)
    return found


def _names(info: Mapping[str, Any]) -> dict[str, list[str]]:
    """Names of the entries of each feature; older data sets nest them by the kind of device."""
    found = {}
    for feature, entry in info.get("features", {}).items():
        names = entry.get("names") if isinstance(entry, dict) else None
        if isinstance(names, dict):
            names = next((x for x in names.values() if isinstance(x, list)), None)
        if isinstance(names, list) and all(isinstance(x, str) for x in names):
            found[feature] = names
    return found


def _column(feature: str, label: str) -> str:
    joint, _, ending = label.rpartition(".")
    if feature == STATE_FEATURE and ending in EFFORT_ENDINGS and joint:
        return f"effort/{joint}"
    prefix = PREFIXES.get((feature, ending if joint else "pos"))
    return (
        f"{feature}/{label}"
        if prefix is None or label.isdigit()
        else f"{prefix}/{(joint or label).removeprefix('main_')}"
    )


def _with_time(table: "libraries.polars.DataFrame", info: Mapping[str, Any], name: str) -> "libraries.polars.DataFrame":
    """The table with stamps: those of an ideal camera, which are all that a data set has."""
    pl = libraries.polars
    rate = info.get("fps")
    if FRAME in table.columns and isinstance(rate, int | float) and rate > 0:
        return table.with_columns(time=table[FRAME].cast(pl.Float64) / rate)
    if STAMP not in table.columns:
        raise FileError(f"{name} has neither {FRAME!r} with a rate (fps) nor {STAMP!r}.")
    return table.with_columns(time=table[STAMP].cast(pl.Float64))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read as JSON: {error}.") from None
    if not isinstance(content, dict):
        raise FileError(f"{path} must hold an object.")
    return content
