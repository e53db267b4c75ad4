"""Sidecar file `<robot file>.truesim.json`, for numbers that the robot file cannot hold."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_actuator_model
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings, with_coupling

SIDECAR_SUFFIX = ".truesim.json"
"""Ending of the sidecar's file name, after that of the robot file."""
SIDECAR_VERSION = 1
"""Version of the file format."""
ACTUATOR_PREFIX, MODEL_SUFFIX = "actuators/", ".law"
"""Key of an actuator model in the file: `actuators/<name>.law`."""
TENDON_PREFIX, JOINTS_SUFFIX = "tendons/", ".joints"
"""Key of a motor that turns with several joints, `tendons/<name>.joints`: the coefficient of each joint by name."""


def sidecar_path(robot: Path) -> Path:
    """Path of the sidecar of a robot file."""
    return robot.with_name(robot.name + SIDECAR_SUFFIX)


def apply(model: Model, robot: Path) -> Model:
    """Model with the values of the robot file's sidecar, if there is one."""
    path = sidecar_path(robot)
    if not path.exists():
        return model
    parameters = _read(path).get("parameters", {})
    held = () if model.source is None else model.source.held
    absent = tuple(f"{group}/{joint}." for joint in held for group in ("joints", "actuators"))
    parameters = {name: value for name, value in parameters.items() if not name.startswith(absent)}
    for name in sorted(parameters, key=lambda name: not name.endswith((MODEL_SUFFIX, JOINTS_SUFFIX))):
        try:
            model = _with_value(model, name, parameters[name])
        except TruesimError as problem:
            raise FileError(f"{path.name}: {problem}") from None
    return model


def _with_value(model: Model, name: str, value: Any) -> Model:
    if name.startswith(ACTUATOR_PREFIX) and name.endswith(MODEL_SUFFIX):
        return with_actuator_model(model, name.removeprefix(ACTUATOR_PREFIX).removesuffix(MODEL_SUFFIX), str(value))
    if name.startswith(TENDON_PREFIX) and name.endswith(JOINTS_SUFFIX):
        if not isinstance(value, dict) or not _is_numbers(list(value.values())):
            raise FileError(f"the value of {name!r} must be an object with a number for each joint, not {value!r}.")
        return with_coupling(model, name.removeprefix(TENDON_PREFIX).removesuffix(JOINTS_SUFFIX), value)
    if not _is_numbers(value):
        raise FileError(f"the value of {name!r} must be a number or a list of numbers, not {value!r}.")
    return paths.write(model, name, np.asarray(value, dtype=float))


def actuator_models(model: Model) -> dict[str, str]:
    """Actuator models other than the affine one, by key."""
    pairs = zip(model.actuators.names, model.actuators.models, strict=True)
    return {f"{ACTUATOR_PREFIX}{name}{MODEL_SUFFIX}": kind for name, kind in pairs if kind != AFFINE}


def coupled_motors(model: Model) -> dict[str, dict[str, float]]:
    """Joints of the motors that turn with several joints, by key."""
    return {f"{TENDON_PREFIX}{name}{JOINTS_SUFFIX}": joints for name, joints in couplings(model).items()}


def write(robot: Path, parameters: Mapping[str, Any]) -> None:
    """Write these values to the sidecar in place of the old ones; an empty sidecar is deleted."""
    path = sidecar_path(robot)
    content = _read(path) if path.exists() else {}
    content.pop("parameters", None)
    if parameters:
        content["parameters"] = dict(parameters)
    if set(content) - {"version"}:
        path.write_text(json.dumps({"version": SIDECAR_VERSION, **content}, indent=2) + "\n", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as problem:
        raise FileError(f"{path.name} cannot be read as JSON ({problem}); repair or delete it.") from None
    if not isinstance(content, dict) or not isinstance(content.get("parameters", {}), dict):
        raise FileError(f'{path.name} must hold an object such as {{"version": 1, "parameters": {{}}}}.')
    if content.get("version") != SIDECAR_VERSION:
        raise FileError(
            f"{path.name} has version {content.get('version')!r}; this release reads version {SIDECAR_VERSION}."
        )
    return content


def _is_numbers(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    return all(type(entry) in (int, float) and np.isfinite(entry) for entry in entries)
