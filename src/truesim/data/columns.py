"""Names of the columns of a log: `qpos/<joint>`, `qvel/<joint>`, `ctrl/<actuator>`, `sensor/<name>`."""

from truesim.model.kinds import BALL, FREE, AbstractJointKind
from truesim.model.model import Model

POSITION: dict[AbstractJointKind, tuple[str, ...]] = {
    BALL: ("qw", "qx", "qy", "qz"),
    FREE: ("x", "y", "z", "qw", "qx", "qy", "qz"),
}
VELOCITY: dict[AbstractJointKind, tuple[str, ...]] = {
    BALL: ("wx", "wy", "wz"),
    FREE: ("vx", "vy", "vz", "wx", "wy", "wz"),
}


def named(prefix: str, name: str, components: tuple[str, ...]) -> list[str]:
    """`prefix/name` for a single number, `prefix/name/component` for each of several."""
    return [f"{prefix}/{name}/{c}" for c in components] or [f"{prefix}/{name}"]


def position_columns(model: Model) -> list[str]:
    """Column of every position coordinate, in the order of q."""
    joints = zip(model.joints.names, model.joints.kinds, strict=True)
    return [column for name, kind in joints for column in named("qpos", name, POSITION.get(kind, ()))]


def velocity_columns(model: Model) -> list[str]:
    """Column of every velocity coordinate, in the order of v."""
    joints = zip(model.joints.names, model.joints.kinds, strict=True)
    return [column for name, kind in joints for column in named("qvel", name, VELOCITY.get(kind, ()))]


def command_columns(model: Model) -> list[str]:
    """Column of every actuator's control."""
    return [f"ctrl/{name}" for name in model.actuators.names]


def sensor_columns(name: str, components: tuple[str, ...]) -> list[str]:
    """Columns of one sensor."""
    return named("sensor", name, components)
