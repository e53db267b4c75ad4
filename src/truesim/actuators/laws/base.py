"""What a law of actuators must provide."""

import abc
from typing import ClassVar

from truesim.core.typing import Array, Float
from truesim.model.actuators import Actuators


class AbstractActuatorLaw(abc.ABC):
    """From controls to forces, for all actuators of one law at once; has no state."""

    name: ClassVar[str]
    """As in `Actuators.laws`; its numbers are listed under this name in `truesim.model.actuators.LAW_NUMBERS`."""

    @abc.abstractmethod
    def force(
        self,
        numbers: Actuators,
        control: Float[Array, "actuators"],
        length: Float[Array, "actuators"],
        velocity: Float[Array, "actuators"],
    ) -> Float[Array, "actuators"]:
        """Force of each actuator before its bounds and its gear [N m or N].

        Args:
            numbers: The actuators of this law, arrays only; their names and structure may be of others too.
            control: What arrives, offset included.
            length: Joint coordinate times gear [rad or m].
            velocity: Rate of the length [rad/s or m/s].
        """
