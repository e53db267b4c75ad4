"""`truesim inspect`: what a robot file holds, what each number is called, what is not simulated; what logs hold."""

import fnmatch
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.arguments import FloatingBase, Mapping, Robot
from truesim.cli.inspect_logs import inspect_logs
from truesim.cli.inspect_ports import inspect_ports
from truesim.core.errors import TruesimError
from truesim.data import read_log
from truesim.formats import load
from truesim.model import paths
from truesim.model.model import Model
from truesim.model.source import Finding

HEADINGS = {"not simulated": "Not simulated", "warning": "Warnings", "note": "Notes"}


def inspect(
    robot: Robot,
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Logs of the robot: CSV, Parquet, NPZ, MCAP or ROS bag.", metavar="LOG", show_default=False
        ),
    ] = None,
    mapping: Mapping = None,
    floating_base: FloatingBase = False,
    only: Annotated[
        str | None, typer.Option(help="Show only parameters whose path fits this pattern, such as 'joints/*.damping'.")
    ] = None,
    show_ports: Annotated[
        bool, typer.Option("--ports", help="Show where networks can take part in the physics instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what ROBOT holds: bodies, joints, actuators, sensors, every parameter by name, and what is not simulated.

    With logs, show what they hold instead: columns that match, sampling, gaps, oddities, and which parameters show.
    """
    model = load(robot, floating_base=floating_base)
    if show_ports:
        inspect_ports(model, as_json)
        return
    if logs:
        inspect_logs(model, [read_log(path, mapping=mapping) for path in logs], as_json)
        return
    shown = [path for path in paths.paths(model) if only is None or fnmatch.fnmatchcase(path.text, only)]
    if only is not None and not shown:
        raise TruesimError(f"No parameter fits the pattern {only!r}; without --only, inspect lists them all.")
    if as_json:
        print(json.dumps(_as_json(model, shown), indent=1))
        return
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 200)
    if only is None:
        for table in (_bodies(model), _joints(model), _actuators(model), _sensors(model)):
            if table.row_count:
                console.print(table, "")
    console.print(_parameters(model, shown))
    if only is None:
        _print_findings(console, model.findings)


def _bodies(model: Model) -> Table:
    bodies = model.bodies
    table = _table(
        f"{escape(model.name or 'robot')}: {len(bodies.names)} bodies",
        "body",
        "parent",
        "mass [kg]",
        "centre of mass [m]",
    )
    for name, parent, mass, com in zip(bodies.names, bodies.parents, bodies.mass, bodies.com, strict=True):
        table.add_row(
            escape(name), escape(bodies.names[parent]) if parent >= 0 else "world", _number(mass), _number(com)
        )
    return table


def _joints(model: Model) -> Table:
    joints = model.joints
    table = _table(
        f"{len(joints.names)} joints, {model.nv} degrees of freedom",
        "joint",
        "kind",
        "moves",
        "range",
        "damping",
        "dry friction",
        "armature",
    )
    for i, name in enumerate(joints.names):
        span = _number(joints.range[i]) if joints.limited[i] else "free"
        values = (_number(x[i]) for x in (joints.damping, joints.frictionloss, joints.armature))
        table.add_row(escape(name), joints.kinds[i].name, escape(model.bodies.names[joints.bodies[i]]), span, *values)
    return table


def _actuators(model: Model) -> Table:
    actuators = model.actuators
    table = _table(f"{model.nu} actuators", "actuator", "joint", "law", "gear", "control range")
    for i, name in enumerate(actuators.names):
        span = _number(actuators.control_range[i]) if actuators.control_limited[i] else "unlimited"
        joint = escape(model.joints.names[actuators.joints[i]])
        table.add_row(
            escape(name),
            joint,
            actuators.laws[i],
            _number(actuators.gear[i]),
            span,
        )
    return table


def _sensors(model: Model) -> Table:
    table = _table(f"{len(model.sensors.declared)} sensors", "sensor", "reads", "of")
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


def _parameters(model: Model, shown: list[paths.Path]) -> Table:
    table = _table(f"{len(shown)} parameters", "path", "value", "unit")
    for path in shown:
        table.add_row(escape(path.text), _number(paths.read(model, path)), escape(paths.unit(model, path)))
    return table


def _print_findings(console: Console, findings: tuple[Finding, ...]) -> None:
    for severity, heading in HEADINGS.items():
        chosen = [finding for finding in findings if finding.severity == severity]
        if chosen or severity == "not simulated":
            console.print(f"\n[bold]{heading}[/]" if chosen else "\nEverything in this file is simulated.")
        for finding in chosen:
            console.print(f"  • {escape(str(finding))}", highlight=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        table.add_column(escape(column), overflow="fold", no_wrap=column in ("path", "value"))
    return table


def _number(value: Any) -> str:
    """A number or a short vector, six digits."""
    return " ".join(f"{x:.6g}" for x in np.atleast_1d(value))


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
