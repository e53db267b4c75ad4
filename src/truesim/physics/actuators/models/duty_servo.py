"""Hobby servo: firmware that sets the duty of a motor from the position error."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.physics.actuators.models.base import AbstractActuatorModel
from truesim.physics.actuators.models.dc_motor import motor_torque
from truesim.physics.model.actuators import Actuators


class DutyServo(AbstractActuatorModel):
    """Position controller with clipped duty, and a direct-current motor.

    duty = clip(kp error_gain (control - length) - kd velocity, -max_duty, max_duty)
    torque = torque_constant volts duty / resistance - torque_constant^2 velocity / resistance

    `kp` is the setting of the firmware, known for each log; `error_gain` converts it to duty. Only
    `torque_constant volts / resistance` and `torque_constant^2 / resistance` are identifiable from motion, the latter
    only summed with the joint's damping; while the duty stays below its bound, only the product of `error_gain` and the
    former is.
    """

    name = "duty_servo"

    def force(
        self,
        parameters: Actuators,
        control: Float[Array, " actuators"],
        length: Float[Array, " actuators"],
        velocity: Float[Array, " actuators"],
    ) -> Float[Array, " actuators"]:
        """Torque of each servo [N m], or force [N]."""
        duty = parameters.kp * parameters.error_gain * (control - length) - parameters.kd * velocity
        return motor_torque(parameters, jnp.clip(duty, -parameters.max_duty, parameters.max_duty), velocity)
