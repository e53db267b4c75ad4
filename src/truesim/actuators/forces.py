"""Actuators on joints: `force = clip(law(clip(control) + offset))`, transmitted by the gear."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.actuators.laws import LAWS
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.model.actuators import AFFINE, Actuators
from truesim.model.kinds import BALL, FREE, HINGE, SLIDE
from truesim.model.model import Model
from truesim.spatial.rotation import normalise, quaternion_log, quaternion_matrix

COMMAND = Port(
    "actuator.command", "actuators", "control", "What arrives at each actuator, after its delay and within its range."
)
LENGTH = Port("actuator.length", "actuators", "rad|m", "Joint coordinate times gear.", writable=False)
SPEED = Port("actuator.velocity", "actuators", "rad/s|m/s", "Rate of the length.", writable=False)
FORCE = Port(
    "actuator.force",
    "actuators",
    "N m|N",
    "Force that each actuator's law asks for, before its bounds and its gear.",
    velocity=SPEED.name,
)
MOTOR_TORQUE = Port(
    "joint.motor_torque",
    "dofs",
    "N m|N",
    "What all actuators together exert on each degree of freedom, bounds and gears included.",
    velocity="joint.velocity",
)


class ActuatorForces(NamedTuple):
    """What the actuators do at one instant."""

    length: Float[Array, "actuators"]
    """Joint coordinate times gear."""
    velocity: Float[Array, "actuators"]
    """Rate of the length."""
    force: Float[Array, "actuators"]
    """Force of each actuator, before gear."""
    generalised: Float[Array, "nv"]
    """Force on each degree of freedom [N m or N]."""


def actuator_forces(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], control: Float[Array, "actuators"], tap: Tap = NO_TAP
) -> ActuatorForces:
    """Forces of all actuators at a state, for these controls."""
    actuators = model.actuators
    if not actuators.names:
        empty = jnp.zeros(0)
        return ActuatorForces(empty, empty, empty, tap(MOTOR_TORQUE, jnp.zeros(model.nv)))
    length, moments = _transmission(model, q)
    velocity = moments @ v
    if model.options.clamp_controls:
        control = _clip(control, actuators.control_range, actuators.control_limited)
    control, length, velocity = tap(COMMAND, control), tap(LENGTH, length), tap(SPEED, velocity)
    control = _shorter_way(model, length, control + actuators.offset)
    force = tap(FORCE, _by_law(actuators, control, length, velocity))
    force = _clip(force, actuators.force_range, actuators.force_limited)
    if not model.options.actuation:
        force = jnp.zeros_like(force)
    return ActuatorForces(length, velocity, force, tap(MOTOR_TORQUE, _joint_clip(model, moments.T @ force)))


def _by_law(actuators: Actuators, control: Array, length: Array, velocity: Array) -> Float[Array, "nu"]:
    """Force of each actuator by its own law."""
    laws = dict.fromkeys(actuators.laws)
    if len(laws) == 1:
        return LAWS[actuators.laws[0]].force(actuators, control, length, velocity)
    force = jnp.zeros_like(control)
    for law in laws:
        own = np.flatnonzero([name == law for name in actuators.laws])
        numbers = jax.tree.map(lambda x, own=own: jnp.asarray(x)[own], actuators)
        force = force.at[own].set(LAWS[law].force(numbers, control[own], length[own], velocity[own]))
    return force


def _clip(x: Array, bounds: Float[Array, "n 2"], limited: tuple[bool, ...]) -> Array:
    """`x` within its bounds, where it has any."""
    if not any(limited):
        return x
    return jnp.where(jnp.array(limited), jnp.clip(x, bounds[:, 0], bounds[:, 1]), x)


def _shorter_way(model: Model, length: Float[Array, "nu"], control: Float[Array, "nu"]) -> Float[Array, "nu"]:
    """Controls in which position servos on ball joints aim at the nearest of the equal angles, as in MuJoCo.

    A servo there is an actuator whose force is `gain * (control - length)`; a full turn is 2 pi times its gear.
    """
    actuators = model.actuators
    for i, joint in enumerate(actuators.joints):
        if model.joints.kinds[joint] == BALL and actuators.laws[i] == AFFINE:
            gear = jnp.asarray(actuators.gear)[i, :3]
            turn = 2 * jnp.pi * jnp.sqrt(jnp.maximum(gear @ gear, 1e-30))
            nearest = control[i] - turn * jnp.round((control[i] - length[i]) / turn)
            servo = (actuators.bias[i, 1] == -actuators.gain[i]) & jnp.all(actuators.gain_slope[i] == 0)
            control = control.at[i].set(jnp.where(servo, nearest, control[i]))
    return control


def _joint_clip(model: Model, generalised: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """Bounds of the total actuator force on hinges and slides."""
    limited = [
        link for link in model.topology.links if link.kind in (HINGE, SLIDE) and model.joints.force_limited[link.joint]
    ]
    if not limited:
        return generalised
    dofs = np.array([link.v_start for link in limited])
    bounds = jnp.asarray(model.joints.force_range)[np.array([link.joint for link in limited])]
    return generalised.at[dofs].set(jnp.clip(generalised[dofs], bounds[:, 0], bounds[:, 1]))


def _transmission(model: Model, q: Float[Array, "nq"]) -> tuple[Float[Array, "nu"], Float[Array, "nu nv"]]:
    """Length of each actuator, and its moment arm on each degree of freedom."""
    of_joint = {link.joint: link for link in model.topology.links}
    links = [of_joint[j] for j in model.actuators.joints]
    gear = jnp.asarray(model.actuators.gear)
    scalar = np.array([i for i, link in enumerate(links) if link.kind in (HINGE, SLIDE)], dtype=int)
    coordinates = np.array([links[i].q_start for i in scalar], dtype=int)
    dofs = np.array([links[i].v_start for i in scalar], dtype=int)
    length = jnp.zeros(model.nu).at[scalar].set(gear[scalar, 0] * q[coordinates])
    moments = jnp.zeros((model.nu, model.nv)).at[scalar, dofs].set(gear[scalar, 0])
    for i, link in enumerate(links):
        if link.kind == FREE:
            turned = _turned(model, i, gear[i, 3:], q[link.q][3:])
            moments = moments.at[i, link.v].set(jnp.concatenate([gear[i, :3], turned]))
        elif link.kind == BALL:
            turned = _turned(model, i, gear[i, :3], q[link.q])
            length = length.at[i].set(quaternion_log(normalise(q[link.q])) @ turned)
            moments = moments.at[i, link.v].set(turned)
    return length, moments


def _turned(model: Model, i: int, gear: Float[Array, "3"], quaternion: Float[Array, "4"]) -> Float[Array, "3"]:
    """A rotational gear in the moved body's frame."""
    if not model.actuators.in_parent[i]:
        return gear
    return quaternion_matrix(normalise(quaternion)).T @ gear
