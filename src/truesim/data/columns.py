"""Names of the columns of a log: `qpos/<joint>`, `qvel/<joint>`, `ctrl/<actuator>`, `sensor/<name>`."""

from truesim.model.model import Model
from truesim.model.sensors import Sensor


def position_columns(model: Model) -> list[str]:
    """Column of every position coordinate, in the order of q."""
    return list(model.sensors.names[model.sensors.positions])


def velocity_columns(model: Model) -> list[str]:
    """Column of every velocity coordinate, in the order of v."""
    return list(model.sensors.names[model.sensors.velocities])


def command_columns(model: Model) -> list[str]:
    """Column of every actuator's control."""
    return [f"ctrl/{name}" for name in model.actuators.names]


def sensor_columns(sensor: Sensor) -> list[str]:
    """Columns of one sensor."""
    return [f"sensor/{channel}" for channel in sensor.channels]
