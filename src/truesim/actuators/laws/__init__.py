"""Laws of actuators: what force a control makes."""

from truesim.actuators.laws.affine import Affine
from truesim.actuators.laws.base import AbstractActuatorLaw
from truesim.actuators.laws.dc_motor import DcMotor
from truesim.actuators.laws.duty_servo import DutyServo
from truesim.actuators.laws.minitaur_motor import MinitaurMotor

LAWS: dict[str, AbstractActuatorLaw] = {law.name: law for law in (Affine(), DcMotor(), DutyServo(), MinitaurMotor())}
"""Every law by its name."""

__all__ = ["LAWS", "AbstractActuatorLaw", "Affine", "DcMotor", "DutyServo", "MinitaurMotor"]
