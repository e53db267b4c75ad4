"""Which columns of a log belong to the robot, and which were probably meant to."""

import dataclasses
import difflib
from collections.abc import Iterable

from truesim.core.errors import NameUnknownError
from truesim.data.columns import command_columns, joint_position_columns, joint_velocity_columns, sensor_columns
from truesim.data.log import Log
from truesim.model.model import Model


@dataclasses.dataclass(frozen=True)
class Matching:
    """How the columns of a log and the parts of a robot fit together."""

    used: dict[str, str]
    """Columns that the robot knows, each with what it is, such as `position of joint 'elbow'`."""
    unused: dict[str, str | None]
    """Columns that it does not know, each with the column that was probably meant."""
    absent: tuple[str, ...]
    """Columns that the robot has and the log has not."""

    def check(self, name: str) -> None:
        """Raises if a column is probably misnamed, or if none belongs to the robot.

        Args:
            name: What the log is called.
        """
        for column, meant in self.unused.items():
            if meant is not None:
                raise NameUnknownError(
                    f"{name} has a column {column!r}, which this robot does not; did you mean {meant!r}? "
                    "Rename it, or map it in a mapping file."
                )
        if not self.used:
            raise NameUnknownError(
                f"No column of {name} belongs to this robot: it has {_some(self.unused)}, and the robot "
                f"{_some(self.absent)}; a mapping file can rename them."
            )


def matching(log: Log, model: Model) -> Matching:
    """How the columns of a log and the parts of this robot fit together.

    Args:
        log: The log, as read; columns derived by `prepared` are left aside.
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


def resembling(column: str, absent: Iterable[str]) -> str | None:
    """The one absent column whose joint, actuator or sensor is named within this one; a guess, weaker than a slip."""
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
    """The absent column that differs from this one by a slip: in case, or in a few letters."""
    by_plain = {_plain(name): name for name in absent}
    match = difflib.get_close_matches(_plain(column), by_plain, n=1, cutoff=0.8)
    return by_plain[match[0]] if match else None


def _plain(column: str) -> str:
    return column.lower().replace("_", "/").replace(".", "/").replace(" ", "/").replace("-", "/")


def _some(names: Iterable[str], count: int = 4) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:count])) + (f" … ({len(names)} in all)" if len(names) > count else "")
