"""`truesim suggest`: where a network would explain what the physics does not."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.arguments import Barrier, Contact, FloatingBase, Logs, Mapping, PerLogFile, Robot
from truesim.cli.evaluate import known_of
from truesim.cli.readable import readable
from truesim.contact.choose import NONE
from truesim.core.errors import FileError, TruesimError
from truesim.formats import load
from truesim.identify.build import Options, build
from truesim.identify.folder import networks_in, read_fit, robot_file
from truesim.identify.per_log import read_per_log
from truesim.identify.suggest import Suggestions
from truesim.identify.suggest import suggest as look
from truesim.identify.suggest.folder import document, write_suggestions
from truesim.report.suggest_page import write_suggest_page

SHOWN = 10
"""Ports in the table."""


def suggest(
    robot: Robot,
    logs: Logs,
    fit: Annotated[
        Path | None,
        typer.Option(help="Folder of a fit: its numbers, and what was free.", metavar="DIR", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for blueprints and picture.", metavar="DIR", show_default=False)
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Channels to compare; all that make sense.", metavar="PATTERN…")
    ] = None,
    contact: Contact = None,
    barrier: Barrier = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    floating_base: FloatingBase = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show, port by port, how much of the remaining error a network would explain, and from which inputs.

    With --out, writes blueprints for `truesim identify --blueprint`, suggest.json and suggest.html.
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())) and not force:
        raise TruesimError(f"{out} is not empty; give another folder, or --force to write into it.")
    request: dict[str, Any] = {} if fit is None else read_fit(fit)["provenance"]["request"]
    said = request.get("options", {})
    floats = floating_base or bool(said.get("floating_base"))
    model = load(robot if fit is None else _fitted(fit, robot), floating_base=floats)
    table = read_per_log(per_log) if per_log is not None else known_of(said.get("per_log", {}), logs)
    options = Options(
        ties=[tie.split(",") for tie in said.get("tie", [])],
        per_log=table,
        channels=channel or said.get("channel", ()),
        contact=contact or said.get("contact", NONE),
        blueprint=None if fit is None else networks_in(fit),
        barrier=barrier if barrier is not None else said.get("barrier"),
    )
    problem = build(model, readable(model, logs, mapping or said.get("mapping")), request.get("free", ()), options)
    console = Console(stderr=True, highlight=False)
    found = look(problem, watch=lambda text: console.print(text))
    blueprints = [] if out is None else write_suggestions(found, out)
    if as_json:
        print(json.dumps(document(found), indent=1))
    else:
        _print(found, blueprints, None if out is None else write_suggest_page(out))


def _fitted(fit: Path, robot: Path) -> Path:
    """The robot file of a fit, which must be of this robot."""
    fitted = robot_file(fit)
    if fitted.name != robot.name:
        raise FileError(f"The fit in {fit} is of {fitted.name}, not of {robot.name}.")
    return fitted


def _print(found: Suggestions, blueprints: list[Path], page: Path | None) -> None:
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)
    title = f"Residuals are {found.remaining:.3g} times the noise in windows of {found.window:.2g} s"
    headings = "port", "acts on", "what", "inputs", "could explain", "explains, held out"
    table = Table(*headings, box=None, title=title, title_justify="left")
    for s in found.found[:SHOWN]:
        could = "" if s.reach is None else f"{100 * s.reach:.0f} %"
        explains = f"{100 * s.explained:.1f} ± {100 * s.error:.1f} %"
        table.add_row(s.port, escape(", ".join(s.names)), s.kind, ", ".join(s.inputs), could, explains)
    console.print(table)
    console.print(f"[bold]{escape(found.sentence)}[/]")
    for path in blueprints:
        console.print(f"Blueprint: {escape(str(path))}")
    if page is not None:
        console.print(f"Open {escape(str(page))} in a browser.")
