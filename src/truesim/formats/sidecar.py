"""The sidecar: `<robot file>.truesim.json`, for numbers that the robot file cannot hold."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.model import paths
from truesim.model.actuators import AFFINE
from truesim.model.laws import with_law
from truesim.model.model import Model

SUFFIX = ".truesim.json"
VERSION = 1
GROUP, LAW = "actuators/", ".law"
"""The law of an actuator stands under `actuators/<name>.law`."""


def sidecar_path(robot: Path) -> Path:
    """Where the sidecar of a robot file lives."""
    return robot.with_name(robot.name + SUFFIX)


def apply(model: Model, robot: Path) -> Model:
    """The model with the values of the robot file's sidecar, if there is one."""
    path = sidecar_path(robot)
    if not path.exists():
        return model
    parameters = _read(path).get("parameters", {})
    for name in sorted(parameters, key=lambda name: not name.endswith(LAW)):  # a law says which numbers there are
        try:
            model = _with_value(model, name, parameters[name])
        except TruesimError as problem:
            raise FileError(f"{path.name}: {problem}") from None
    return model


def _with_value(model: Model, name: str, value: Any) -> Model:
    if name.startswith(GROUP) and name.endswith(LAW):
        return with_law(model, name.removeprefix(GROUP).removesuffix(LAW), str(value))
    if not _is_numbers(value):
        raise FileError(f"the value of {name!r} must be a number or a list of numbers, not {value!r}.")
    return paths.write(model, name, np.asarray(value, dtype=float))


def laws(model: Model) -> dict[str, str]:
    """Laws of actuators that no robot file can hold, by path."""
    pairs = zip(model.actuators.names, model.actuators.laws, strict=True)
    return {f"{GROUP}{name}{LAW}": law for name, law in pairs if law != AFFINE}


def write(robot: Path, parameters: Mapping[str, Any]) -> None:
    """Keep these values in the sidecar; without any, take out what it has, and the file if nothing is left."""
    path = sidecar_path(robot)
    content = _read(path) if path.exists() else {}
    content.pop("parameters", None)
    if parameters:
        content["parameters"] = dict(parameters)
    if set(content) - {"version"}:
        path.write_text(json.dumps({"version": VERSION, **content}, indent=2) + "\n")
    else:
        path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as problem:
        raise FileError(f"{path.name} cannot be read as JSON ({problem}); mend or delete it.") from None
    if not isinstance(content, dict) or not isinstance(content.get("parameters", {}), dict):
        raise FileError(f'{path.name} must hold an object such as {{"version": 1, "parameters": {{}}}}.')
    if content.get("version") != VERSION:
        raise FileError(f"{path.name} has version {content.get('version')!r}; this release reads version {VERSION}.")
    return content


def _is_numbers(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    return all(type(entry) in (int, float) and np.isfinite(entry) for entry in entries)
