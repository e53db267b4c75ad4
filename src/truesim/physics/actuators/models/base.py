"""Abstract actuator model."""

import abc
from typing import ClassVar

from truesim.core.typing import Array, Float
from truesim.physics.model.actuators import Actuators


class AbstractActuatorModel(abc.ABC):
    """Stateless map from controls to forces, for all actuators of one model at once."""

    name: ClassVar[str]
    """Entry of `Actuators.models`; `ACTUATOR_MODEL_PARAMETERS` lists its parameters under this name."""

    @abc.abstractmethod
    def force(
        self,
        parameters: Actuators,
        control: Float[Array, " actuators"],
        length: Float[Array, " actuators"],
        velocity: Float[Array, " actuators"],
    ) -> Float[Array, " actuators"]:
        """Force of each actuator before bounds and gear [N m or N].

        Args:
            parameters: Arrays of the actuators of this model; static fields such as names belong to all actuators.
            control: Delayed control with its offset.
            length: Joint coordinate times gear [rad or m].
            velocity: Rate of the length [rad/s or m/s].
        """
