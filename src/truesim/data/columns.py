"""Names of the columns of a log: `qpos/<joint>`, `qvel/<joint>`, `ctrl/<actuator>`, `sensor/<name>`."""

from truesim.model.kinds import BALL, FREE, AbstractJointKind
from truesim.model.model import Model, Sensor

QUATERNION = ("qw", "qx", "qy", "qz")
VECTOR = ("x", "y", "z")
POSITION: dict[AbstractJointKind, tuple[str, ...]] = {BALL: QUATERNION, FREE: (*VECTOR, *QUATERNION)}
VELOCITY: dict[AbstractJointKind, tuple[str, ...]] = {
    BALL: ("wx", "wy", "wz"),
    FREE: ("vx", "vy", "vz", "wx", "wy", "wz"),
}
READING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("framequat", "ballquat"), QUATERNION),
    **dict.fromkeys(("framepos", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel"), VECTOR),
    **dict.fromkeys(("velocimeter", "gyro", "accelerometer", "ballangvel"), VECTOR),
}
"""Components of the sensors that read more than one number."""


def named(prefix: str, name: str, components: tuple[str, ...]) -> list[str]:
    """`prefix/name` for a single number, `prefix/name/component` for each of several."""
    return [f"{prefix}/{name}/{c}" for c in components] or [f"{prefix}/{name}"]


def joint_position_columns(model: Model, joint: int) -> list[str]:
    """Columns of the position of one joint."""
    return named("qpos", model.joints.names[joint], POSITION.get(model.joints.kinds[joint], ()))


def joint_velocity_columns(model: Model, joint: int) -> list[str]:
    """Columns of the velocity of one joint."""
    return named("qvel", model.joints.names[joint], VELOCITY.get(model.joints.kinds[joint], ()))


def position_columns(model: Model) -> list[str]:
    """Column of every position coordinate, in the order of q."""
    return [column for joint in range(len(model.joints.names)) for column in joint_position_columns(model, joint)]


def velocity_columns(model: Model) -> list[str]:
    """Column of every velocity coordinate, in the order of v."""
    return [column for joint in range(len(model.joints.names)) for column in joint_velocity_columns(model, joint)]


def command_columns(model: Model) -> list[str]:
    """Column of every actuator's control."""
    return [f"ctrl/{name}" for name in model.actuators.names]


def sensor_columns(sensor: Sensor) -> list[str]:
    """Columns of one sensor."""
    return named("sensor", sensor.name, READING.get(sensor.kind, ()))


def model_columns(model: Model) -> list[str]:
    """Every column that a log of this robot may have, `time` excluded."""
    sensors = [column for sensor in model.sensors for column in sensor_columns(sensor)]
    return [*position_columns(model), *velocity_columns(model), *command_columns(model), *sensors]


def quaternion_columns(model: Model) -> list[list[str]]:
    """The four columns of every orientation: of ball and free joints, and of sensors that read one."""
    groups = [joint_position_columns(model, joint)[-4:] for joint in _turning(model)]
    return groups + [sensor_columns(s) for s in model.sensors if s.kind in ("framequat", "ballquat")]


def _turning(model: Model) -> list[int]:
    return [joint for joint, kind in enumerate(model.joints.kinds) if kind in (BALL, FREE)]
