"""Actuators: records of the actuators on joints, with the parameters of every actuator model."""

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.physics.model.quantity import quantity

AFFINE = "affine"
"""MuJoCo's actuator model, the one of every actuator in a robot file."""
ACTUATOR_MODEL_PARAMETERS: dict[str, dict[str, float]] = {
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
"""Parameters of every other actuator model, with defaults; `physics.actuators.models` has the equations."""
MODEL_FIELDS = tuple(dict.fromkeys(field for fields in ACTUATOR_MODEL_PARAMETERS.values() for field in fields))
"""Fields that belong to actuator models other than the affine one."""


class Actuators(eqx.Module):
    """Actuators on joints: a delayed control, an actuator model, force bounds, and the gear to the joint."""

    delay: Float[Array, " actuators"] = quantity("s")
    """Time from a command to its effect; `Simulator.of(..., max_delay=)` bounds it."""
    offset: Float[Array, " actuators"] = quantity("control")
    """Added to the control, after the delay and the control's bounds."""
    gain: Float[Array, " actuators"] = quantity("force per control")
    """Constant part of the gain."""
    gain_slope: Float[Array, "actuators 2"] = quantity("force per control")
    """Derivatives of the gain with respect to length and velocity."""
    bias: Float[Array, "actuators 3"] = quantity("force")
    """Bias b0 + b1 length + b2 velocity; a position servo of gain kp has b1 = -kp."""
    kp: Float[Array, " actuators"] = quantity("1")
    """Proportional gain of a servo's controller, in the controller's own unit."""
    kd: Float[Array, " actuators"] = quantity("s/rad|s/m")
    """Duty per unit of velocity, opposing it."""
    error_gain: Float[Array, " actuators"] = quantity("1/rad|1/m")
    """Duty per unit of position error and of `kp`."""
    max_duty: Float[Array, " actuators"] = quantity("1")
    """Bound of the absolute value of the duty."""
    volts: Float[Array, " actuators"] = quantity("V")
    """Supply voltage: motor voltage at a duty of one."""
    resistance: Float[Array, " actuators"] = quantity("ohm")
    """Resistance of the windings."""
    torque_constant: Float[Array, " actuators"] = quantity("N m/A|N/A")
    """Force per ampere, and induced voltage per unit of velocity, at the actuator's output."""
    viscous_constant: Float[Array, " actuators"] = quantity("V s/rad|V s/m")
    """Voltage drop per unit of velocity beyond the induced voltage."""
    strength: Float[Array, " actuators"] = quantity("1")
    """Force relative to the nominal one."""
    gear: Float[Array, "actuators 6"] = quantity("1")
    """Gear: the joint feels gear times the actuator's force; length and velocity are the joint's times gear."""
    control_range: Float[Array, "actuators 2"] = quantity("control")
    """Bounds of the control."""
    force_range: Float[Array, "actuators 2"] = quantity("N m|N")
    """Bounds of the actuator's force, before gear."""
    names: tuple[str, ...] = eqx.field(static=True)
    models: tuple[str, ...] = eqx.field(static=True)
    """`affine`, or one of `ACTUATOR_MODEL_PARAMETERS`."""
    joints: tuple[int, ...] = eqx.field(static=True)
    """Joint of each actuator; -1 if it acts on a tendon."""
    tendons: tuple[int, ...] = eqx.field(static=True)
    """Tendon of each actuator; -1 if it acts on a joint."""
    in_parent: tuple[bool, ...] = eqx.field(static=True)
    """True if a gear on a ball or free joint is expressed in the parent's frame instead of the body's."""
    control_limited: tuple[bool, ...] = eqx.field(static=True)
    force_limited: tuple[bool, ...] = eqx.field(static=True)
    clamps_controls: bool = eqx.field(static=True)
    """True if limited controls are clamped to their range."""
    enabled: bool = eqx.field(static=True)
    """True if the actuators exert forces."""

    def applies(self, field: str, i: int) -> bool:
        """True if the model of actuator `i` uses a field."""
        if self.models[i] == AFFINE:
            return field not in MODEL_FIELDS
        return (
            field not in ("gain", "gain_slope", "bias", *MODEL_FIELDS)
            or field in ACTUATOR_MODEL_PARAMETERS[self.models[i]]
        )
