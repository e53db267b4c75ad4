"""Forces of actuators on joints: `force = clip(model(clip(control) + offset))`, transmitted by the gear."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import normalize, quaternion_log, quaternion_matrix
from truesim.physics.actuators.models import ACTUATOR_MODELS
from truesim.physics.model.actuators import AFFINE, Actuators
from truesim.physics.model.kinds import BALL, FREE, HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_jacobian, tendon_lengths

COMMAND = Port(
    "actuator.command", "actuators", "control", "Control of each actuator, after its delay and within its range."
)
LENGTH = Port("actuator.length", "actuators", "rad|m", "Joint coordinate times gear.", writable=False)
SPEED = Port("actuator.velocity", "actuators", "rad/s|m/s", "Rate of the length.", writable=False)
FORCE = Port(
    "actuator.force",
    "actuators",
    "N m|N",
    "Force of each actuator model, before bounds and gear.",
    velocity=SPEED.name,
)
MOTOR_TORQUE = Port(
    "joint.motor_torque",
    "dofs",
    "N m|N",
    "Total force of all actuators on each degree of freedom, with bounds and gears.",
    velocity="joint.velocity",
)


class ActuatorForces(NamedTuple):
    """Lengths, velocities and forces of the actuators at one instant."""

    length: Float[Array, " actuators"]
    """Joint coordinate times gear."""
    velocity: Float[Array, " actuators"]
    """Rate of the length."""
    force: Float[Array, " actuators"]
    """Force of each actuator, before gear."""
    generalized: Float[Array, " nv"]
    """Force on each degree of freedom [N m or N]."""


def actuator_forces(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    control: Float[Array, " actuators"],
    tap: Tap = NO_TAP,
    support: Float[Array, " nv"] | None = None,
) -> ActuatorForces:
    """Forces of all actuators at a state, for these controls.

    Args:
        model: The robot.
        q: Configuration.
        v: Velocity.
        control: Control of each actuator.
        tap: Receives the values of the ports.
        support: Gravity compensation that counts as a force of the actuators, within the bounds of the joints.
    """
    actuators = model.actuators
    if not actuators.names:
        empty = jnp.zeros(0)
        acts = support is not None and actuators.enabled  # MuJoCo adds it with the actuators' forces, if any act
        generalized = _joint_clip(model, jnp.asarray(support)) if acts else jnp.zeros(model.nv)
        return ActuatorForces(empty, empty, empty, tap(MOTOR_TORQUE, generalized))
    length, moments = _transmission(model, q)
    velocity = moments @ v
    if actuators.clamps_controls:
        control = _clip(control, actuators.control_range, actuators.control_limited)
    control, length, velocity = tap(COMMAND, control), tap(LENGTH, length), tap(SPEED, velocity)
    control = _nearest_turn(model, length, control + actuators.offset)
    force = tap(FORCE, _model_forces(actuators, control, length, velocity))
    force = _clip(force, actuators.force_range, actuators.force_limited)
    force = _tendon_clip(model, force)
    if not actuators.enabled:
        force, support = jnp.zeros_like(force), None
    generalized = moments.T @ force if support is None else moments.T @ force + support
    return ActuatorForces(length, velocity, force, tap(MOTOR_TORQUE, _joint_clip(model, generalized)))


def _model_forces(actuators: Actuators, control: Array, length: Array, velocity: Array) -> Float[Array, " nu"]:
    """Force of each actuator by its actuator model."""
    names = dict.fromkeys(actuators.models)
    if len(names) == 1:
        return ACTUATOR_MODELS[actuators.models[0]].force(actuators, control, length, velocity)
    force = jnp.zeros_like(control)
    for name in names:
        own = np.flatnonzero([other == name for other in actuators.models])
        parameters = jax.tree.map(lambda x, own=own: jnp.asarray(x)[own], actuators)
        force = force.at[own].set(ACTUATOR_MODELS[name].force(parameters, control[own], length[own], velocity[own]))
    return force


def _clip(x: Array, bounds: Float[Array, "n 2"], limited: tuple[bool, ...]) -> Array:
    """`x` clipped to its bounds where it is limited."""
    if not any(limited):
        return x
    return jnp.where(jnp.array(limited), jnp.clip(x, bounds[:, 0], bounds[:, 1]), x)


def _nearest_turn(model: Model, length: Float[Array, " nu"], control: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """Controls of position servos on ball joints, moved by full turns to the nearest equivalent angle, as in MuJoCo.

    A position servo is an actuator whose force is `gain * (control - length)`; a full turn is 2 pi times its gear.
    """
    actuators = model.actuators
    for i, joint in enumerate(actuators.joints):
        if joint >= 0 and model.joints.kinds[joint] == BALL and actuators.models[i] == AFFINE:
            gear = jnp.asarray(actuators.gear)[i, :3]
            turn = 2 * jnp.pi * jnp.sqrt(jnp.maximum(gear @ gear, 1e-30))
            nearest = control[i] - turn * jnp.round((control[i] - length[i]) / turn)
            servo = (actuators.bias[i, 1] == -actuators.gain[i]) & jnp.all(actuators.gain_slope[i] == 0)
            control = jnp.asarray(control).at[i].set(jnp.where(servo, nearest, control[i]))
    return control


def _tendon_clip(model: Model, force: Float[Array, " nu"]) -> Float[Array, " nu"]:
    """Forces of the actuators on each tendon, scaled so that their sum is within the tendon's bounds, as in MuJoCo."""
    for k, limited in enumerate(model.tendons.force_limited):
        own = np.flatnonzero(np.array(model.actuators.tendons) == k)
        if not limited or not len(own):
            continue
        total, bounds = jnp.sum(force[own]), jnp.asarray(model.tendons.force_range)[k]
        within = jnp.clip(total, bounds[0], bounds[1])
        scale = jnp.where(within == total, 1.0, within / jnp.where(total == 0.0, 1.0, total))
        force = jnp.asarray(force).at[own].multiply(scale)
    return force


