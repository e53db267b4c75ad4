"""Tasks as TOML files."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.control.quantities import (
    AbstractQuantity,
    Command,
    ContactDistance,
    FramePose,
    FramePosition,
    FrameVelocity,
    JointVelocity,
    Posture,
)
from truesim.control.task import Cost, Limit, Task, file_bounds
from truesim.core.errors import FileError, TruesimError, unknown_name
from truesim.physics.contact.base import AbstractContact
from truesim.physics.dynamics import reference_configuration
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator

QUANTITIES: dict[str, tuple[type[AbstractQuantity], tuple[str, ...]]] = {
    "posture": (Posture, ("target", "joints")),
    "joint_velocity": (JointVelocity, ("target", "joints")),
    "command": (Command, ("target",)),
    "frame_position": (FramePosition, ("frame", "target")),
    "frame_pose": (FramePose, ("frame", "position", "orientation")),
    "frame_velocity": (FrameVelocity, ("frame", "target")),
    "contact_distance": (ContactDistance, ()),
}
"""Quantities by their names in a file, with their keys."""
WORDS = ("quantity", "when", "frame", "joints")
"""Keys of a cost or limit whose values are not numbers."""
SECTIONS = ("steps", "timestep", "start", "bounds", "costs", "limits", "design")


def read_task(path: str | Path, model: Model, *, contact: AbstractContact | None = None) -> Task:
    """Task of a TOML file for a robot.

    Args:
        path: The file.
        model: The robot.
        contact: Contact model; none by default.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"The task {path} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"The task {path} is not valid TOML: {error}.") from error
    try:
        return _task(content, model, contact)
    except TruesimError as error:
        raise FileError(f"{path}: {error}") from error


def _task(content: Mapping[str, Any], model: Model, contact: AbstractContact | None) -> Task:
    _check_keys("task", content, SECTIONS)
    if "steps" not in content:
        raise TruesimError("The task has no steps: give their number, such as steps = 100.")
    _check_content(content)
    simulator = Simulator.of(model, timestep=content.get("timestep"), contact=contact)
    start = content.get("start", {})
    _check_keys("start", start, ("q", "v"))
    q = _by_joint(model, start.get("q"), np.asarray(reference_configuration(model), float))
    v = _by_joint(model, start.get("v"), np.zeros(model.nv))
    return Task(
        simulator,
        content["steps"],
        {name: _cost(name, table, model) for name, table in content.get("costs", {}).items()},
        {name: _limit(name, table, model) for name, table in content.get("limits", {}).items()},
        start=simulator.initial_state(q=q, v=v),
        bounds=_bounds(model, content.get("bounds", {})),
        design={path: (float(low), float(high)) for path, (low, high) in content.get("design", {}).items()},
    )


def _check_content(content: Mapping[str, Any]) -> None:
    """Raise an error where something else stands in place of numbers."""
    if type(content["steps"]) is not int:
        raise TruesimError(f"steps is {content['steps']!r}; it must be a whole number.")
    for section in SECTIONS[2:]:
        if not isinstance(content.get(section, {}), Mapping):
            raise TruesimError(f"{section} is {content[section]!r}; it must be a table, [{section}].")
    _check_numbers("timestep", content.get("timestep", 1.0))
    for section in ("start", "bounds", "design"):
        for name, value in content.get(section, {}).items():
            _check_numbers(f"{section}.{name}", value)
            if section != "start" and np.shape(value) != (2,):
                raise TruesimError(f"{section}.{name} is {value!r}; it must be a pair [low, high].")
    for section in ("costs", "limits"):
        for name, table in content.get(section, {}).items():
            if not isinstance(table, Mapping):
                raise TruesimError(f"{section}.{name} is {table!r}; it must be a table, [{section}.{name}].")
            for key in table.keys() - set(WORDS):
                _check_numbers(f"{section}.{name}.{key}", table[key])


def _check_numbers(place: str, value: Any) -> None:
    """Raise an error unless a value is a number, or a list or table of numbers."""
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _check_numbers(place, item)
    if not isinstance(value, Mapping | list | int | float) or isinstance(value, bool):
        raise TruesimError(f"{place} holds {value!r}; it must be a number, or a list or table of numbers.")


def _cost(name: str, table: Mapping[str, Any], model: Model) -> Cost:
    rest = {key: table[key] for key in ("weight", "when") if key in table}
    return Cost(_quantity(name, table, model, ("weight", "when")), **rest)


def _limit(name: str, table: Mapping[str, Any], model: Model) -> Limit:
    rest = {key: table[key] for key in ("low", "high", "when") if key in table}
    return Limit(_quantity(name, table, model, ("low", "high", "when")), **rest)


def _quantity(name: str, table: Mapping[str, Any], model: Model, others: tuple[str, ...]) -> AbstractQuantity:
    """Quantity of a table; the target of a posture is the reference configuration unless it is given."""
    kind = table.get("quantity")
    if kind not in QUANTITIES:
        raise unknown_name(f"quantity of {name}", str(kind), QUANTITIES)
    quantity, keys = QUANTITIES[kind]
    _check_keys(name, table, ("quantity", *keys, *others))
    given = {key: table[key] for key in keys if key in table}
    if "joints" in given:
        given["joints"] = tuple(given["joints"])
    if quantity is Posture:
        given["target"] = _by_joint(model, given.get("target"), np.asarray(reference_configuration(model), float))
    missing = [key for key in keys if key not in given and key in ("frame", "position", "orientation")]
    missing += [
        key for key in keys if key == "target" and key not in given and quantity in (FramePosition, FrameVelocity)
    ]
    if missing:
        raise TruesimError(f"{name} is a {kind} without {missing[0]}.")
    return quantity(**given)


def _by_joint(model: Model, given: Any, default: np.ndarray) -> np.ndarray:
    """Coordinates from a list, or from a table by joint name (hinges and slides) on top of the default."""
    if given is None:
        return default
    if not isinstance(given, Mapping):
        return np.asarray(given, float)
    values = default.copy()
    starts = {model.joints.names[link.joint]: link for link in model.topology.links if link.joint >= 0}
    for joint, value in given.items():
        if joint not in starts:
            raise unknown_name("joint", joint, starts)
        link = starts[joint]
        values[link.q if len(default) == model.nq else link.v] = value
    return values


def _bounds(model: Model, given: Mapping[str, Any]) -> np.ndarray | None:
    if not given:
        return None
    bounds = np.stack(file_bounds(model), axis=1)
    for name, pair in given.items():
        if name not in model.actuators.names:
            raise unknown_name("actuator", name, model.actuators.names)
        bounds[model.actuators.names.index(name)] = pair
    return bounds


def _check_keys(place: str, table: Mapping[str, Any], valid: tuple[str, ...]) -> None:
    for key in table:
        if key not in valid:
            match = difflib.get_close_matches(key, valid, n=1)
            guess = f", did you mean {match[0]!r}?" if match else "."
            raise TruesimError(f"{place} has no key {key!r}{guess} Valid: {', '.join(valid)}.")
