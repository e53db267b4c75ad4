"""Sensors: what instruments on the robot read."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from truesim.actuators.forces import ActuatorForces, actuator_forces
from truesim.core.typing import Array, Float
from truesim.dynamics import body_accelerations, body_poses, body_velocities
from truesim.model.model import Model, Sensor
from truesim.model.topology import Link
from truesim.simulate.equation import Constants
from truesim.simulate.simulator import Simulator
from truesim.simulate.state import State
from truesim.spatial.rotation import matrix_quaternion, normalise
from truesim.spatial.transform import Pose

WIDTHS = {
    "framepos": ("x", "y", "z"),
    "framequat": ("qw", "qx", "qy", "qz"),
    "ballquat": ("qw", "qx", "qy", "qz"),
    **dict.fromkeys(("framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel"), ("x", "y", "z")),
    **dict.fromkeys(("velocimeter", "gyro", "accelerometer", "ballangvel"), ("x", "y", "z")),
}
"""Components of the sensors that read more than one number."""


class Moment(NamedTuple):
    """Everything a sensor may look at, at one instant."""

    model: Model
    state: State
    actuators: ActuatorForces
    poses: Pose
    velocities: Float[Array, "bodies 6"]
    accelerations: Float[Array, "bodies 6"]


class Frame(NamedTuple):
    """A frame that moves with a body: pose, and velocity and acceleration of its origin, in world axes."""

    pose: Pose
    angular: Float[Array, "3"]
    linear: Float[Array, "3"]
    acceleration: Float[Array, "3"]


def components(sensor: Sensor) -> tuple[str, ...]:
    """Names of the numbers that a sensor reads; empty for a single number."""
    return WIDTHS.get(sensor.kind, ())


def read_sensors(
    simulator: Simulator, state: State, command: Float[Array, "nu"], constants: Constants | None = None
) -> dict[str, Array]:
    """Reading of every sensor of the model, at a state and with a command, by name.

    Args:
        simulator: The simulator.
        state: Where the robot is.
        command: Control of each actuator.
        constants: From `simulator.constants()`, to share it between readings.
    """
    model = simulator.model
    if not model.sensors:
        return {}
    a = simulator.acceleration(state, command, constants)
    moment = Moment(
        model=model,
        state=state,
        actuators=actuator_forces(model, state.q, state.v, command),
        poses=body_poses(model, state.q),
        velocities=body_velocities(model, state.q, state.v),
        accelerations=body_accelerations(model, state.q, state.v, a),
    )
    return {sensor.name: _cut(sensor, READERS[sensor.kind](moment, sensor)) for sensor in model.sensors}


def _cut(sensor: Sensor, reading: Array) -> Array:
    if not sensor.cutoff or sensor.kind in ("framequat", "ballquat"):
        return reading
    return jnp.clip(reading, -sensor.cutoff, sensor.cutoff)


def _link(moment: Moment, sensor: Sensor) -> Link:
    return next(link for link in moment.model.topology.links if link.joint == sensor.object)


def _frame(moment: Moment, kind: str | None, index: int) -> Frame:
    """The frame of an object; the world if it has none. Of a `body`, the centre of mass: only its origin counts."""
    model = moment.model
    if kind in ("site", "geom"):
        records = model.sites if kind == "site" else model.geoms
        body, local = records.bodies[index], Pose.from_quaternion(records.position[index], records.orientation[index])
    elif kind == "body":
        body, local = index, Pose(jnp.eye(3), jnp.asarray(model.bodies.com[index]))
    else:
        body, local = index, Pose.identity()
    if body < 0:
        return Frame(local, jnp.zeros(3), jnp.zeros(3), jnp.zeros(3))
    X = jax.tree.map(lambda x: x[body], moment.poses)
    V, A = moment.velocities[body], moment.accelerations[body]
    arm = X.rotation @ local.translation
    linear = V[3:] + jnp.cross(V[:3], arm)
    acceleration = A[3:] + jnp.cross(A[:3], arm) + jnp.cross(V[:3], jnp.cross(V[:3], arm))
    return Frame(X @ local, V[:3], linear, acceleration)


def _frames(moment: Moment, sensor: Sensor) -> tuple[Frame, Frame]:
    """The sensor's frame and the one it is measured in."""
    return (
        _frame(moment, sensor.object_kind, sensor.object),
        _frame(moment, sensor.reference_kind, sensor.reference),
    )


