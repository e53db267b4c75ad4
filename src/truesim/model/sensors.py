"""Sensors: where the numbers of a log come from, and how each differs from the truth."""

import dataclasses
from collections.abc import Iterator, Mapping

import equinox as eqx
import numpy as np

from truesim.core.typing import Array, Float
from truesim.model.kinds import BALL, FIXED, FREE, HINGE, SLIDE, AbstractJointKind
from truesim.model.quantity import quantity

Components = Mapping[str, str]
"""Names of the numbers that are read together, each with its unit; a single number has the empty name."""

ORIENTATION = "quaternion"
"""The unit of four numbers that are an orientation together, so that none of them has a bias or scale of its own."""
QUATERNION = dict.fromkeys(("qw", "qx", "qy", "qz"), ORIENTATION)


def _single(unit: str) -> Components:
    return {"": unit}


def _vector(unit: str, prefix: str = "") -> Components:
    return {f"{prefix}{axis}": unit for axis in "xyz"}


POSITION: dict[AbstractJointKind, Components] = {
    HINGE: _single("rad"),
    SLIDE: _single("m"),
    BALL: QUATERNION,
    FREE: {**_vector("m"), **QUATERNION},
    FIXED: {},
}
"""Position coordinates of a joint."""
VELOCITY: dict[AbstractJointKind, Components] = {
    HINGE: _single("rad/s"),
    SLIDE: _single("m/s"),
    BALL: _vector("rad/s", "w"),
    FREE: {**_vector("m/s", "v"), **_vector("rad/s", "w")},
    FIXED: {},
}
"""Velocity coordinates of a joint."""
READINGS: dict[str, Components] = {
    **dict.fromkeys(("jointpos", "actuatorpos"), _single("rad|m")),
    **dict.fromkeys(("jointvel", "actuatorvel"), _single("rad/s|m/s")),
    **dict.fromkeys(("jointactuatorfrc", "actuatorfrc"), _single("N m|N")),
    **dict.fromkeys(("framequat", "ballquat"), QUATERNION),
    **dict.fromkeys(("framexaxis", "frameyaxis", "framezaxis"), _vector("1")),
    **dict.fromkeys(("frameangvel", "ballangvel", "gyro"), _vector("rad/s")),
    **dict.fromkeys(("framelinvel", "velocimeter"), _vector("m/s")),
    "framepos": _vector("m"),
    "accelerometer": _vector("m/s^2"),
}
"""What each kind of sensor reads; units that differ between hinge and slide stand side by side."""


@dataclasses.dataclass(frozen=True)
class Sensor:
    """A sensor of the robot's file: what it reads, and of which object."""

    name: str
    kind: str
    """MJCF's element name, such as `jointpos` or `gyro`."""
    object_kind: str
    """`joint`, `actuator`, `body`, `xbody`, `geom` or `site`."""
    object: int
    reference_kind: str | None = None
    reference: int = -1
    cutoff: float = 0.0
    """Readings are clipped to this absolute value; 0 means never."""

    @property
    def channels(self) -> list[str]:
        """Names of the numbers that it reads."""
        return [channel.name for channel in _channels(self.name, READINGS[self.kind])]


@dataclasses.dataclass(frozen=True)
class Channel:
    """One number that is read."""

    name: str
    """`<sensor>`, `qpos/<joint>` or `qvel/<joint>`, followed by `/<component>` where there are several."""
    unit: str


class Sensors(eqx.Module):
    """Every number that is read: by the file's sensors, and by an encoder on each coordinate of each joint.

    reading(t) = scale * truth(t - delay) + bias
    """

    bias: Float[Array, "channels"] = quantity("reading")
    """What is read where the truth is zero."""
    scale: Float[Array, "channels"] = quantity("1")
    """What is read for each unit of the truth."""
    delay: Float[Array, "channels"] = quantity("s")
    """Age of a reading."""
    declared: tuple[Sensor, ...] = eqx.field(static=True)
    """The sensors of the file."""
    channels: tuple[Channel, ...] = eqx.field(static=True)
    """Those of the declared sensors, then all positions in the order of q, then all velocities in the order of v."""
    names: tuple[str, ...] = eqx.field(static=True)
    """Name of every channel."""
    encoders: tuple[int, int] = eqx.field(static=True)
    """Number of positions and of velocities."""

    @classmethod
    def of(
        cls, declared: tuple[Sensor, ...], joints: Mapping[str, AbstractJointKind], driven: tuple[int, ...]
    ) -> "Sensors":
        """Perfect sensors.

        Args:
            declared: The sensors of the file.
            joints: Kind of each joint by name, in the order of their coordinates.
            driven: Joint of each actuator.
        """
        read = [channel for sensor in declared for channel in _declared(sensor, tuple(joints.values()), driven)]
        positions = [c for name, kind in joints.items() for c in _channels(f"qpos/{name}", POSITION[kind])]
        velocities = [c for name, kind in joints.items() for c in _channels(f"qvel/{name}", VELOCITY[kind])]
        channels = (*read, *positions, *velocities)
        count = len(channels)
        names, encoders = tuple(channel.name for channel in channels), (len(positions), len(velocities))
        return cls(np.zeros(count), np.ones(count), np.zeros(count), declared, channels, names, encoders)

    @property
    def positions(self) -> slice:
        """Which channels are the positions of the joints."""
        end = len(self.channels) - self.encoders[1]
        return slice(end - self.encoders[0], end)

    @property
    def velocities(self) -> slice:
        """Which channels are the velocities of the joints."""
        return slice(len(self.channels) - self.encoders[1], len(self.channels))

    def applies(self, field: str, i: int) -> bool:
        """Whether a field has a meaning for channel `i`."""
        return field == "delay" or self.channels[i].unit != ORIENTATION


def _channels(name: str, components: Components) -> Iterator[Channel]:
    for component, unit in components.items():
        yield Channel(f"{name}/{component}" if component else name, unit)


def _declared(sensor: Sensor, kinds: tuple[AbstractJointKind, ...], driven: tuple[int, ...]) -> Iterator[Channel]:
    """Channels of a sensor, in the units of the joint that it belongs to."""
    joint = driven[sensor.object] if sensor.object_kind == "actuator" else sensor.object
    slides = sensor.object_kind in ("joint", "actuator") and kinds[joint] == SLIDE
    for channel in _channels(sensor.name, READINGS[sensor.kind]):
        units = channel.unit.split("|")
        yield Channel(channel.name, units[-1] if slides else units[0])
