"""Sensors: channels of measurements, with bias, scale and delay."""

import dataclasses
from collections.abc import Iterator, Mapping

import equinox as eqx
import numpy as np

from truesim.core.typing import Array, Float
from truesim.physics.model.kinds import BALL, FIXED, FREE, HINGE, SLIDE, AbstractJointKind
from truesim.physics.model.quantity import quantity

Components = Mapping[str, str]
"""Components of a measurement by name, each with its unit; a scalar has the empty name."""

ORIENTATION = "quaternion"
"""Unit of the four components of an orientation, which have no bias or scale of their own."""
QUATERNION_COMPONENTS = dict.fromkeys(("qw", "qx", "qy", "qz"), ORIENTATION)


def _single(unit: str) -> Components:
    return {"": unit}


def _vector(unit: str, prefix: str = "") -> Components:
    return {f"{prefix}{axis}": unit for axis in "xyz"}


POSITION_COMPONENTS: dict[AbstractJointKind, Components] = {
    HINGE: _single("rad"),
    SLIDE: _single("m"),
    BALL: QUATERNION_COMPONENTS,
    FREE: {**_vector("m"), **QUATERNION_COMPONENTS},
    FIXED: {},
}
"""Position coordinates of each kind of joint."""
VELOCITY_COMPONENTS: dict[AbstractJointKind, Components] = {
    HINGE: _single("rad/s"),
    SLIDE: _single("m/s"),
    BALL: _vector("rad/s", "w"),
    FREE: {**_vector("m/s", "v"), **_vector("rad/s", "w")},
    FIXED: {},
}
"""Velocity coordinates of each kind of joint."""
SENSOR_COMPONENTS: dict[str, Components] = {
    **dict.fromkeys(("jointpos", "actuatorpos"), _single("rad|m")),
    **dict.fromkeys(("jointvel", "actuatorvel"), _single("rad/s|m/s")),
    **dict.fromkeys(("jointactuatorfrc", "actuatorfrc"), _single("N m|N")),
    **dict.fromkeys(("framequat", "ballquat"), QUATERNION_COMPONENTS),
    **dict.fromkeys(("framexaxis", "frameyaxis", "framezaxis"), _vector("1")),
    **dict.fromkeys(("frameangvel", "ballangvel", "gyro"), _vector("rad/s")),
    **dict.fromkeys(("framelinvel", "velocimeter"), _vector("m/s")),
    "framepos": _vector("m"),
    "accelerometer": _vector("m/s^2"),
}
"""Components of each kind of sensor; `rad|m` where hinge and slide differ."""


@dataclasses.dataclass(frozen=True)
class Sensor:
    """Sensor of the robot file: kind and object of its measurement."""

    name: str
    kind: str
    """MJCF's element name, such as `jointpos` or `gyro`."""
    object_kind: str
    """`joint`, `actuator`, `body`, `xbody`, `geom` or `site`."""
    object: int
    reference_kind: str | None = None
    reference: int = -1
    cutoff: float = 0.0
    """Absolute value to which measurements are clipped; 0 for no clipping."""

    @property
    def channels(self) -> list[str]:
        """Names of its channels."""
        return [channel.name for channel in _channels(self.name, SENSOR_COMPONENTS[self.kind])]


@dataclasses.dataclass(frozen=True)
class SensorChannel:
    """Scalar channel of a measurement."""

    name: str
    """`<sensor>`, `qpos/<joint>` or `qvel/<joint>`, followed by `/<component>` where there are several."""
    unit: str


class Sensors(eqx.Module):
    """Channels of all measurements: the file's sensors, and an encoder on each coordinate of each joint.

    measurement(t) = scale * value(t - delay) + bias
    """

    bias: Float[Array, " channels"] = quantity("measurement")
    """Measurement of a value of zero."""
    scale: Float[Array, " channels"] = quantity("1")
    """Measurement per unit of the value."""
    delay: Float[Array, " channels"] = quantity("s")
    """Age of a measurement."""
    declared: tuple[Sensor, ...] = eqx.field(static=True)
    """The sensors of the file."""
    channels: tuple[SensorChannel, ...] = eqx.field(static=True)
    """Channels of the declared sensors, then all positions in the order of q, then all velocities in the order of v."""
    names: tuple[str, ...] = eqx.field(static=True)
    """Name of every channel."""
    encoders: tuple[int, int] = eqx.field(static=True)
    """Number of positions and of velocities."""

    @classmethod
    def of(
        cls, declared: tuple[Sensor, ...], joints: Mapping[str, AbstractJointKind], driven: tuple[int, ...]
    ) -> "Sensors":
        """Ideal sensors: no bias or delay, unit scale.

        Args:
            declared: The sensors of the file.
            joints: Kind of each joint by name, in the order of their coordinates.
            driven: Joint of each actuator; -1 for a tendon.
        """
        read = [channel for sensor in declared for channel in _declared(sensor, tuple(joints.values()), driven)]
        positions = [c for name, kind in joints.items() for c in _channels(f"qpos/{name}", POSITION_COMPONENTS[kind])]
        velocities = [c for name, kind in joints.items() for c in _channels(f"qvel/{name}", VELOCITY_COMPONENTS[kind])]
        channels = (*read, *positions, *velocities)
        count = len(channels)
        names, encoders = tuple(channel.name for channel in channels), (len(positions), len(velocities))
        return cls(np.zeros(count), np.ones(count), np.zeros(count), declared, channels, names, encoders)

    @property
    def positions(self) -> slice:
        """Channels of the joint positions."""
        end = len(self.channels) - self.encoders[1]
        return slice(end - self.encoders[0], end)

    @property
    def velocities(self) -> slice:
        """Channels of the joint velocities."""
        return slice(len(self.channels) - self.encoders[1], len(self.channels))

    def applies(self, field: str, i: int) -> bool:
        """True if channel `i` has a field."""
        return field == "delay" or self.channels[i].unit != ORIENTATION


def _channels(name: str, components: Components) -> Iterator[SensorChannel]:
    for component, unit in components.items():
        yield SensorChannel(f"{name}/{component}" if component else name, unit)


def _declared(sensor: Sensor, kinds: tuple[AbstractJointKind, ...], driven: tuple[int, ...]) -> Iterator[SensorChannel]:
    """Channels of a sensor, in the units of its joint."""
    joint = driven[sensor.object] if sensor.object_kind == "actuator" else sensor.object
    slides = sensor.object_kind in ("joint", "actuator") and (joint < 0 or kinds[joint] == SLIDE)
    for channel in _channels(sensor.name, SENSOR_COMPONENTS[sensor.kind]):
        units = channel.unit.split("|")
        yield SensorChannel(channel.name, units[-1] if slides else units[0])
