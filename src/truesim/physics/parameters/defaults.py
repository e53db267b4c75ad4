"""Default bounds, scales and transforms of every field."""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core.typing import Float, NumPyArray
from truesim.physics.parameters.transforms import (
    AbstractTransform,
    Direction,
    Linear,
    Orientation,
    PhysicalInertia,
    Positive,
)

MAX_DELAY = 0.05
"""Default upper bound of a delay [s]."""
BOUND_RATIO = 50.0
"""Default ratio between the bounds of a positive quantity and its start; larger gives wider bounds."""

TIME_CONSTANT = 0.02
"""MuJoCo's default time constant of a constraint [s], the scale of one that starts at zero."""
IMPEDANCE_BOUNDS = ((1e-4, 0.9999), (1e-4, 0.9999), (1e-5, 0.1), (0.01, 0.99), (1.0, 6.0))
"""Default bounds of the five numbers of `solimp`."""

Value = Float[NumPyArray, "..."]


@dataclasses.dataclass(frozen=True)
class Default:
    """Transform and bounds of a parameter."""

    transform: AbstractTransform
    low: Value
    high: Value


def default(field: str, start: Value, element: int | None = None) -> Default:
    """Default transform and bounds of a field, or of one element of it, for a start value in SI units."""
    start = np.asarray(start, float)
    if element is not None and field in ELEMENT_DEFAULTS:
        return ELEMENT_DEFAULTS[field](element)(start)
    return FIELD_DEFAULTS.get(field, _linear(1.0))(start)


DefaultRule = Callable[[Value], Default]


def _linear(scale: float, reach: float = 100.0) -> DefaultRule:
    """Any number; `scale` [SI units] is a large change of a value that starts at zero."""

    def rule(start: Value) -> Default:
        size = max(float(np.max(np.abs(start), initial=0.0)), scale)
        return Default(Linear(size, start.shape), start - reach * size, start + reach * size)

    return rule


def _not_negative(scale: float, highest: float | None = None) -> DefaultRule:
    """A number that may be zero but not negative."""

    def rule(start: Value) -> Default:
        size = np.where(start > 0, start, scale)
        top = np.maximum(start, scale) * BOUND_RATIO if highest is None else np.maximum(highest, start)
        each = size if start.shape else float(size)
        return Default(Linear(each, start.shape), np.zeros_like(start), top * np.ones_like(start))

    return rule


def _positive(fallback: float) -> DefaultRule:
    """A positive number on a logarithmic scale; not negative on a linear one if it starts at zero."""

    def rule(start: Value) -> Default:
        if start.shape or not start > 0:
            return _not_negative(fallback)(start)
        return Default(Positive(float(start)), start / BOUND_RATIO, start * BOUND_RATIO)

    return rule


def _between(low: float, high: float) -> DefaultRule:
    """A number between two others, or between them and its start."""

    def rule(start: Value) -> Default:
        size = max(1.0, float(np.max(np.abs(start), initial=0.0)))
        return Default(Linear(size, start.shape), np.minimum(low, start), np.maximum(high, start))

    return rule


def _gain(start: Value) -> Default:
    """A gain keeps its sign."""
    if start > 0:
        return _positive(1.0)(start)
    return _linear(1.0)(start)


def _reference(start: Value) -> Default:
    """Numbers of `solref`, which keep their sign: time constant and damping ratio, or minus stiffness and damping."""
    if not start.shape and start > 0:
        return _positive(TIME_CONSTANT)(start)
    size = np.where(start == 0, TIME_CONSTANT, np.abs(start))
    ends = [np.where(start == 0, 0.0, start / BOUND_RATIO), np.where(start == 0, size, start) * BOUND_RATIO]
    return Default(Linear(size if start.shape else float(size), start.shape), np.minimum(*ends), np.maximum(*ends))


def _impedance(start: Value) -> Default:
    """All five numbers of `solimp`: impedances at zero and full width, width [m], midpoint and power."""
    low, high = (np.array(bound) for bound in zip(*IMPEDANCE_BOUNDS, strict=True))
    scale = np.maximum(np.abs(start), [0.1, 0.1, 0.001, 0.1, 1.0])
    return Default(Linear(scale, start.shape), np.minimum(low, start), np.maximum(high, start))


def _play(start: Value) -> Default:
    """Both ends of the slack of a spring, which stay on their sides of its middle."""
    usual = _linear(0.02)(start)
    if not start.shape:
        return usual
    middle = np.full(2, float(np.mean(start)))
    ends = np.array([True, False])
    return Default(usual.transform, np.where(ends, usual.low, middle), np.where(ends, middle, usual.high))


def _unbounded(transform: AbstractTransform, start: Value) -> Default:
    return Default(transform, np.full_like(start, -np.inf), np.full_like(start, np.inf))


FIELD_DEFAULTS: dict[str, DefaultRule] = {
    "mass": _positive(0.1),
    "com": _linear(0.05, reach=10.0),
    "inertia": lambda start: _unbounded(PhysicalInertia.at(start), start),
    "position": _linear(0.05, reach=10.0),
    "orientation": lambda start: _unbounded(Orientation(start), start),
    "axis": lambda start: _unbounded(Direction(start), start),
    "gravity": lambda start: _unbounded(Direction(start), start),
    "damping": _not_negative(0.1),
    "frictionloss": _not_negative(0.1),
    "stiction": _not_negative(0.1),
    "stribeck_velocity": _positive(0.1),
    "load_friction": _not_negative(0.05, 1.0),
    "armature": _not_negative(0.01),
    "stiffness": _not_negative(1.0),
    "springref": _linear(0.1),
    "spring_length": _play,
    "ref": _linear(0.1),
    "gain": _gain,
    "offset": _linear(0.1),
    "delay": _not_negative(0.01, MAX_DELAY),
    "bias": _linear(0.1),
    "scale": _positive(1.0),
    "time_scale": _positive(1.0),
    **dict.fromkeys(
        ("kp", "error_gain", "volts", "resistance", "torque_constant", "strength", "max_duty"), _positive(1.0)
    ),
    "kd": _not_negative(0.1),
    "kv": _positive(0.1),
    "viscous": _not_negative(0.01),
    "friction": _positive(0.5),
    "restitution": _between(0.0, 1.0),
    "contact_stiffness": _positive(1e4),
    "contact_damping": _positive(1e4),
    "contact_exponent": _between(1.0, 3.0),
    "transition_speed": _positive(0.01),
    "breakaway": _between(1.0, 5.0),
    **dict.fromkeys(("solref", "solreflimit", "solreffriction"), _reference),
    **dict.fromkeys(("solimp", "solimplimit", "solimpfriction"), _impedance),
    **dict.fromkeys(("margin", "gap"), _linear(0.01)),
}
"""Rule of each field; a field without a rule is linear with a scale of 1."""

ELEMENT_DEFAULTS: dict[str, Callable[[int], DefaultRule]] = {
    "inertia": lambda k: _not_negative(0.1) if k < 3 else _linear(0.01),
    **dict.fromkeys(("axis", "orientation"), lambda _: _linear(0.1)),
    "gravity": lambda _: _linear(1.0),
    **dict.fromkeys(
        ("solimp", "solimplimit", "solimpfriction"),
        lambda k: _positive(0.001) if k == 2 else _between(*IMPEDANCE_BOUNDS[k]),
    ),
}
"""Rule of one element of a vector that is otherwise one parameter."""
