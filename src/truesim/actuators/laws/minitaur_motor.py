"""The motor of the Minitaur robot, with its measured torque curve."""

import jax.numpy as jnp
import numpy as np

from truesim.actuators.laws.base import AbstractActuatorLaw
from truesim.core.typing import Array, Float
from truesim.model.actuators import Actuators

CURRENTS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
"""[A]"""
TORQUES = np.array([0.0, 1.0, 1.9, 2.45, 3.0, 3.25, 3.5])
"""Torque at these currents; the motor saturates beyond the last [N m]."""
MAX_VOLTS = 50.0
"""Bound of the net voltage [V]."""


class MinitaurMotor(AbstractActuatorLaw):
    """A position controller with clipped duty, and a motor whose torque is tabulated over its current.

    duty = clip(kp (control - length) - kd velocity, -1, 1)
    I = clip(volts duty - (torque_constant + viscous_constant) velocity, -50 V, 50 V) / resistance
    torque = strength sign(I) table(abs(I))

    On the straight pieces of the table motion shows only `strength volts / resistance` and
    `strength (torque_constant + viscous_constant) / resistance`, the latter together with the joint's damping.
    """

    name = "minitaur_motor"

    def force(
        self,
        numbers: Actuators,
        control: Float[Array, "actuators"],
        length: Float[Array, "actuators"],
        velocity: Float[Array, "actuators"],
    ) -> Float[Array, "actuators"]:
        """Torque of each motor [N m]."""
        duty = jnp.clip(numbers.kp * (control - length) - numbers.kd * velocity, -1.0, 1.0)
        induced = (numbers.torque_constant + numbers.viscous_constant) * velocity
        current = jnp.clip(numbers.volts * duty - induced, -MAX_VOLTS, MAX_VOLTS) / numbers.resistance
        return numbers.strength * torque_curve(current)


def torque_curve(current: Float[Array, "actuators"]) -> Float[Array, "actuators"]:
    """Torque at a current, odd and straight between the entries of the table [N m].

    Each entry bends the curve: a sum of clipped currents, weighted by the change of slope there.
    """
    slopes = np.append(np.diff(TORQUES) / np.diff(CURRENTS), 0.0)
    bends = zip(CURRENTS[1:], -np.diff(slopes), strict=True)
    return sum((bend * jnp.clip(current, -at, at) for at, bend in bends), start=jnp.zeros_like(current))
