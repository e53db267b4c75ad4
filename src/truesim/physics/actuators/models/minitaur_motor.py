"""Motor of the Minitaur robot, with its measured torque curve."""

import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.physics.actuators.models.base import AbstractActuatorModel
from truesim.physics.model.actuators import Actuators

MINITAUR_CURRENTS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
"""Currents of the torque curve [A]."""
MINITAUR_TORQUES = np.array([0.0, 1.0, 1.9, 2.45, 3.0, 3.25, 3.5])
"""Torques at these currents; the motor saturates beyond the last one [N m]."""
MAX_NET_VOLTAGE = 50.0
"""Bound of the net voltage [V]."""


class MinitaurMotor(AbstractActuatorModel):
    """Position controller with clipped duty, and a motor with a torque tabulated over its current.

    duty = clip(kp (control - length) - kd velocity, -1, 1)
    I = clip(volts duty - (torque_constant + viscous_constant) velocity, -50 V, 50 V) / resistance
    torque = strength sign(I) table(abs(I))

    On the linear segments of the table only `strength volts / resistance` and
    `strength (torque_constant + viscous_constant) / resistance` are identifiable, the latter only summed with the
    joint's damping.
    """

    name = "minitaur_motor"

    def force(
        self,
        parameters: Actuators,
        control: Float[Array, " actuators"],
        length: Float[Array, " actuators"],
        velocity: Float[Array, " actuators"],
    ) -> Float[Array, " actuators"]:
        """Torque of each motor [N m]."""
        duty = jnp.clip(parameters.kp * (control - length) - parameters.kd * velocity, -1.0, 1.0)
        induced = (parameters.torque_constant + parameters.viscous_constant) * velocity
        current = jnp.clip(parameters.volts * duty - induced, -MAX_NET_VOLTAGE, MAX_NET_VOLTAGE) / parameters.resistance
        return parameters.strength * torque_curve(current)


def torque_curve(current: Float[Array, " actuators"]) -> Float[Array, " actuators"]:
    """Torque at a current: an odd function, linear between the entries of the table [N m].

    A sum of clipped currents, weighted by the change of the derivative at each entry.
    """
    derivatives = np.append(np.diff(MINITAUR_TORQUES) / np.diff(MINITAUR_CURRENTS), 0.0)
    kinks = zip(MINITAUR_CURRENTS[1:], -np.diff(derivatives), strict=True)
    return sum((kink * jnp.clip(current, -at, at) for at, kink in kinks), start=jnp.zeros_like(current))