def _joint_position(moment: Moment, sensor: Sensor) -> Array:
    return moment.state.q[_link(moment, sensor).q][0]


def _joint_velocity(moment: Moment, sensor: Sensor) -> Array:
    return moment.state.v[_link(moment, sensor).v][0]


def _joint_actuator_force(moment: Moment, sensor: Sensor) -> Array:
    return moment.actuators.generalised[_link(moment, sensor).v][0]


def _ball_orientation(moment: Moment, sensor: Sensor) -> Array:
    return normalise(moment.state.q[_link(moment, sensor).q])


def _ball_velocity(moment: Moment, sensor: Sensor) -> Array:
    return moment.state.v[_link(moment, sensor).v]


def _position(moment: Moment, sensor: Sensor) -> Array:
    frame, reference = _frames(moment, sensor)
    return reference.pose.rotation.T @ (frame.pose.translation - reference.pose.translation)


def _orientation(moment: Moment, sensor: Sensor) -> Array:
    frame, reference = _frames(moment, sensor)
    return matrix_quaternion(reference.pose.rotation.T @ frame.pose.rotation)


def _axis(k: int) -> Callable[[Moment, Sensor], Array]:
    def read(moment: Moment, sensor: Sensor) -> Array:
        frame, reference = _frames(moment, sensor)
        return reference.pose.rotation.T @ frame.pose.rotation[:, k]

    return read


def _linear_velocity(moment: Moment, sensor: Sensor) -> Array:
    frame, reference = _frames(moment, sensor)
    carried = jnp.cross(reference.angular, frame.pose.translation - reference.pose.translation)
    return reference.pose.rotation.T @ (frame.linear - reference.linear - carried)


def _angular_velocity(moment: Moment, sensor: Sensor) -> Array:
    frame, reference = _frames(moment, sensor)
    return reference.pose.rotation.T @ (frame.angular - reference.angular)


def _velocimeter(moment: Moment, sensor: Sensor) -> Array:
    frame, _ = _frames(moment, sensor)
    return frame.pose.rotation.T @ frame.linear


def _gyro(moment: Moment, sensor: Sensor) -> Array:
    frame, _ = _frames(moment, sensor)
    return frame.pose.rotation.T @ frame.angular


def _accelerometer(moment: Moment, sensor: Sensor) -> Array:
    """Acceleration minus gravity, in the sensor's own axes."""
    frame, _ = _frames(moment, sensor)
    return frame.pose.rotation.T @ (frame.acceleration - moment.model.gravity)


READERS: dict[str, Callable[[Moment, Sensor], Array]] = {
    "jointpos": _joint_position,
    "jointvel": _joint_velocity,
    "jointactuatorfrc": _joint_actuator_force,
    "ballquat": _ball_orientation,
    "ballangvel": _ball_velocity,
    "actuatorpos": lambda moment, sensor: moment.actuators.length[sensor.object],
    "actuatorvel": lambda moment, sensor: moment.actuators.velocity[sensor.object],
    "actuatorfrc": lambda moment, sensor: moment.actuators.force[sensor.object],
    "framepos": _position,
    "framequat": _orientation,
    "framexaxis": _axis(0),
    "frameyaxis": _axis(1),
    "framezaxis": _axis(2),
    "framelinvel": _linear_velocity,
    "frameangvel": _angular_velocity,
    "velocimeter": _velocimeter,
    "gyro": _gyro,
    "accelerometer": _accelerometer,
}
"""How each kind of sensor reads."""
