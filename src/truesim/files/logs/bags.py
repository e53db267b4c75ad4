"""MCAP files and ROS bags. Needs the optional group `ros`.

A message becomes a row at its own stamp (`header.stamp`, else the time of recording), so topics keep their own rates.
Columns that a message does not have are missing in its row. Joint states become `qpos/<joint>`, `qvel/<joint>` and
`effort/<joint>`. Every other number becomes `<topic>/<field>`, which a mapping file can rename; arrays of a message
that names its joints become `<topic>/<field>/<joint>`. Points of a trajectory are rows at the times at which they are
due.
"""

import dataclasses
import importlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truesim.core import libraries
from truesim.core.errors import FileError

JOINT_STATES = {"position": "qpos", "velocity": "qvel", "effort": "effort"}
"""Column prefix of each field of `sensor_msgs/JointState`."""
JOINT_NAMES = "joint_names"
"""Field of the names of the entries of all arrays of that length, as in trajectories and states of controllers."""
TRAJECTORY_POINTS = "points"
METADATA_FIELDS = ("header", "layout", JOINT_NAMES, "time_from_start")
"""Fields of messages that hold no signals."""
MAX_ARRAY_ENTRIES = 64
"""Longer arrays are images, scans or maps, and are left out."""


class Message(NamedTuple):
    """One message of any encoding."""

    topic: str
    kind: str
    received: int
    """Time of recording [ns]."""
    content: dict[str, Any]


def read_bag(path: Path) -> "libraries.polars.DataFrame":
    """Read the numbers in a bag: one row per stamp, time from the first stamp [s]."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for message in _messages(path):
        kinds[message.topic] = message.kind
        rows[message.topic] += _rows(message)
    if not rows:
        raise FileError(f"{path.name} has no messages.")
    states = _joint_state_topic(kinds)
    tables = []
    for topic, entries in rows.items():
        prefix = "" if topic == states else topic.strip("/") + "/"
        entries = [_joint_columns(row) for row in entries] if kinds[topic].endswith("JointState") else entries
        tables.append(_table(entries, prefix))
    return _merge(tables)


def _messages(path: Path) -> Iterator[Message]:
    if path.suffix.lower() == ".mcap" and _is_json(path):
        yield from _json_messages(path)
    else:
        yield from _ros_messages(path)


def _ros_messages(path: Path) -> Iterator[Message]:
    highlevel, typesys = _import("rosbags.highlevel"), _import("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.LATEST)
    try:
        with highlevel.AnyReader([path], default_typestore=store) as reader:
            for connection, stamp, data in reader.messages():
                content = reader.deserialize(data, connection.msgtype)
                yield Message(connection.topic, connection.msgtype, stamp, _fields(content))
    except (highlevel.AnyReaderError, FileNotFoundError) as error:
        raise FileError(f"{path.name} cannot be read as a bag: {str(error).splitlines()[0].rstrip('.')}.") from None


def _is_json(path: Path) -> bool:
    reader, exceptions = _import("mcap.reader"), _import("mcap.exceptions")
    try:
        with path.open("rb") as file:
            summary = reader.make_reader(file).get_summary()
    except exceptions.McapError as error:
        raise FileError(f"{path.name} cannot be read as MCAP: {error or type(error).__name__}.") from None
    return summary is not None and any(c.message_encoding == "json" for c in summary.channels.values())


def _json_messages(path: Path) -> Iterator[Message]:
    with path.open("rb") as file:
        for schema, channel, message in _import("mcap.reader").make_reader(file).iter_messages():
            if channel.message_encoding == "json":
                kind = schema.name if schema else ""
                yield Message(channel.topic, kind, message.log_time, json.loads(message.data))


def _import(module: str) -> Any:
    """Import a module of the optional group `ros`."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise FileError(
            "MCAP files and ROS bags need the packages of the optional group 'ros': pip install 'truesim[ros]'."
        ) from None


def _fields(message: Any) -> Any:
    """A ROS message as nested dictionaries."""
    if dataclasses.is_dataclass(message):
        return {field.name: _fields(getattr(message, field.name)) for field in dataclasses.fields(message)}
    if isinstance(message, list):
        return [_fields(entry) for entry in message]
    return message


