"""Measured channels: quantities of a log that the simulator predicts, and their residuals."""

import dataclasses
import fnmatch
from collections.abc import Collection, Sequence

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.files.logs import Log
from truesim.math.spatial.rotation import normalize, quaternion_conjugate, quaternion_log, quaternion_product
from truesim.physics.model.columns import joint_position_columns, joint_velocity_columns, sensor_columns
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.equation_of_motion import Constants
from truesim.physics.simulation.sensors import read_encoders, read_sensors

QUATERNION_SUFFIXES, ROTATION_SUFFIXES = ("qw", "qx", "qy", "qz"), ("rx", "ry", "rz")
"""Last parts of the columns of a quaternion, and of the rows of its residual."""


@dataclasses.dataclass(frozen=True)
class Channel:
    """One measured quantity: columns of a log, and the rows of the residual that compare them with the simulator."""

    name: str
    """`qpos/elbow`, `qvel/elbow` or `sensor/gyro`."""
    columns: tuple[str, ...]
    """Columns of the log."""
    components: tuple[int, ...]
    """Component of the measurement in each column: a camera may measure two of a marker's three coordinates."""

    @classmethod
    def of(cls, name: str, columns: Sequence[str]) -> "Channel":
        """The channel of a measurement with all its components."""
        return cls(name, tuple(columns), tuple(range(len(columns))))

    def restrict(self, held: Collection[str]) -> "Channel | None":
        """The channel restricted to these columns; none if no component, or only part of a quaternion, is left."""
        own = [k for k, column in enumerate(self.columns) if column in held]
        if not own or (self.has_quaternion and len(own) < len(self.columns)):
            return None
        return Channel(self.name, tuple(self.columns[k] for k in own), tuple(self.components[k] for k in own))

    @property
    def kind(self) -> str:
        """`qpos`, `qvel` or `sensor`."""
        return self.name.partition("/")[0]

    @property
    def object(self) -> str:
        """Name of the joint or sensor."""
        return self.name.partition("/")[2]

    @property
    def has_quaternion(self) -> bool:
        """True if the last four columns are a quaternion."""
        return tuple(column.rpartition("/")[2] for column in self.columns[-4:]) == QUATERNION_SUFFIXES

    @property
    def rows(self) -> tuple[str, ...]:
        """Name of each row of the residual: three for a rotation, whose quaternion has four columns."""
        if not self.has_quaternion:
            return self.columns
        return (*self.columns[:-4], *(f"{self.name}/{axis}" for axis in ROTATION_SUFFIXES))

    def sources(self) -> list[list[int]]:
        """For each row, the columns from which it is computed."""
        linear = len(self.columns) - 4 * self.has_quaternion
        return [[k] for k in range(linear)] + [list(range(linear, linear + 4))] * (3 * self.has_quaternion)


def known_channels(model: Model) -> list[Channel]:
    """All channels that the simulator can predict."""
    joints = range(len(model.joints.names))
    found = [Channel.of(f"qpos/{model.joints.names[j]}", joint_position_columns(model, j)) for j in joints]
    found += [Channel.of(f"qvel/{model.joints.names[j]}", joint_velocity_columns(model, j)) for j in joints]
    found += [Channel.of(f"sensor/{s.name}", sensor_columns(s)) for s in model.sensors.declared]
    return [channel for channel in found if channel.columns]


def measured_channels(model: Model, logs: Sequence[Log], patterns: Sequence[str] = ()) -> tuple[Channel, ...]:
    """Channels of the logs that match a pattern.

    Without patterns these are all channels, except velocities of joints whose positions are measured too: such
    velocities are usually filtered differences of the positions, and the lag of the filter would bias the estimates.
    """
    held = {name for log in logs for name in log.columns if name not in log.derived}
    found = [part for channel in known_channels(model) if (part := channel.restrict(held)) is not None]
    if patterns:
        return _choose(found, patterns)
    names = {channel.name for channel in found}
    chosen = tuple(c for c in found if not (c.kind == "qvel" and f"qpos/{c.object}" in names))
    if not chosen:
        wanted = ", ".join(c.columns[0] for c in known_channels(model)[:6])
        shown = ", ".join(sorted(held)[:6])
        raise TruesimError(
            f"No column of the logs is a channel of this robot: they have {shown}; the robot has {wanted}. "
            "A mapping file (--mapping) renames columns."
        )
    return chosen


def residual(
    channels: Sequence[Channel],
    simulator: Simulator,
    constants: Constants | None,
    state: State,
    command: Float[Array, " nu"],
    measured: Float[Array, " columns"],
) -> Float[Array, " rows"]:
    """Prediction minus measurement, rotations as rotation vectors [rad].

    Args:
        channels: Channels to compare.
        simulator: The simulator.
        constants: Constants of the simulator.
        state: State of the robot.
        command: Control of each actuator.
        measured: Columns of all channels, concatenated.
    """
    model = simulator.model
    links = {model.joints.names[link.joint]: link for link in model.topology.links if link.joint >= 0}
    tap = simulator.tap(state, command, constants)
    positions, velocities = read_encoders(model, state.q, state.v, tap)
    unsolved = None if simulator.constraint_contact is None else jnp.zeros_like(state.v)  # no accelerometer is compared
    sensors = read_sensors(simulator, state, command, constants, unsolved)
    rows, at = [], 0
    for channel in channels:
        target = measured[at : at + len(channel.columns)]
        at += len(channel.columns)
        if channel.kind == "qpos":
            value = positions[links[channel.object].q]
        elif channel.kind == "qvel":
            value = velocities[links[channel.object].v]
        else:
            value = jnp.atleast_1d(sensors[channel.object])
        rows.append(_difference(channel, value[np.array(channel.components)], target))
    return jnp.concatenate(rows)


def predicted_values(channels: Sequence[Channel], residuals: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Prediction of each row of the residual; for rotations, the residual itself."""
    columns, at = [], 0
    for channel in channels:
        linear = len(channel.columns) - 4 * channel.has_quaternion
        columns.append(measured[..., at : at + linear])
        columns.append(np.zeros((*measured.shape[:-1], 3 * channel.has_quaternion)))
        at += len(channel.columns)
    return np.concatenate(columns, axis=-1) + residuals


def _difference(channel: Channel, predicted: Array, measured: Array) -> Array:
    if not channel.has_quaternion:
        return predicted - measured
    rotation = quaternion_product(quaternion_conjugate(normalize(measured[-4:])), normalize(predicted[-4:]))
    return jnp.concatenate([predicted[:-4] - measured[:-4], quaternion_log(rotation)])


def _choose(found: Sequence[Channel], patterns: Sequence[str]) -> tuple[Channel, ...]:
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(c.name, pattern) for c in found):
            raise TruesimError(
                f"No measured channel matches {pattern!r}; the logs hold {', '.join(c.name for c in found) or 'none'}."
            )
    return tuple(c for c in found if any(fnmatch.fnmatchcase(c.name, p) for p in patterns))
