"""MuJoCo's law: motor, position servo, velocity servo and anything between."""

from truesim.actuators.laws.base import AbstractActuatorLaw
from truesim.core.typing import Array, Float
from truesim.model.actuators import AFFINE, Actuators


class Affine(AbstractActuatorLaw):
    """`force = gain(length, velocity) * control + bias(length, velocity)`, both affine.

    A motor has a gain alone. A position servo with gains kp and kv has gain = kp and bias = (0, -kp, -kv).
    """

    name = AFFINE

    def force(
        self,
        numbers: Actuators,
        control: Float[Array, "actuators"],
        length: Float[Array, "actuators"],
        velocity: Float[Array, "actuators"],
    ) -> Float[Array, "actuators"]:
        """Force of each actuator [N m or N]."""
        gain = numbers.gain + numbers.gain_slope[:, 0] * length + numbers.gain_slope[:, 1] * velocity
        bias = numbers.bias[:, 0] + numbers.bias[:, 1] * length + numbers.bias[:, 2] * velocity
        return gain * control + bias
