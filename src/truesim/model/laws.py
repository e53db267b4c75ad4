"""Another law for an actuator."""

import dataclasses

from truesim.core.errors import unknown_name
from truesim.core.typing import Array
from truesim.model import paths
from truesim.model.actuators import AFFINE, LAW_NUMBERS
from truesim.model.model import Model


def with_law(model: Model, actuator: str, law: str, **numbers: Array | float) -> Model:
    """The model with another law for one of its actuators; `save` keeps it in the sidecar.

    Args:
        model: The robot.
        actuator: Its name.
        law: `affine`, `dc_motor`, `duty_servo` or `minitaur_motor`.
        numbers: What the law needs, such as `volts=7.4`; the others are as in `truesim.model.actuators.LAW_NUMBERS`.
    """
    i = model.actuator(actuator)
    if law not in (AFFINE, *LAW_NUMBERS):
        raise unknown_name("actuator law", law, (AFFINE, *LAW_NUMBERS))
    laws = (*model.actuators.laws[:i], law, *model.actuators.laws[i + 1 :])
    model = dataclasses.replace(model, actuators=dataclasses.replace(model.actuators, laws=laws))
    for field, value in {**LAW_NUMBERS.get(law, {}), **numbers}.items():
        model = paths.write(model, f"actuators/{actuator}.{field}", value)
    return model
