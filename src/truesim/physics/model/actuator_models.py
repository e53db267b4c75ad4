"""Choice of the actuator model of an actuator."""

import dataclasses
import fnmatch

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array
from truesim.physics.model import paths
from truesim.physics.model.actuators import ACTUATOR_MODEL_PARAMETERS, AFFINE
from truesim.physics.model.model import Model

UNLIMITED = 1e6
"""Bound of a servo's set points where its joint has none [rad or m]."""


def with_servo(model: Model, pattern: str, *, kp: float | None = None, kv: float | None = None) -> Model:
    """Model whose motors are servos: `kp (control - position) - kv velocity`, or `kv (control - velocity)` without kp.

    Set points are bounded by the joint's range instead of the motor's forces; bounds of forces stay.

    Args:
        model: The robot.
        pattern: Actuators or their joints, such as `joints/*`, `actuators/elbow` or `elbow`.
        kp: Position gain [N m/rad or N/m].
        kv: Velocity gain [N m s/rad or N s/m]; zero by default.
    """
    group, _, name = pattern.rpartition("/")
    actuators = model.actuators
    labels = [model.driven(i) for i in range(model.nu)] if group == "joints" else list(actuators.names)
    chosen = [i for i, label in enumerate(labels) if fnmatch.fnmatchcase(label, name) and actuators.models[i] == AFFINE]
    if not chosen:
        raise unknown_name("actuator", pattern, [f"{group or 'actuators'}/{label}" for label in labels])
    if kp is None and kv is None:
        raise TruesimError(f"The servo {pattern!r} has no gain; write {pattern}:kp=50 or {pattern}:kv=5.")
    if not all(gain is None or gain >= 0 for gain in (kp, kv)):
        raise TruesimError(f"The gains of the servo {pattern!r} must not be negative.")
    for i in chosen:
        damping = kv or 0.0
        bias = [0.0, -(kp or 0.0), -damping]
        joint = actuators.joints[i]
        limited = kp is not None and joint >= 0 and model.joints.limited[joint]
        bounds = model.joints.range[joint] if limited else (-UNLIMITED, UNLIMITED)
        values = {"gain": damping if kp is None else kp, "bias": bias, "control_range": np.asarray(bounds, float)}
        for field, value in values.items():
            model = paths.write(model, f"actuators/{actuators.names[i]}.{field}", np.asarray(value, float))
    return model


def with_actuator_model(model: Model, actuator: str, name: str, **parameters: Array | float) -> Model:
    """Model with another actuator model for one of its actuators; `save` keeps it in the sidecar.

    Args:
        model: The robot.
        actuator: Name of the actuator.
        name: Name of the actuator model: `affine`, `dc_motor`, `duty_servo` or `minitaur_motor`.
        parameters: Parameters of the actuator model, such as `volts=7.4`; defaults in `ACTUATOR_MODEL_PARAMETERS`.
    """
    i = model.actuator(actuator)
    if name not in (AFFINE, *ACTUATOR_MODEL_PARAMETERS):
        raise unknown_name("actuator model", name, (AFFINE, *ACTUATOR_MODEL_PARAMETERS))
    names = (*model.actuators.models[:i], name, *model.actuators.models[i + 1 :])
    model = dataclasses.replace(model, actuators=dataclasses.replace(model.actuators, models=names))
    for field, value in {**ACTUATOR_MODEL_PARAMETERS.get(name, {}), **parameters}.items():
        model = paths.write(model, f"actuators/{actuator}.{field}", value)
    return model
