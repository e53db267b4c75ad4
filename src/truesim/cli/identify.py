"""`truesim identify`: from a robot file and logs to the same robot with identified physics."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.arguments import FloatingBase, Logs, Mapping, PerLogFile, Robot
from truesim.cli.pairs import laws, numbers, pairs
from truesim.cli.progress import FitProgress, working
from truesim.core.errors import TruesimError
from truesim.data import read_log
from truesim.formats import load
from truesim.identify.api import problems, resumed
from truesim.identify.fit import Settings, solve_problem
from truesim.identify.folder import Request, read_fit, resumable, write_fit
from truesim.identify.per_log import read_per_log
from truesim.identify.result import Fit, conclude
from truesim.model import paths
from truesim.model.laws import with_law
from truesim.model.model import Model
from truesim.report.fit_page import write_report

Free = Annotated[
    list[str],
    typer.Option(
        "--free",
        help="Parameters to identify, such as 'bodies/*.mass' 'joints/elbow.*'; `truesim inspect ROBOT` lists all names.",
        metavar="PATTERN…",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the result.", metavar="DIR", show_default=False)]


def identify(
    robot: Robot,
    logs: Logs,
    free: Free,
    out: Out,
    holdout: Annotated[
        list[Path] | None,
        typer.Option(help="Logs to predict, not to fit to.", metavar="LOG…", show_default=False),
    ] = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    window: Annotated[
        float | None,
        typer.Option(help="Length of windows within which the motion must be continuous, in s; found from the logs."),
    ] = None,
    tie: Annotated[
        list[str] | None,
        typer.Option(help="Patterns whose matches share one value: 'joints/*.damping', or 'A,B,-C'.", metavar="PATTERN…"),
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(help="Bounds, PATTERN=LOW:HIGH in SI units.", metavar="PATTERN=LOW:HIGH…")
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(help="Prior belief, PATTERN=MEAN:STD in SI units.", metavar="PATTERN=MEAN:STD…"),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(help="Measured channels to compare, such as 'qpos/*'; all that make sense.", metavar="PATTERN…"),
    ] = None,
    law: Annotated[
        list[str] | None,
        typer.Option(help="Law of an actuator: affine, dc_motor, duty_servo, minitaur_motor.", metavar="ACTUATOR=LAW…"),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Values to start from, or to keep.", metavar="PATH=VALUE…")
    ] = None,
    robust: Annotated[
        float, typer.Option(help="Residuals beyond this many standard deviations count linearly; 'inf' for none.")
    ] = 8.0,
    optimiser: Annotated[str, typer.Option("--optimizer", help="lm (Levenberg-Marquardt) or adam.")] = "lm",
    seed: Annotated[int, typer.Option(help="Seed of everything random; kept with the result.")] = 0,
    floating_base: FloatingBase = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the content of fit.json.")] = False,
) -> None:
    """Find the parameters with which ROBOT moves as it did in the logs, and say how sure they are.

    Writes a folder with fit.json, the robot file with the identified numbers, and report.html. Ctrl-C keeps the best so
    far; the same command goes on from there.
    """
    options: dict[str, Any] = {
        "window": window,
        "tie": tie,
        "bounds": bounds,
        "prior": prior,
        "channel": channel,
        "law": law,
        "set": set_,
        "robust": robust,
        "optimizer": optimiser,
        "seed": seed,
        "per_log": None if per_log is None else dict(read_per_log(per_log)),
        "mapping": None if mapping is None else str(mapping),
        "floating_base": floating_base or None,
    }
    request = Request(str(robot), tuple(map(str, logs)), tuple(free), tuple(map(str, holdout or [])), options)
    earlier = resumable(out, request, force)
    model = _model(robot, options)
    recorded = [read_log(path, mapping=mapping) for path in logs]
    kept = [read_log(path, mapping=mapping) for path in holdout or []]
    fit = _solved(model, recorded, kept, request, earlier)
    write_fit(fit, out, request)
    page = write_report(out)
    if as_json:
        print(json.dumps(read_fit(out), indent=1))
    else:
        _summary(fit, out, page)


def _model(robot: Path, options: dict[str, Any]) -> Model:
    """The robot with the laws and values that were asked for."""
    model = load(robot, floating_base=bool(options["floating_base"]))
    for actuator, law in laws(options["law"]):
        model = with_law(model, actuator, law)
    for path, value in numbers(options["set"]):
        model = paths.write(model, path, value)
    return model


def _solved(model: Model, logs: list, holdout: list, request: Request, earlier: dict[str, Any] | None) -> Fit:
    """The fit, with progress on standard error."""
    options = request.options
    console = Console(stderr=True)
    problem, other = problems(
        model,
        logs,
        request.free,
        holdout,
        ties=[tie.split(",") for tie in options["tie"] or []],
        bounds=pairs(options["bounds"], "LOW:HIGH"),
        priors=pairs(options["prior"], "MEAN:STD"),
        per_log=options["per_log"],
        channels=options["channel"] or (),
    )
    if not len(problem.parameters):
        raise TruesimError("Nothing is free: name parameters with --free, such as --free 'bodies/*.mass'.")
    settings = Settings(window=options["window"], threshold=options["robust"], optimiser=options["optimizer"])
    start = None if earlier is None else resumed(problem, [p["value"] for p in earlier["parameters"]])
    if start is not None:
        console.print("Going on from the interrupted fit in the folder.", highlight=False)
    with working(console, f"Compiling the simulation of {len(problem.parameters)} parameters …"):
        seconds = problem.kernel.seconds
    console.print(f"Compiled in {seconds:.1f} s; fitting {problem.layout.size} stretches.", highlight=False)
    with FitProgress(console, problem) as progress:
        solution = solve_problem(problem, settings, progress, start)
    with working(console, "Simulating all windows and computing intervals …"):
        return conclude(solution, other)


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
    console.print(table)
    console.print(_errors(fit))
    console.print(f"Verdict: [bold]{fit.verdict.kind}[/].")
    for sentence in fit.verdict.sentences:
        console.print(f"  {escape(sentence)}")
    console.print(f"Result in {escape(str(out))}; open {escape(str(page))} in a browser.")


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
