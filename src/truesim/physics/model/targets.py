"""Targets: paths with an element and a sign, and patterns that stand for several of them."""

import fnmatch
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array
from truesim.physics.model import paths
from truesim.physics.model.model import COMPLIANT_DEFAULTS, Model
from truesim.physics.model.path_words import meant_path
from truesim.physics.model.servos import GAINS

ELEMENT = re.compile(r"^(?P<path>.*)\[(?P<element>\d+)\]$")
NOT_IN_WILDCARDS = frozenset(
    {"range", "margin", "gap", "size", "gear", "control_range", "force_range", "friction", "gain_slope", "ref"}
    | {"solref", "solimp", "solreffriction", "solimpfriction", "solreflimit", "solimplimit"}
    | {"restitution", "solmix", "gravcomp", "torque_scale", "coefficients", "spring_length", *COMPLIANT_DEFAULTS}
)
"""Fields that a `*` in the place of a field does not stand for; a pattern must name them."""


class Target(NamedTuple):
    """One value, or one element of it, in a model: `joints/elbow.damping`, `bodies/link2.com[2]`."""

    path: paths.Path
    element: int | None = None
    sign: int = 1
    """-1 where the model holds the negative of the value."""

    def __str__(self) -> str:
        return f"{'-' * (self.sign < 0)}{self.path}" + ("" if self.element is None else f"[{self.element}]")


def target(model: Model, text: str) -> Target:
    """Target named by a text: a path, with `[k]` for one element, with `-` in front for its negative."""
    sign = -1 if text.startswith("-") else 1
    path, element = split_element(text.removeprefix("-"))
    parsed = paths.parse(model, path)
    check_element(path, np.shape(paths.read(model, parsed)), element)
    return Target(parsed, element, sign)


def read(model: Model, target: Target) -> Array:
    """Value at a target, in SI units."""
    value = paths.read(model, target.path)
    return target.sign * (value if target.element is None else value[target.element])


def write(model: Model, target: Target, value: Any) -> Model:
    """The model with another value at a target."""
    value = target.sign * value
    if target.element is not None:
        value = with_element(paths.read(model, target.path), target.element, value)
    return paths.write(model, target.path, value)


def with_element(vector: Any, element: int, value: Any) -> Array:
    """The vector with another value of one element: a NumPy array, unless one of them is an array of JAX."""
    if isinstance(vector, jax.Array) or isinstance(value, jax.Array):
        return jnp.asarray(vector).at[element].set(value)
    new = np.array(vector)
    new[element] = value
    return new


def expand(model: Model, pattern: str) -> list[Target]:
    """All targets that a pattern stands for; an error with the nearest match if there is none."""
    sign, pattern = pattern[: pattern.startswith("-")], pattern.removeprefix("-")
    text, element = split_element(pattern)
    if not is_pattern(text):
        return [target(model, sign + pattern)]
    field, suffix = text.rpartition(".")[2], "" if element is None else f"[{element}]"
    gains = paths.servo_gains(model) if field in GAINS else ()  # a `*` in the place of the field frees gain and bias
    found = [
        str(p)
        for p in (*paths.paths(model), *gains)
        if fnmatch.fnmatchcase(str(p), text) and (p.field not in NOT_IN_WILDCARDS or p.field == field)
    ]
    if not found:
        every = (*paths.paths(model), *paths.servo_gains(model))
        meant = meant_path(pattern, [str(p) for p in every])
        kinds = {f"{p.group}/*.{p.field}" for p in every if p.group}
        group = (meant or pattern).partition("/")[0]
        raise unknown_name("parameter", pattern, [k for k in kinds if k.startswith(f"{group}/")] or kinds, meant)
    return [target(model, sign + name + suffix) for name in found]


def is_pattern(text: str) -> bool:
    """True if a text contains a wildcard."""
    return bool(set(text) & set("*?"))


def matches_pattern(name: str, pattern: str) -> bool:
    """True if a name equals a pattern or is one of those it stands for."""
    return name == pattern or fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def split_element(text: str) -> tuple[str, int | None]:
    """Path and element of a text such as `bodies/hand.com[2]`."""
    match = ELEMENT.match(text)
    return (match["path"], int(match["element"])) if match else (text, None)


def check_element(path: str, shape: tuple[int, ...], element: int | None) -> None:
    """Refuse an element that a value of this shape does not have."""
    if element is not None and (len(shape) != 1 or element >= shape[0]):
        size = f"{shape[0]} elements, [0] to [{shape[0] - 1}]" if shape else "a single number"
        raise TruesimError(f"{path} is {size}; there is no {path}[{element}].")
