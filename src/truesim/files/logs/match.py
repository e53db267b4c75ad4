"""Matching of the columns of a log with the joints, actuators and sensors of a robot."""

import dataclasses
import difflib
from collections.abc import Iterable

from truesim.core.errors import NameUnknownError
from truesim.files.logs.log import Log
from truesim.physics.model.columns import (
    command_columns,
    joint_position_columns,
    joint_velocity_columns,
    sensor_columns,
)
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class Matching:
    """Columns of a log that belong to a robot, columns that do not, and columns that are absent."""

    used: dict[str, str]
    """Matched columns with their meanings, such as `position of joint 'elbow'`."""
    unused: dict[str, str | None]
    """Other columns of the log, each with the column that was probably meant, if any."""
    absent: tuple[str, ...]
    """Columns of the robot that the log does not have."""

    def check(self, name: str) -> None:
        """Raise an error if a column is probably misspelled, or if no column belongs to the robot.

        Args:
            name: Name of the log in the message.
        """
        for column, meant in self.unused.items():
            if meant is not None and not meant.startswith("qvel/"):  # velocities need not be recorded
                raise NameUnknownError(
                    f"{name} has a column {column!r}, which this robot does not; did you mean {meant!r}? "
                    "Rename it, or map it in a mapping file."
                )
        if not self.used:
            raise NameUnknownError(
                f"No column of {name} belongs to this robot: it has {_some(self.unused)}, and the robot "
                f"{_some(self.absent)}. A mapping file can rename them: `truesim inspect ROBOT LOG --write-mapping "
                "mine.toml` guesses one. Or is it the log of another robot?"
            )


def matching(log: Log, model: Model) -> Matching:
    """Match the columns of a log with the parts of a robot.

    Args:
        log: The log; columns derived by `prepare` are ignored.
        model: The robot.
    """
    known = dict(_meanings(model))
    recorded = [column for column in log.columns if column not in log.derived]
    absent = tuple(column for column in known if column not in recorded)
    return Matching(
        used={column: known[column] for column in recorded if column in known},
        unused={column: _nearest(column, absent) for column in recorded if column not in known},
        absent=absent,
    )


def resembling_column(column: str, absent: Iterable[str]) -> str | None:
    """The only absent column whose joint, actuator or sensor is named in this one; None if there is not exactly one."""
    named = [name for name in absent if _plain(name).split("/")[1] in _plain(column).split("/")]
    return named[0] if len(named) == 1 else None


def _meanings(model: Model) -> Iterable[tuple[str, str]]:
    for joint, name in enumerate(model.joints.names):
        yield from ((column, f"position of joint {name!r}") for column in joint_position_columns(model, joint))
        yield from ((column, f"velocity of joint {name!r}") for column in joint_velocity_columns(model, joint))
    yield from zip(command_columns(model), (f"control of {name!r}" for name in model.actuators.names), strict=True)
    for sensor in model.sensors.declared:
        yield from ((column, f"sensor {sensor.name!r} ({sensor.kind})") for column in sensor_columns(sensor))


def _nearest(column: str, absent: Iterable[str]) -> str | None:
    """The absent column that is spelled almost like this one, up to case and separators; None if there is none."""
    by_plain = {_plain(name): name for name in absent}
    match = difflib.get_close_matches(_plain(column), by_plain, n=1, cutoff=0.8)
    return by_plain[match[0]] if match else None


def _plain(column: str) -> str:
    return column.lower().replace("_", "/").replace(".", "/").replace(" ", "/").replace("-", "/")


def _some(names: Iterable[str], count: int = 4) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:count])) + (f" … ({len(names)} in all)" if len(names) > count else "")
