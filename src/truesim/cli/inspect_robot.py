"""Tables of a robot: bodies, joints, actuators, sensors, parameters, and findings about its file."""

import fnmatch
import json
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.console import print_aligned, results, titled_table
from truesim.core.errors import TruesimError
from truesim.physics.model import paths, servos
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding

MAX_LISTED_PARAMETERS = 100
"""Parameters that are listed without --all."""
SEVERITIES = {"not simulated": "Not simulated", "warning": "Warnings", "note": "Notes"}
"""Headings of the findings, by severity."""


def print_robot(model: Model, only: str | None, as_json: bool, show_all: bool = False) -> None:
    """Print a robot, or only its parameters that match a pattern.

    Args:
        model: The robot.
        only: Pattern of paths, if any.
        as_json: Whether to print JSON instead of tables.
        show_all: Whether to list all parameters.
    """
    shown = [path for path in paths.paths(model) if only is None or fnmatch.fnmatchcase(path.text, only)]
    if only is not None and not shown:
        raise TruesimError(f"No parameter matches the pattern {only!r}; without --only, inspect lists all.")
    if as_json:
        print(json.dumps(_as_json(model, shown), indent=1))
        return
    console = results(200)
    if only is None:
        for table in (_bodies(model), _joints(model), _actuators(model), _sensors(model)):
            if table.row_count:
                console.print(table, "")
    if only is not None or show_all or len(shown) <= MAX_LISTED_PARAMETERS:
        _print_parameters(console, model, shown)
    else:
        console.print(f"[bold]{len(shown)} parameters[/]: --all lists them, --only 'joints/*' some.")
    if only is None:
        _print_findings(console, model.findings)


def _bodies(model: Model) -> Table:
    bodies = model.bodies
    table = titled_table(
        f"{escape(model.name or 'robot')}: {len(bodies.names)} bodies",
        "body",
        "parent",
        "mass [kg]",
        "center of mass [m]",
    )
    for name, parent, mass, com in zip(bodies.names, bodies.parents, bodies.mass, bodies.com, strict=True):
        table.add_row(
            escape(name), escape(bodies.names[parent]) if parent >= 0 else "world", _number(mass), _number(com)
        )
    return table


def _joints(model: Model) -> Table:
    joints = model.joints
    table = titled_table(
        f"{len(joints.names)} joints, {model.nv} degrees of freedom",
        "joint",
        "kind",
        "moves",
        "range",
        "damping",
        "friction loss",
        "armature",
    )
    for i, name in enumerate(joints.names):
        span = _number(joints.range[i]) if joints.limited[i] else "free"
        values = (_number(x[i]) for x in (joints.damping, joints.frictionloss, joints.armature))
        table.add_row(escape(name), joints.kinds[i].name, escape(model.bodies.names[joints.bodies[i]]), span, *values)
    return table


def _actuators(model: Model) -> Table:
    actuators = model.actuators
    table = titled_table(f"{model.nu} actuators", "actuator", "acts on", "what", "gear", "control range")
    for i, name in enumerate(actuators.names):
        span = _number(actuators.control_range[i]) if actuators.control_limited[i] else "unlimited"
        joint = escape(model.driven(i))
        gear = _number(np.trim_zeros(np.asarray(actuators.gear[i]), "b"))
        table.add_row(escape(name), joint, _describe_actuator(model, i), gear, span)
    return table


def _describe_actuator(model: Model, i: int) -> str:
    """Kind of an actuator with its gains and its bound of force."""
    actuators = model.actuators
    if actuators.models[i] != AFFINE:
        return actuators.models[i]
    gains = servos.gains(actuators, i)
    kind = "position servo" if "kp" in gains else "velocity servo" if gains else "motor"
    parts = [kind, *(f"{name} {float(servos.read(actuators, name, i)):.4g}" for name in gains)]
    if actuators.force_limited[i]:
        unit = paths.unit(model, paths.Path("", "force_range", "actuators", i))
        parts.append(f"limit {np.max(np.abs(actuators.force_range[i])):.4g} {unit}")
    return ", ".join(parts)


def _sensors(model: Model) -> Table:
    table = titled_table(f"{len(model.sensors.declared)} sensors", "sensor", "measures", "of")
    groups: dict[str, tuple[str, ...]] = {
        "joint": model.joints.names,
        "actuator": model.actuators.names,
        "site": model.sites.names,
        "geom": model.geoms.names,
    }
    for sensor in model.sensors.declared:
        names = groups.get(sensor.object_kind, model.bodies.names)
        table.add_row(
            escape(sensor.name),
            sensor.kind,
            f"{sensor.object_kind} {escape(names[sensor.object])}" if sensor.object >= 0 else "world",
        )
    return table


def _print_parameters(console: Console, model: Model, shown: list[paths.Path]) -> None:
    """Print paths, values and units; robots have hundreds, for which a rich table is slow."""
    rows = [(path.text, _number(paths.read(model, path)), paths.unit(model, path)) for path in shown]
    console.print(f"[bold]{len(shown)} parameters[/]")
    print_aligned(console, ("path", "value", "unit"), rows)


def _print_findings(console: Console, findings: tuple[Finding, ...]) -> None:
    for severity, heading in SEVERITIES.items():
        chosen = [finding for finding in findings if finding.severity == severity]
        if chosen or severity == "not simulated":
            console.print(f"\n[bold]{heading}[/]" if chosen else "\nEverything in this file is simulated.")
        for finding in chosen:
            console.print(f"  • {escape(str(finding))}", highlight=False)


def _number(value: Any) -> str:
    """A number or a short vector, six digits."""
    return " ".join(f"{x:.6g}" for x in np.ravel(value))


def _as_json(model: Model, shown: list[paths.Path]) -> dict[str, Any]:
    return {
        "name": model.name,
        "bodies": list(model.bodies.names),
        "joints": [{"name": n, "kind": k.name} for n, k in zip(model.joints.names, model.joints.kinds, strict=True)],
        "actuators": list(model.actuators.names),
        "sensors": [{"name": sensor.name, "kind": sensor.kind} for sensor in model.sensors.declared],
        "parameters": [
            {
                "path": path.text,
                "value": np.asarray(paths.read(model, path)).tolist(),
                "unit": paths.unit(model, path),
            }
            for path in shown
        ],
        "findings": [{"severity": f.severity, "subject": f.subject, "message": f.message} for f in model.findings],
    }
