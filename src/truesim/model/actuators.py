"""Actuators: what turns the controls of a robot into forces on its joints."""

import equinox as eqx

from truesim.core.typing import Array, Float
from truesim.model.quantity import quantity


class Actuators(eqx.Module):
    """Actuators on joints: `force = gain(length, velocity) * control + bias(length, velocity)`, times gear."""

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
    gear: Float[Array, "actuators 6"] = quantity("1")
    """Gear: the joint feels gear times the actuator's force; length and velocity are the joint's times gear."""
    control_range: Float[Array, "actuators 2"] = quantity("control")
    """Bounds of the control."""
    force_range: Float[Array, "actuators 2"] = quantity("N m|N")
    """Bounds of the actuator's force, before gear."""
    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[int, ...] = eqx.field(static=True)
    in_parent: tuple[bool, ...] = eqx.field(static=True)
    """Whether a gear on a ball or free joint is expressed in the parent's frame instead of the body's."""
    control_limited: tuple[bool, ...] = eqx.field(static=True)
    force_limited: tuple[bool, ...] = eqx.field(static=True)
