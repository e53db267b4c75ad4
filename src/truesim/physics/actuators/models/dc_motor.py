"""Direct-current motor driven by a voltage."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.physics.actuators.models.base import AbstractActuatorModel
from truesim.physics.model.actuators import Actuators


class DcMotor(AbstractActuatorModel):
    """Direct-current motor: the supply voltage less the induced voltage drives the current, which makes torque.

    duty = clip(control, -max_duty, max_duty)
    I = (volts duty - torque_constant velocity) / resistance
    torque = torque_constant I

    The control is a duty; with `volts = 1` it is a voltage, and `max_duty` the supply. The bounded duty gives the
    four-quadrant torque-speed lines between the stall torque `torque_constant volts / resistance` at rest and the
    no-load speed `volts / torque_constant`; `force_range` can add the continuous torque limit.

    Only `torque_constant volts / resistance` and `torque_constant^2 / resistance` are identifiable from motion: one of
    the three parameters must be known. The second product is not identifiable if the joint's damping is unknown.
    """

    name = "dc_motor"

    def force(
        self,
        parameters: Actuators,
        control: Float[Array, " actuators"],
        length: Float[Array, " actuators"],
        velocity: Float[Array, " actuators"],
    ) -> Float[Array, " actuators"]:
        """Torque of each motor [N m], or force [N]."""
        duty = jnp.clip(control, -parameters.max_duty, parameters.max_duty)
        return motor_torque(parameters, duty, velocity)


def motor_torque(
    parameters: Actuators, duty: Float[Array, " actuators"], velocity: Float[Array, " actuators"]
) -> Float[Array, " actuators"]:
    """`torque_constant (volts duty - torque_constant velocity) / resistance` [N m or N]."""
    current = (parameters.volts * duty - parameters.torque_constant * velocity) / parameters.resistance
    return parameters.torque_constant * current