def _joint_clip(model: Model, generalized: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Total actuator force, clipped to the bounds of hinges and slides."""
    limited = [
        link for link in model.topology.links if link.kind in (HINGE, SLIDE) and model.joints.force_limited[link.joint]
    ]
    if not limited:
        return generalized
    dofs = np.array([link.v_start for link in limited])
    bounds = jnp.asarray(model.joints.force_range)[np.array([link.joint for link in limited])]
    return jnp.asarray(generalized).at[dofs].set(jnp.clip(generalized[dofs], bounds[:, 0], bounds[:, 1]))


def _transmission(model: Model, q: Float[Array, " nq"]) -> tuple[Float[Array, " nu"], Float[Array, "nu nv"]]:
    """Length of each actuator, and its moment arm on each degree of freedom."""
    of_joint = {link.joint: link for link in model.topology.links}
    links = {i: of_joint[j] for i, j in enumerate(model.actuators.joints) if j >= 0}
    gear = jnp.asarray(model.actuators.gear)
    scalar = np.array([i for i, link in links.items() if link.kind in (HINGE, SLIDE)], dtype=int)
    coordinates = np.array([links[i].q_start for i in scalar], dtype=int)
    dofs = np.array([links[i].v_start for i in scalar], dtype=int)
    length = jnp.zeros(model.nu).at[scalar].set(gear[scalar, 0] * q[coordinates])
    moments = jnp.zeros((model.nu, model.nv)).at[scalar, dofs].set(gear[scalar, 0])
    if len(links) < model.nu:
        pulling = np.array([i for i in range(model.nu) if i not in links])
        tendons = np.array(model.actuators.tendons)[pulling]
        length = length.at[pulling].set(gear[pulling, 0] * tendon_lengths(model, q)[tendons])
        moments = moments.at[pulling].set(gear[pulling, :1] * tendon_jacobian(model)[tendons])
    for i, link in links.items():
        if link.kind == FREE:
            turned = _turned(model, i, gear[i, 3:], q[link.q][3:])
            moments = moments.at[i, link.v].set(jnp.concatenate([gear[i, :3], turned]))
        elif link.kind == BALL:
            turned = _turned(model, i, gear[i, :3], q[link.q])
            length = length.at[i].set(quaternion_log(normalize(q[link.q])) @ turned)
            moments = moments.at[i, link.v].set(turned)
    return length, moments


def _turned(model: Model, i: int, gear: Float[Array, "3"], quaternion: Float[Array, "4"]) -> Float[Array, "3"]:
    """Rotational gear in the moved body's frame."""
    if not model.actuators.in_parent[i]:
        return gear
    return quaternion_matrix(normalize(quaternion)).T @ gear
