"""`truesim suggest`: ports of the physics at which a network would explain residuals."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import (
    AsJson,
    Channel,
    Contact,
    EarlierFit,
    FloatingBase,
    Logs,
    Mapping,
    PerLogFile,
    ReplaceFolder,
    Robot,
    Smoothing,
    Threads,
)
from truesim.cli.console import messages
from truesim.cli.outputs import check_folder


def suggest(
    robot: Robot,
    logs: Logs,
    fit: EarlierFit = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for blueprints and a page.", metavar="DIR", show_default=False),
    ] = None,
    channel: Channel = None,
    contact: Contact = None,
    smoothing: Smoothing = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    floating_base: FloatingBase = False,
    threads: Threads = 1,
    force: ReplaceFolder = False,
    as_json: AsJson = False,
) -> None:
    """Rank the ports of the physics by how much of the remaining error a network there would explain.

    With --out, writes blueprints for `truesim identify --blueprint`, suggest.json and suggest.html.
    """
    if out is not None:
        check_folder(out, force)
    subject = lazy.subject.read_fitted_robot(robot, fit, floating_base)
    recorded = lazy.log_warnings.read_checked(subject.model, logs, mapping or subject.mapping)
    options = subject.options_for(recorded, per_log, channel, contact, smoothing)
    problem = lazy.build.build(subject.model, recorded, subject.free, options)
    found = lazy.suggestion.suggest(problem, callback=messages().print)
    if fit is not None:
        tested = lazy.fit_folder.read_document(fit).get("alternatives", [])
        found = dataclasses.replace(found, alternatives=tuple(map(lazy.score_test.read_alternative, tested)))
    blueprints = [] if out is None else lazy.suggestion_folder.write_suggestions(found, out)
    page = None if out is None else lazy.suggest_page.write_suggest_page(out)
    if as_json:
        print(json.dumps(lazy.suggestion_folder.document(found), indent=1))
    else:
        lazy.suggestion_tables.print_suggestions(found, blueprints, page)
