"""Actuator models: force as a function of control, length and velocity."""

from truesim.physics.actuators.models.affine import Affine
from truesim.physics.actuators.models.base import AbstractActuatorModel
from truesim.physics.actuators.models.dc_motor import DcMotor
from truesim.physics.actuators.models.duty_servo import DutyServo
from truesim.physics.actuators.models.minitaur_motor import MinitaurMotor

ACTUATOR_MODELS: dict[str, AbstractActuatorModel] = {
    model.name: model for model in (Affine(), DcMotor(), DutyServo(), MinitaurMotor())
}
"""Every actuator model by its name."""

__all__ = ["ACTUATOR_MODELS", "AbstractActuatorModel", "Affine", "DcMotor", "DutyServo", "MinitaurMotor"]
