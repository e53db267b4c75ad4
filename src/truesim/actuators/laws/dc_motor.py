"""A direct-current motor driven by voltage."""

import jax.numpy as jnp

from truesim.actuators.laws.base import AbstractActuatorLaw
from truesim.core.typing import Array, Float
from truesim.model.actuators import Actuators


class DcMotor(AbstractActuatorLaw):
    """Voltage against the induced one drives a current, and the current makes torque.

    duty = clip(control, -max_duty, max_duty)
    I = (volts duty - torque_constant velocity) / resistance
    torque = torque_constant I

    The control is a duty; with `volts = 1` it is a voltage, and `max_duty` the supply. The bounded duty gives the
    four-quadrant torque-speed lines between the stall torque `torque_constant volts / resistance` at rest and the
    no-load speed `volts / torque_constant`; `force_range` adds the largest torque that the motor may give for long.

    Motion shows only `torque_constant volts / resistance` and `torque_constant^2 / resistance`: of the three numbers
    one must be known, and with unknown damping in the joint the second cannot be told from it either.
    """

    name = "dc_motor"

    def force(
        self,
        numbers: Actuators,
        control: Float[Array, "actuators"],
        length: Float[Array, "actuators"],
        velocity: Float[Array, "actuators"],
    ) -> Float[Array, "actuators"]:
        """Torque of each motor [N m], or force [N]."""
        duty = jnp.clip(control, -numbers.max_duty, numbers.max_duty)
        return motor_torque(numbers, duty, velocity)


def motor_torque(
    numbers: Actuators, duty: Float[Array, "actuators"], velocity: Float[Array, "actuators"]
) -> Float[Array, "actuators"]:
    """`torque_constant (volts duty - torque_constant velocity) / resistance` [N m or N]."""
    current = (numbers.volts * duty - numbers.torque_constant * velocity) / numbers.resistance
    return numbers.torque_constant * current
