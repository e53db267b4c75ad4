"""A hobby servo: firmware that sets the duty of a motor by the position error."""

import jax.numpy as jnp

from truesim.actuators.laws.base import AbstractActuatorLaw
from truesim.actuators.laws.dc_motor import motor_torque
from truesim.core.typing import Array, Float
from truesim.model.actuators import Actuators


class DutyServo(AbstractActuatorLaw):
    """A position controller with clipped duty, and the motor behind it.

    duty = clip(kp error_gain (control - length) - kd velocity, -max_duty, max_duty)
    torque = torque_constant volts duty / resistance - torque_constant^2 velocity / resistance

    `kp` is the setting of the firmware, known for each run; `error_gain` turns it into duty. Motion shows only
    `torque_constant volts / resistance` and `torque_constant^2 / resistance`, the latter together with the joint's
    damping; while the duty stays below its bound, `error_gain` and the former show only as their product.
    """

    name = "duty_servo"

    def force(
        self,
        numbers: Actuators,
        control: Float[Array, "actuators"],
        length: Float[Array, "actuators"],
        velocity: Float[Array, "actuators"],
    ) -> Float[Array, "actuators"]:
        """Torque of each servo [N m], or force [N]."""
        duty = numbers.kp * numbers.error_gain * (control - length) - numbers.kd * velocity
        return motor_torque(numbers, jnp.clip(duty, -numbers.max_duty, numbers.max_duty), velocity)
