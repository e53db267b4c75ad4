"""`truesim identify`: from a robot file and logs to the same robot with identified physics."""

import dataclasses
import json
import sys
from collections import abc
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli import fit_options as given
from truesim.cli.arguments import Barrier, Contact, FloatingBase, Logs, Mapping, PerLogFile, Robot
from truesim.cli.pairs import laws, numbers, pairs
from truesim.cli.progress import FitProgress, working
from truesim.cli.readable import readable
from truesim.cli.search import LOCAL, Asked, on_mujoco, search_options, searched
from truesim.contact.choose import NONE
from truesim.core.errors import TruesimError
from truesim.data import Log
from truesim.formats import load
from truesim.identify.api import alike, problems, resumed
from truesim.identify.build import Options
from truesim.identify.checkpoint import Checkpoint
from truesim.identify.evaluate import judge
from truesim.identify.fit import Settings, solve_problem
from truesim.identify.folder import Request, read_fit, resumable, values_in, write_fit
from truesim.identify.levenberg_marquardt import Progress, Watch
from truesim.identify.per_log import read_per_log
from truesim.identify.result import Fit, conclude
from truesim.model import paths
from truesim.model.laws import with_law
from truesim.model.model import Model
from truesim.report.fit_page import write_fit_page
from truesim.simulate import Trained, read_blueprint
from truesim.simulate.augment.file import blueprint_of, description_of


def identify(
    robot: Robot,
    logs: Logs,
    out: given.Out,
    free: given.FreeIfAny = None,
    blueprint: given.BlueprintFile = None,
    validate: given.Validate = None,
    horizon: given.Horizon = None,
    holdout: given.Holdout = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    window: given.Window = None,
    tie: given.Tie = None,
    bounds: given.Bounds = None,
    prior: given.Prior = None,
    channel: given.Channel = None,
    law: given.Law = None,
    contact: Contact = None,
    barrier: Barrier = None,
    set_: given.Set = None,
    robust: given.Robust = 8.0,
    optimiser: given.Optimiser = "auto",
    search: given.Search = LOCAL,
    engine: given.Engine = "truesim",
    workers: given.Workers = "1",
    seconds: given.Seconds = None,
    solves: given.Solves = None,
    cost: given.Goal = None,
    seed: given.Seed = 0,
    floating_base: FloatingBase = False,
    force: given.Force = False,
    as_json: given.AsJson = False,
) -> None:
    """Find the parameters with which ROBOT moves as it did in the logs, and say how sure they are.

    Writes a folder with fit.json, the robot file with the identified numbers, and report.html. Ctrl-C keeps the best
    so far; the same command goes on from there.
    """
    options: dict[str, Any] = {
        **{"window": window, "tie": tie, "bounds": bounds, "prior": prior, "channel": channel, "law": law},
        "blueprint": None if blueprint is None else description_of(read_blueprint(blueprint)),
        "validate": None if validate is None else list(map(str, validate)),
        **{"horizon": horizon, "contact": contact, "barrier": barrier, "set": set_, "robust": robust, "seed": seed},
        "optimizer": optimiser,
        **search_options(search, engine, workers, (seconds, solves, cost)),
        "per_log": None if per_log is None else dict(read_per_log(per_log)),
        **{"mapping": None if mapping is None else str(mapping), "floating_base": floating_base or None},
    }
    request = Request(str(robot), tuple(map(str, logs)), tuple(free or ()), tuple(map(str, holdout or [])), options)
    asked = Asked(request, out, resumable(out, request, force))
    model = model_of(robot, options)
    recorded = [readable(model, files or [], mapping) for files in (logs, holdout, validate)]
    fit = _solved(model, recorded, asked)
    write_fit(fit, out, request)
    Checkpoint(out, "").remove()
    page = write_fit_page(out)
    if as_json:
        print(json.dumps(read_fit(out), indent=1))
    else:
        _summary(fit, out, page)


def model_of(robot: Path, options: dict[str, Any]) -> Model:
    """The robot with the laws and values that were asked for."""
    model = load(robot, floating_base=bool(options["floating_base"]))
    for actuator, law in laws(options["law"]):
        model = with_law(model, actuator, law)
    for path, value in numbers(options["set"]):
        model = paths.write(model, path, value)
    return model


