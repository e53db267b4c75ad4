"""Names of the columns of a log: `qpos/<joint>`, `qvel/<joint>`, `ctrl/<actuator>`, `sensor/<name>`."""

from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model
from truesim.physics.model.sensors import POSITION_COMPONENTS, VELOCITY_COMPONENTS, Components, Sensor


def joint_position_columns(model: Model, joint: int) -> list[str]:
    """Columns of the position of one joint."""
    return _named(f"qpos/{model.joints.names[joint]}", POSITION_COMPONENTS[model.joints.kinds[joint]])


def joint_velocity_columns(model: Model, joint: int) -> list[str]:
    """Columns of the velocity of one joint."""
    return _named(f"qvel/{model.joints.names[joint]}", VELOCITY_COMPONENTS[model.joints.kinds[joint]])


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


def model_columns(model: Model) -> list[str]:
    """Every column that a log of this robot may have, `time` excluded."""
    sensors = [column for sensor in model.sensors.declared for column in sensor_columns(sensor)]
    return [*position_columns(model), *velocity_columns(model), *command_columns(model), *sensors]


def quaternion_columns(model: Model) -> list[list[str]]:
    """Four columns of every orientation: of ball and free joints, and of orientation sensors."""
    turning = [joint for joint, kind in enumerate(model.joints.kinds) if kind in (BALL, FREE)]
    groups = [joint_position_columns(model, joint)[-4:] for joint in turning]
    return groups + [sensor_columns(s) for s in model.sensors.declared if s.kind in ("framequat", "ballquat")]


def _named(name: str, components: Components) -> list[str]:
    """`name` for a single number, `name/component` for each of several."""
    return [f"{name}/{c}" if c else name for c in components]
