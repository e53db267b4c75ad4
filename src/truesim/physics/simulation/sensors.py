"""Sensors: measurements of the instruments on the robot."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import matrix_quaternion, normalize
from truesim.math.spatial.transform import Pose
from truesim.physics.actuators.forces import ActuatorForces, actuator_forces
from truesim.physics.dynamics import body_accelerations, body_poses, body_velocities
from truesim.physics.model.model import Model
from truesim.physics.model.sensors import Sensor
from truesim.physics.model.topology import Link
from truesim.physics.simulation.equation_of_motion import Constants
from truesim.physics.simulation.passive import gravity_compensation
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State

MEASUREMENT = Port(
    "sensor.measurement", "channels", "its own", "Measurement of each channel of the declared sensors, bias included."
)
ENCODER_POSITION = Port("encoder.position", "coordinates", "rad|m", "Positions as a log holds them, bias included.")
ENCODER_VELOCITY = Port("encoder.velocity", "dofs", "rad/s|m/s", "Velocities as a log holds them, bias included.")


class Moment(NamedTuple):
    """Quantities that sensors depend on, at one instant."""

    model: Model
    state: State
    actuators: ActuatorForces
    poses: Pose
    velocities: Float[Array, "bodies 6"]
    accelerations: Float[Array, "bodies 6"]


class SensorFrame(NamedTuple):
    """A frame that moves with a body: pose, and velocity and acceleration of its origin, in world axes."""

    pose: Pose
    angular: Float[Array, "3"]
    linear: Float[Array, "3"]
    acceleration: Float[Array, "3"]


def read_sensors(
    simulator: Simulator,
    state: State,
    command: Float[Array, " nu"],
    constants: Constants | None = None,
    acceleration: Float[Array, " nv"] | None = None,
) -> dict[str, Array]:
    """Measurement of every sensor of the model at a state, by name: `scale * truth + bias`, within the file's cutoff.

    Args:
        simulator: The simulator.
        state: Current state.
        command: Control of each actuator from now on.
        constants: From `simulator.constants()`, to share them between calls.
        acceleration: Acceleration at the state, if it is known [rad/s^2, m/s^2].
    """
    model = simulator.model
    if not model.sensors.declared:
        return {}
    velocities = body_velocities(model, state.q, state.v)
    accelerations: Array = jnp.zeros_like(velocities)
    if any(sensor.kind == "accelerometer" for sensor in model.sensors.declared):  # nothing else needs the dynamics
        a = simulator.acceleration(state, command, constants) if acceleration is None else acceleration
        accelerations = body_accelerations(model, state.q, state.v, a)
    command, _ = simulator.delayed(state, command)
    tap = simulator.equation(command, constants, state).tap(state.q, state.v) if simulator.learned else NO_TAP
    support = gravity_compensation(model, state.q)
    by_actuators = None if support is None else support.by_actuators
    moment = Moment(
        model=model,
        state=state,
        actuators=actuator_forces(model, state.q, state.v, command, tap, by_actuators),
        poses=body_poses(model, state.q),
        velocities=velocities,
        accelerations=accelerations,
    )
    measured, first = {}, 0
    for sensor in model.sensors.declared:
        truth = SENSOR_MODELS[sensor.kind](moment, sensor)
        channels = slice(first, first + truth.size)
        first = channels.stop
        measured[sensor.name] = _cut(sensor, _measured(model, channels, truth.reshape(-1)).reshape(truth.shape))
    return _tapped(measured, tap) if tap.wants(MEASUREMENT) else measured


def _tapped(measured: dict[str, Array], tap: Tap) -> dict[str, Array]:
    """Measurements after a tap."""
    sizes = np.cumsum([x.size for x in measured.values()])
    parts = jnp.split(tap(MEASUREMENT, jnp.concatenate([jnp.ravel(x) for x in measured.values()])), sizes[:-1])
    return {name: part.reshape(old.shape) for (name, old), part in zip(measured.items(), parts, strict=True)}


def read_encoders(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap = NO_TAP
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Positions and velocities as a log holds them: `scale * truth + bias`."""
    positions, velocities = _measured(model, model.sensors.positions, q), _measured(model, model.sensors.velocities, v)
    return tap(ENCODER_POSITION, positions), tap(ENCODER_VELOCITY, velocities)


def from_encoders(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """True positions and velocities behind those that a log holds: the inverse of `read_encoders`."""
    bias, scale = jnp.asarray(model.sensors.bias), jnp.asarray(model.sensors.scale)
    positions, velocities = model.sensors.positions, model.sensors.velocities
    return (q - bias[positions]) / scale[positions], (v - bias[velocities]) / scale[velocities]


def _measured(model: Model, channels: slice, truth: Float[Array, " n"]) -> Float[Array, " n"]:
    return model.sensors.scale[channels] * truth + model.sensors.bias[channels]


def _cut(sensor: Sensor, value: Array) -> Array:
    if not sensor.cutoff or sensor.kind in ("framequat", "ballquat"):
        return value
    return jnp.clip(value, -sensor.cutoff, sensor.cutoff)


def _link(moment: Moment, sensor: Sensor) -> Link:
    return next(link for link in moment.model.topology.links if link.joint == sensor.object)


def _frame(moment: Moment, kind: str | None, index: int) -> SensorFrame:
    """Frame of an object; the world's if it has none. Of a `body`, at the center of mass; only its origin counts."""
    model = moment.model
    if kind in ("site", "geom"):
        records = model.sites if kind == "site" else model.geoms
        body, local = records.bodies[index], Pose.from_quaternion(records.position[index], records.orientation[index])
    elif kind == "body":
        body, local = index, Pose(jnp.eye(3), jnp.asarray(model.bodies.com[index]))
    else:
        body, local = index, Pose.identity()
    if body < 0:
        return SensorFrame(local, jnp.zeros(3), jnp.zeros(3), jnp.zeros(3))
    X = jax.tree.map(lambda x: x[body], moment.poses)
    V, A = moment.velocities[body], moment.accelerations[body]
    arm = X.rotation @ local.translation
    linear = V[3:] + jnp.cross(V[:3], arm)
    acceleration = A[3:] + jnp.cross(A[:3], arm) + jnp.cross(V[:3], jnp.cross(V[:3], arm))
    return SensorFrame(X @ local, V[:3], linear, acceleration)


def _frames(moment: Moment, sensor: Sensor) -> tuple[SensorFrame, SensorFrame]:
    """Frame of the sensor, and the reference frame."""
    return (
        _frame(moment, sensor.object_kind, sensor.object),
        _frame(moment, sensor.reference_kind, sensor.reference),
    )


def _joint_position(moment: Moment, sensor: Sensor) -> Array:
    return moment.state.q[_link(moment, sensor).q][0]


def _joint_velocity(moment: Moment, sensor: Sensor) -> Array:
    return moment.state.v[_link(moment, sensor).v][0]


def _joint_actuator_force(moment: Moment, sensor: Sensor) -> Array:
    return moment.actuators.generalized[_link(moment, sensor).v][0]


def _ball_orientation(moment: Moment, sensor: Sensor) -> Array:
    return normalize(moment.state.q[_link(moment, sensor).q])


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


SENSOR_MODELS: dict[str, Callable[[Moment, Sensor], Array]] = {
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
"""Function of each kind of sensor."""
