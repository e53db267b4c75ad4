"""`truesim evaluate`: how far a robot's simulation departs from logs."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.arguments import Barrier, Contact, FloatingBase, Logs, Mapping, PerLogFile
from truesim.cli.readable import readable
from truesim.contact.choose import NONE
from truesim.core.errors import TruesimError
from truesim.formats import load
from truesim.identify.build import Options
from truesim.identify.evaluate import Errors
from truesim.identify.evaluate import evaluate as open_loop
from truesim.identify.folder import networks_in, read_fit, robot_file
from truesim.identify.per_log import PerLog, read_per_log


def evaluate(
    fit_or_robot: Annotated[
        Path, typer.Argument(help="Folder of a fit, or a robot file.", metavar="FIT_OR_ROBOT", show_default=False)
    ],
    logs: Logs,
    window: Annotated[float, typer.Option(help="Length of the windows, in s.")] = 0.5,
    channel: Annotated[
        list[str] | None, typer.Option(help="Channels to compare; all that make sense.", metavar="PATTERN…")
    ] = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    contact: Contact = None,
    barrier: Barrier = None,
    floating_base: FloatingBase = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the open-loop error of every channel over windows that tile the logs.

    Every window starts from a state that is estimated from the samples just before it, without looking ahead.
    """
    if window <= 0:
        raise TruesimError(f"--window is {window:g} s; it must be positive.")
    folder = fit_or_robot.is_dir()
    options: dict[str, Any] = read_fit(fit_or_robot)["provenance"]["request"]["options"] if folder else {}
    model = load(robot_file(fit_or_robot) if folder else fit_or_robot, floating_base=floating_base)
    table: PerLog = read_per_log(per_log) if per_log is not None else known_of(options.get("per_log", {}), logs)
    recorded = readable(model, logs, mapping or options.get("mapping"))
    said = Options(
        per_log=table,
        channels=channel or (),
        contact=contact or options.get("contact", NONE),
        blueprint=networks_in(fit_or_robot) if folder else None,
        barrier=barrier if contact or barrier else options.get("barrier"),
    )
    found = open_loop(model, recorded, window=window, options=said)
    if as_json:
        print(json.dumps({row: dataclasses.asdict(e) for row, e in found.items()}, indent=1))
    else:
        _print(found, window)


def known_of(table: PerLog, logs: list[Path]) -> PerLog:
    """What a fit knew of these logs; values that it looked for are not known."""
    names = {"*", *(path.name for path in logs), *(path.stem for path in logs)}
    return {
        name: {path: value for path, value in row.items() if value != "free"}
        for name, row in table.items()
        if name in names
    }


def _print(found: dict[str, Errors], window: float) -> None:
    console = Console(highlight=False, soft_wrap=True)
    table = Table("channel", "median", "rmse", "windows", box=None, title=f"Open-loop error over {window:g} s")
    for row, e in found.items():
        table.add_row(escape(row), f"{e.median:.4g}", f"{e.rmse:.4g}", str(e.windows))
    console.print(table)
