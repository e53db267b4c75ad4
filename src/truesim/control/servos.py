"""Bounds of the commands of servos whose force is limited: they move with the state.

The force of a position or velocity servo depends on the joint and on the command, and saturates at its bounds. Beyond
them the command changes nothing, so that an optimizer finds no gradient there. Within the bounds computed here, which
the solver holds exactly, no force saturates and no force is lost.
"""

import jax.numpy as jnp
import numpy as np

from truesim.control.task import SATURATION_MARGIN
from truesim.core.typing import Array, Bool, Float
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator


def servo_forces(simulator: Simulator) -> Float[np.ndarray, "nu 2"] | None:
    """Range of the force of each actuator that is a servo, infinite for others; None if no servo has bounds.

    Actuators count whose force is `gain * (command + offset)` plus a bias that depends on the joint. Where commands
    act later, or networks or routines take part in forces, bounds at the time of the command say nothing.
    """
    model, none = simulator.model, simulator.constraint_contact is not None or simulator.learned is not None
    actuators, joints = model.actuators, model.joints
    ranges = np.tile([-np.inf, np.inf], (model.nu, 1))
    for i, joint in enumerate(actuators.joints):
        constant = actuators.models[i] == AFFINE and actuators.gain[i] != 0 and not np.any(actuators.gain_slope[i])
        if not constant or not np.any(actuators.bias[i]):
            continue
        if actuators.force_limited[i]:
            ranges[i] = np.asarray(actuators.force_range[i], float)
        gear = float(actuators.gear[i, 0])
        alone = actuators.joints.count(joint) == 1 and gear != 0 and joints.kinds[joint] in (HINGE, SLIDE)
        if joint >= 0 and alone and joints.force_limited[joint]:
            low, high = np.sort(np.asarray(joints.force_range[joint], float) / gear)
            ranges[i] = max(ranges[i, 0], low), min(ranges[i, 1], high)
    return None if none or simulator.history or not np.isfinite(ranges).any() else ranges


def servo_bounds(
    model: Model, forces: Float[np.ndarray, "nu 2"], q: Array, v: Array, low: Array, high: Array
) -> tuple[Float[Array, " nu"], Float[Array, " nu"]]:
    """Bounds of all commands at a state: those given, and within them those of the forces of servos.

    Args:
        model: The robot.
        forces: Range of the force of each servo, infinite for others.
        q: Configuration.
        v: Velocity.
        low: Lower bounds that do not depend on the state.
        high: Upper bounds.
    """
    actuators, is_servo = model.actuators, servos(forces)
    found = actuator_forces(model, q, v, jnp.zeros(model.nu))
    bias = actuators.bias[:, 0] + actuators.bias[:, 1] * found.length + actuators.bias[:, 2] * found.velocity
    gain = jnp.where(is_servo, actuators.gain, 1.0)
    inside = SATURATION_MARGIN * np.where(np.isfinite(forces[:, 1] - forces[:, 0]), forces[:, 1] - forces[:, 0], 0.0)
    ends = [(force - bias) / gain - actuators.offset for force in (forces[:, 0] + inside, forces[:, 1] - inside)]
    within = [jnp.clip(jnp.where(is_servo, end(*ends), low), low, high) for end in (jnp.minimum, jnp.maximum)]
    return within[0], jnp.where(is_servo, within[1], high)


def servos(forces: Float[np.ndarray, "nu 2"]) -> Bool[np.ndarray, " nu"]:
    """True for servos with a bound of their force."""
    return np.isfinite(forces).any(axis=1)
