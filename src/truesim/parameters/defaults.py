"""Sensible bounds, scales and transforms for every kind of parameter."""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core.typing import Float
from truesim.parameters.transforms import (
    AbstractTransform,
    Direction,
    Linear,
    Orientation,
    PhysicalInertia,
    Positive,
)

MAX_DELAY = 0.05
"""Longest delay that is searched unless bounds say otherwise [s]."""
RATIO = 50.0
"""How far positive quantities may move from their start, as a factor, unless bounds say otherwise."""

Value = Float[np.ndarray, "..."]


@dataclasses.dataclass(frozen=True)
class Default:
    """How a parameter is searched."""

    transform: AbstractTransform
    low: Value
    high: Value


def default(field: str, start: Value, element: int | None = None) -> Default:
    """How the parameter `field`, or one element of it, is searched from its start value, in SI units."""
    start = np.asarray(start, float)
    if element is not None and field in ELEMENTS:
        return ELEMENTS[field](element)(start)
    return RULES.get(field, _linear(1.0))(start)


Rule = Callable[[Value], Default]


def _linear(scale: float, reach: float = 100.0) -> Rule:
    """Any number; `scale` [SI units] is what counts as a large change of a value that starts at zero."""

    def rule(start: Value) -> Default:
        size = max(float(np.max(np.abs(start), initial=0.0)), scale)
        return Default(Linear(size, start.shape), start - reach * size, start + reach * size)

    return rule


def _not_negative(scale: float, highest: float | None = None) -> Rule:
    """A number that may be zero but not negative."""

    def rule(start: Value) -> Default:
        size = np.where(start > 0, start, scale)
        top = np.maximum(start, scale) * RATIO if highest is None else np.maximum(highest, start)
        each = size if start.shape else float(size)
        return Default(Linear(each, start.shape), np.zeros_like(start), top * np.ones_like(start))

    return rule


def _positive(fallback: float) -> Rule:
    """A positive number on a logarithmic scale; not negative on a linear one if it starts at zero."""

    def rule(start: Value) -> Default:
        if start.shape or not start > 0:
            return _not_negative(fallback)(start)
        return Default(Positive(float(start)), start / RATIO, start * RATIO)

    return rule


def _between(low: float, high: float) -> Rule:
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


def _unbounded(transform: AbstractTransform, start: Value) -> Default:
    return Default(transform, np.full_like(start, -np.inf), np.full_like(start, np.inf))


RULES: dict[str, Rule] = {
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
    "armature": _not_negative(0.01),
    "stiffness": _not_negative(1.0),
    "springref": _linear(0.1),
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
    "viscous": _not_negative(0.01),
    "friction": _positive(0.5),
    "restitution": _between(0.0, 1.0),
    "contact_stiffness": _positive(1e4),
    "contact_damping": _positive(1e4),
    "contact_exponent": _between(1.0, 3.0),
    "transition_speed": _positive(0.01),
    "breakaway": _between(1.0, 5.0),
}
"""Rule of each field; a field without one is linear with a scale of 1."""

ELEMENTS: dict[str, Callable[[int], Rule]] = {
    "inertia": lambda k: _not_negative(0.1) if k < 3 else _linear(0.01),
    **dict.fromkeys(("axis", "orientation"), lambda _: _linear(0.1)),
    "gravity": lambda _: _linear(1.0),
}
"""Rule of one element of a vector that is otherwise searched as a whole."""
