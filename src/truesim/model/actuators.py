"""Actuators: what turns the controls of a robot into forces on its joints."""

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.model.quantity import quantity

AFFINE = "affine"
"""MuJoCo's law, which every actuator has when a file is read."""
LAW_NUMBERS: dict[str, dict[str, float]] = {
    "dc_motor": {"volts": 12.0, "resistance": 1.0, "torque_constant": 0.05, "max_duty": 1.0},
    "duty_servo": {
        "kp": 1.0,
        "kd": 0.0,
        "error_gain": 1.0,
        "volts": 5.0,
        "resistance": 1.0,
        "torque_constant": 0.5,
        "max_duty": 1.0,
    },
    "minitaur_motor": {
        "kp": 1.2,
        "kd": 0.0,
        "volts": 16.0,
        "resistance": 0.186,
        "torque_constant": 0.0954,
        "viscous_constant": 0.0,
        "strength": 1.0,
    },
}
"""The other laws, each with its numbers and what they are unless given; `truesim.actuators.laws` has the equations."""
NUMBERS = tuple(dict.fromkeys(number for law in LAW_NUMBERS.values() for number in law))
"""Numbers that belong to a law other than the affine one."""


class Actuators(eqx.Module):
    """Actuators on joints: a delayed control, a law that makes a force of it, bounds, and the gear to the joint."""

    delay: Float[Array, "actuators"] = quantity("s")
    """Time from a command to its effect; a simulator needs room for it (`Simulator.of(..., max_delay=)`)."""
    offset: Float[Array, "actuators"] = quantity("control")
    """Added to the control, after the delay and the control's bounds."""
    gain: Float[Array, "actuators"] = quantity("force per control")
    """Constant part of the gain."""
    gain_slope: Float[Array, "actuators 2"] = quantity("force per control")
    """How the gain grows with length and with velocity."""
    bias: Float[Array, "actuators 3"] = quantity("force")
    """Bias b0 + b1 length + b2 velocity; a position servo of gain kp has b1 = -kp."""
    kp: Float[Array, "actuators"] = quantity("1")
    """Proportional gain of a servo's controller, in the controller's own unit."""
    kd: Float[Array, "actuators"] = quantity("s/rad|s/m")
    """Duty for each unit of velocity, against it."""
    error_gain: Float[Array, "actuators"] = quantity("1/rad|1/m")
    """Duty for each unit of position error and of `kp`."""
    max_duty: Float[Array, "actuators"] = quantity("1")
    """Bound of the duty on either side."""
    volts: Float[Array, "actuators"] = quantity("V")
    """Supply voltage: what a duty of one puts on the motor."""
    resistance: Float[Array, "actuators"] = quantity("ohm")
    """Resistance of the windings."""
    torque_constant: Float[Array, "actuators"] = quantity("N m/A|N/A")
    """Force for each ampere, and voltage induced for each unit of velocity, at the actuator's output."""
    viscous_constant: Float[Array, "actuators"] = quantity("V s/rad|V s/m")
    """Voltage lost for each unit of velocity beyond the induced one."""
    strength: Float[Array, "actuators"] = quantity("1")
    """Force in parts of the nominal one."""
    gear: Float[Array, "actuators 6"] = quantity("1")
    """Gear: the joint feels gear times the actuator's force; length and velocity are the joint's times gear."""
    control_range: Float[Array, "actuators 2"] = quantity("control")
    """Bounds of the control."""
    force_range: Float[Array, "actuators 2"] = quantity("N m|N")
    """Bounds of the actuator's force, before gear."""
    names: tuple[str, ...] = eqx.field(static=True)
    laws: tuple[str, ...] = eqx.field(static=True)
    """`affine`, or one of `LAW_NUMBERS`."""
    joints: tuple[int, ...] = eqx.field(static=True)
    in_parent: tuple[bool, ...] = eqx.field(static=True)
    """Whether a gear on a ball or free joint is expressed in the parent's frame instead of the body's."""
    control_limited: tuple[bool, ...] = eqx.field(static=True)
    force_limited: tuple[bool, ...] = eqx.field(static=True)

    def applies(self, field: str, i: int) -> bool:
        """Whether a field has a meaning under the law of actuator `i`."""
        if self.laws[i] == AFFINE:
            return field not in NUMBERS
        return field not in ("gain", "gain_slope", "bias", *NUMBERS) or field in LAW_NUMBERS[self.laws[i]]