def _stamp(message: Message) -> int:
    """Stamp of the message's header, else the time of recording [ns]."""
    header = message.content.get("header")
    stamp = header.get("stamp") if isinstance(header, dict) else None
    if not isinstance(stamp, dict):
        return message.received
    seconds = stamp.get("sec") or stamp.get("secs") or 0
    rest = stamp.get("nanosec") or stamp.get("nsec") or stamp.get("nsecs") or 0
    return int(seconds) * 1_000_000_000 + int(rest) or message.received


def _rows(message: Message) -> list[dict[str, Any]]:
    """Rows of a message: one, or one for each point of a trajectory."""
    content, stamp = message.content, _stamp(message)
    names = content.get(JOINT_NAMES) if isinstance(content, dict) else None
    labels = [str(name) for name in names] if isinstance(names, list) else []
    points = content.get(TRAJECTORY_POINTS) if labels else None
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        points = [content]
    rows = []
    for point in points:
        due = point.get("time_from_start")
        due = due if isinstance(due, dict) else {}
        later = int(due.get("sec") or 0) * 1_000_000_000 + int(due.get("nanosec") or due.get("nsec") or 0)
        rows.append({"time": stamp + later, **dict(_flat(point, labels=labels))})
    return rows


def _flat(content: Any, path: str = "", labels: list[str] | None = None) -> Iterator[tuple[str, Any]]:
    """Numbers, short arrays of numbers and lists of names in a message, by path.

    Args:
        content: The message, or a part of it.
        path: Path of the part.
        labels: Names of the entries of arrays of that length.
    """
    if isinstance(content, dict):
        for name, value in content.items():
            if name not in METADATA_FIELDS and not name.endswith("covariance"):
                yield from _flat(value, f"{path}/{name}" if path else name, labels)
    elif isinstance(content, bool | int | float | np.number):
        yield path, float(content)
    elif isinstance(content, list | tuple | np.ndarray) and 0 < len(content) <= MAX_ARRAY_ENTRIES:
        if all(isinstance(x, str) for x in content):
            yield path, list(content)
        elif all(isinstance(x, bool | int | float | np.number) for x in content):
            named = labels if labels and len(labels) == len(content) else range(len(content))
            for label, x in zip(named, content, strict=True):
                yield f"{path}/{label}", float(x)


def _joint_state_topic(kinds: dict[str, str]) -> str | None:
    """Topic of the robot's own joint states: `joint_states`, or the only topic of that type."""
    topics = [topic for topic, kind in kinds.items() if kind.endswith("JointState")]
    named = [topic for topic in topics if topic.endswith("joint_states")]
    return named[0] if named else topics[0] if len(topics) == 1 else None


def _joint_columns(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a joint state with one column per joint and field."""
    names = row.get("name", [])
    columns = {
        f"{prefix}/{name}": row[f"{field}/{i}"]
        for field, prefix in JOINT_STATES.items()
        for i, name in enumerate(names)
        if f"{field}/{i}" in row
    }
    return {"time": row["time"], **columns}


def _table(rows: list[dict[str, Any]], prefix: str) -> "libraries.polars.DataFrame":
    """Table of one topic; `copy` numbers the rows with equal stamps."""
    pl = libraries.polars
    names = dict.fromkeys(name for row in rows for name in row if name != "time")
    numeric = [name for name in names if not any(isinstance(row.get(name), list) for row in rows)]
    columns = {prefix + name: pl.Series([row.get(name) for row in rows], dtype=pl.Float64) for name in numeric}
    table = pl.DataFrame({"time": pl.Series([row["time"] for row in rows], dtype=pl.Int64), **columns})
    return table.with_columns(copy=pl.int_range(pl.len()).over("time"))


def _merge(tables: "list[libraries.polars.DataFrame]") -> "libraries.polars.DataFrame":
    """One table with a row per stamp; time in seconds from the first stamp."""
    pl = libraries.polars
    stacked = pl.concat(tables, how="diagonal").group_by("time", "copy").agg(pl.all().drop_nulls().first())
    ordered = stacked.sort("time", "copy").drop("copy")
    return ordered.with_columns(time=(pl.col("time") - pl.col("time").min()) * 1e-9)
