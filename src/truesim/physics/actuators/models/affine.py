"""MuJoCo's affine actuator model: motor, position servo, velocity servo."""

from truesim.core.typing import Array, Float
from truesim.physics.actuators.models.base import AbstractActuatorModel
from truesim.physics.model.actuators import AFFINE, Actuators


class Affine(AbstractActuatorModel):
    """`force = gain(length, velocity) * control + bias(length, velocity)`, both affine.

    A motor has only a gain. A position servo with gains kp and kv has gain = kp and bias = (0, -kp, -kv).
    """

    name = AFFINE

    def force(
        self,
        parameters: Actuators,
        control: Float[Array, " actuators"],
        length: Float[Array, " actuators"],
        velocity: Float[Array, " actuators"],
    ) -> Float[Array, " actuators"]:
        """Force of each actuator [N m or N]."""
        gain = parameters.gain + parameters.gain_slope[:, 0] * length + parameters.gain_slope[:, 1] * velocity
        bias = parameters.bias[:, 0] + parameters.bias[:, 1] * length + parameters.bias[:, 2] * velocity
        return gain * control + bias
