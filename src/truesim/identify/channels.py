"""Measured channels: what a log holds that the simulator can predict, and how prediction and measurement differ."""

import dataclasses
import fnmatch
from collections.abc import Collection, Sequence

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.data import Log, sensor_columns
from truesim.data.columns import joint_position_columns, joint_velocity_columns
from truesim.model.model import Model
from truesim.simulate import Simulator, State
from truesim.simulate.equation import Constants
from truesim.simulate.sensors import read_encoders, read_sensors
from truesim.spatial.rotation import normalise, quaternion_conjugate, quaternion_log, quaternion_product

QUATERNION, ROTATION = ("qw", "qx", "qy", "qz"), ("rx", "ry", "rz")


@dataclasses.dataclass(frozen=True)
class Channel:
    """One measured quantity: columns of a log, and the rows of residual that compare them with the simulator."""

    name: str
    """`qpos/elbow`, `qvel/elbow` or `sensor/gyro`."""
    columns: tuple[str, ...]
    """Columns of the log."""
    picked: tuple[int, ...]
    """Which numbers of the reading they are: a camera may see two of a marker's three coordinates."""

    @classmethod
    def of(cls, name: str, columns: Sequence[str]) -> "Channel":
        """The channel of a whole reading."""
        return cls(name, tuple(columns), tuple(range(len(columns))))

    def within(self, held: Collection[str]) -> "Channel | None":
        """What is left of it in a log that holds these columns; orientations are read as a whole or not at all."""
        own = [k for k, column in enumerate(self.columns) if column in held]
        if not own or (self.turns and len(own) < len(self.columns)):
            return None
        return Channel(self.name, tuple(self.columns[k] for k in own), tuple(self.picked[k] for k in own))

    @property
    def kind(self) -> str:
        """`qpos`, `qvel` or `sensor`."""
        return self.name.partition("/")[0]

    @property
    def object(self) -> str:
        """Name of the joint or sensor."""
        return self.name.partition("/")[2]

    @property
    def turns(self) -> bool:
        """Whether the last four columns are a quaternion."""
        return tuple(column.rpartition("/")[2] for column in self.columns[-4:]) == QUATERNION

    @property
    def rows(self) -> tuple[str, ...]:
        """Name of each number of the residual; rotations have three where their quaternions have four columns."""
        if not self.turns:
            return self.columns
        return (*self.columns[:-4], *(f"{self.name}/{axis}" for axis in ROTATION))

    def sources(self) -> list[list[int]]:
        """For each row, the columns on whose presence it depends."""
        straight = len(self.columns) - 4 * self.turns
        return [[k] for k in range(straight)] + [list(range(straight, straight + 4))] * (3 * self.turns)


def known_channels(model: Model) -> list[Channel]:
    """Every channel that the simulator can predict."""
    joints = range(len(model.joints.names))
    found = [Channel.of(f"qpos/{model.joints.names[j]}", joint_position_columns(model, j)) for j in joints]
    found += [Channel.of(f"qvel/{model.joints.names[j]}", joint_velocity_columns(model, j)) for j in joints]
    found += [Channel.of(f"sensor/{s.name}", sensor_columns(s)) for s in model.sensors.declared]
    return [channel for channel in found if channel.columns]


def measured_channels(model: Model, logs: Sequence[Log], patterns: Sequence[str] = ()) -> tuple[Channel, ...]:
    """The channels that a log holds and that match a pattern.

    Without patterns all of them count, except velocities of joints whose positions are measured too: those are usually
    made from the positions by a filter, whose lag would be mistaken for physics.
    """
    held = {name for log in logs for name in log.columns if name not in log.derived}
    found = [part for channel in known_channels(model) if (part := channel.within(held)) is not None]
    if patterns:
        return _chosen(found, patterns)
    names = {channel.name for channel in found}
    chosen = tuple(c for c in found if not (c.kind == "qvel" and f"qpos/{c.object}" in names))
    if not chosen:
        wanted = ", ".join(c.columns[0] for c in known_channels(model)[:6])
        shown = ", ".join(sorted(held)[:6])
        raise TruesimError(
            f"No column of the logs is a channel of this robot: they hold {shown}, the robot knows {wanted}. "
            "A mapping file (--mapping) renames columns."
        )
    return chosen


def residual(
    channels: Sequence[Channel],
    simulator: Simulator,
    constants: Constants | None,
    state: State,
    command: Float[Array, "nu"],
    measured: Float[Array, "columns"],
) -> Float[Array, "rows"]:
    """Prediction minus measurement, rotations as rotation vectors [rad].

    Args:
        channels: What is compared.
        simulator: The simulator.
        constants: Its constants.
        state: Where the robot is.
        command: Control of each actuator.
        measured: Columns of all channels, one after the other.
    """
    model = simulator.model
    links = {model.joints.names[link.joint]: link for link in model.topology.links if link.joint >= 0}
    tap = simulator.tap(state, command, constants)
    positions, velocities = read_encoders(model, state.q, state.v, tap)
    readings = read_sensors(simulator, state, command, constants)
    rows, at = [], 0
    for channel in channels:
        value = measured[at : at + len(channel.columns)]
        at += len(channel.columns)
        if channel.kind == "qpos":
            reading = positions[links[channel.object].q]
        elif channel.kind == "qvel":
            reading = velocities[links[channel.object].v]
        else:
            reading = jnp.atleast_1d(readings[channel.object])
        rows.append(_difference(channel, reading[np.array(channel.picked)], value))
    return jnp.concatenate(rows)


def predicted_values(channels: Sequence[Channel], residuals: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """What the simulator predicts for every row, and for rotations by how much it differs from the measurement."""
    columns, at = [], 0
    for channel in channels:
        straight = len(channel.columns) - 4 * channel.turns
        columns.append(measured[..., at : at + straight])
        columns.append(np.zeros((*measured.shape[:-1], 3 * channel.turns)))
        at += len(channel.columns)
    return np.concatenate(columns, axis=-1) + residuals


def _difference(channel: Channel, predicted: Array, measured: Array) -> Array:
    if not channel.turns:
        return predicted - measured
    turn = quaternion_product(quaternion_conjugate(normalise(measured[-4:])), normalise(predicted[-4:]))
    return jnp.concatenate([predicted[:-4] - measured[:-4], quaternion_log(turn)])


def _chosen(found: Sequence[Channel], patterns: Sequence[str]) -> tuple[Channel, ...]:
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(c.name, pattern) for c in found):
            raise TruesimError(
                f"No measured channel matches {pattern!r}; the logs hold {', '.join(c.name for c in found) or 'none'}."
            )
    return tuple(c for c in found if any(fnmatch.fnmatchcase(c.name, p) for p in patterns))