def said(options: abc.Mapping[str, Any]) -> Options:
    """What a request says of parameters, logs, contact and networks."""
    return Options(
        ties=[tie.split(",") for tie in options["tie"] or []],
        bounds=pairs(options["bounds"], "LOW:HIGH"),
        priors=pairs(options["prior"], "MEAN:STD"),
        per_log=options["per_log"] or {},
        channels=options["channel"] or (),
        contact=options["contact"] or NONE,
        barrier=options["barrier"],
        blueprint=None if options["blueprint"] is None else blueprint_of(options["blueprint"]),
    )


def _solved(model: Model, recorded: list[list[Log]], asked: Asked) -> Fit:
    """The fit to logs, with others held out and others to validate on; with progress on standard error."""
    logs, holdout, validation = recorded
    request, options, console = asked.request, asked.request.options, Console(stderr=True)
    problem, other = problems(model, logs, request.free, holdout, said(options))
    if not len(problem.parameters):
        raise TruesimError(
            "Nothing is free: name parameters, such as --free 'bodies/*.mass', or networks with --blueprint."
        )
    settings = Settings(
        window=options["window"],
        horizons=tuple(options["horizon"] or ()),
        threshold=options["robust"],
        optimiser=options["optimizer"],
    )
    checkpoint = Checkpoint(asked.out, request.fingerprint())
    start = checkpoint.read() if asked.earlier is None else resumed(problem, values_in(asked.out, asked.earlier))
    if start is not None:
        console.print("Going on from the interrupted fit in the folder.", highlight=False)
    found = None
    if options["search"]:
        plan, found = searched(problem, logs, asked, console)
        if plan.engine == "mujoco":
            return on_mujoco(plan, found, (problem, logs), (other, holdout))
        start = found.best.theta
    with working(console, f"Compiling the simulation of {problem.parameters.size} unknowns …"):
        seconds = problem.compile_seconds
    console.print(f"Compiled in {seconds:.1f} s; fitting {problem.layout.size} stretches.", highlight=False)
    judged = judge(alike(problem, model, validation, request.free, said(options))) if validation else None
    with FitProgress(console, problem) as progress:
        solution = solve_problem(problem, settings, _both(progress, checkpoint), start, judged)
    if found is not None:
        interrupted = solution.interrupted or found.interrupted
        solution = dataclasses.replace(solution, found=found, interrupted=interrupted)
    with working(console, "Simulating all windows and computing intervals …"):
        return conclude(solution, other)


def _both(first: Watch, second: Watch) -> Watch:
    """Calls one after the other."""

    def call(progress: Progress) -> None:
        first(progress)
        second(progress)

    return call


def _summary(fit: Fit, out: Path, page: Path) -> None:
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    table = Table("parameter", "start", "value", "95 % interval", "unit", "", box=None)
    for e in fit.estimates:
        for k in range(e.value.size):
            name = e.path if e.value.size == 1 else f"{e.path}[{k}]"
            start, value, low, high = (float(x.reshape(-1)[k]) for x in (e.start, e.value, e.low, e.high))
            note = "; ".join(e.flags) if k == 0 else ""
            interval = f"{low:.5g} … {high:.5g}"
            table.add_row(escape(name), f"{start:.5g}", f"{value:.5g}", interval, e.unit, escape(note))
    if table.row_count:
        console.print(table)
    if fit.networks is not None:
        console.print(_networks(fit.networks))
    console.print(_errors(fit))
    console.print(f"Verdict: [bold]{fit.verdict.kind}[/].")
    for sentence in fit.verdict.sentences:
        console.print(f"  {escape(sentence)}")
    console.print(f"Result in {escape(str(out))}; open {escape(str(page))} in a browser.")


def _networks(networks: Trained) -> Table:
    """What was learned, network by network."""
    table = Table("network", "acts on", "reads", "weights", "largest", box=None)
    for rule in networks.rules:
        weights = networks.weights[rule.name]
        reads = ", ".join(rule.inputs) or "nothing"
        table.add_row(escape(rule.name), rule.output, reads, str(weights.size), f"{np.abs(weights).max():.4g}")
    return table


def _errors(fit: Fit) -> Table:
    """Open-loop errors before and after."""
    parts = ["train", "held_out"] if "held_out" in fit.errors else ["train"]
    headings = {"train": "logs of the fit", "held_out": "held-out logs"}
    columns = [f"{headings[part]}: {when}" for part in parts for when in ("start", "fitted")]
    table = Table("channel", *columns, title="Median open-loop error over 0.5 s", title_justify="left", box=None)
    for row in fit.errors["train"]:
        cells = [fit.errors[part + suffix].get(row) for part in parts for suffix in ("_start", "")]
        table.add_row(escape(row), *("" if cell is None else f"{cell.median:.4g}" for cell in cells))
    return table
