"""`truesim identify`: parameters of a robot from logs."""

import contextlib
import dataclasses
import json
from pathlib import Path

import truesim as ts
from truesim.cli import identify_options as given
from truesim.cli import lazy
from truesim.cli.arguments import (
    Bounds,
    Channel,
    Contact,
    FloatingBase,
    Gear,
    Holdout,
    Logs,
    Mapping,
    OutputFolder,
    PerLogFile,
    Prior,
    Robot,
    Seed,
    Servo,
    Smoothing,
    Threads,
    Tie,
    Validate,
)
from truesim.cli.config import ConfigFile
from truesim.cli.console import messages
from truesim.cli.exit_codes import EXIT_CODES
from truesim.cli.pairs import actuator_models, gear_values, numbers, pairs, servo_gains
from truesim.core.errors import TruesimError


def identify(
    robot: Robot,
    logs: Logs,
    out: OutputFolder,
    config: ConfigFile = None,
    free: given.FreeIfAny = None,
    preset: given.Preset = None,
    payload: given.PayloadBody = None,
    loaded: given.Loaded = None,
    weighed: given.Weighed = None,
    blueprint: given.BlueprintFile = None,
    validate: Validate = None,
    horizon: given.Horizon = None,
    holdout: Holdout = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    window: given.Window = None,
    tie: Tie = None,
    bounds: Bounds = None,
    prior: Prior = None,
    channel: Channel = None,
    actuator_model: given.ActuatorModel = None,
    servo: Servo = None,
    gear: Gear = None,
    contact: Contact = None,
    smoothing: Smoothing = None,
    set_: given.Set = None,
    robust: given.Robust = 8.0,
    optimizer: given.Optimizer = "auto",
    iterations: given.SolverIterations = 60,
    prior_width: given.PriorWidth = 2.0,
    misfit_factor: given.MisfitFactor = 1.25,
    segment_factor: given.SegmentFactor = 1.06,
    identifiable_std: given.IdentifiableStd = 0.5,
    search: given.Search = given.LOCAL_SEARCH,
    engine: given.Engine = "truesim",
    workers: given.Workers = None,
    threads: Threads = 1,
    seconds: given.Seconds = None,
    solves: given.Solves = None,
    cost: given.Goal = None,
    seed: Seed = 0,
    floating_base: FloatingBase = False,
    live: given.Live = False,
    force: given.Replace = False,
    as_json: given.FitAsJson = False,
    quiet: given.Quiet = False,
) -> int:
    """Identify parameters of ROBOT from logs: the values with which its simulation follows them, with 95 % intervals.

    Writes a folder with fit.json, the robot file with the identified values, report.html, and fit.toml, which repeats
    the fit. Ctrl-C keeps the best values so far; the same command continues from there.

    Exit codes: 0 converged, 2 mistake in the command or its files, 3 not identifiable, 4 model does not fit,
    5 iteration limit, 6 stalled, 7 diverged.
    """
    if (payload is None) != (not loaded):
        raise TruesimError("--payload BODY and --loaded LOG belong together: logs with a tool, and the body it is on.")
    run = ts.identify  # imports everything that it needs
    page_of = lazy.live_pages.follow_fit(robot.name, messages()) if live else contextlib.nullcontext()
    with page_of as page_observer, lazy.fit_observer.FitObserver(messages(), page_observer) as observer:
        fit = run(
            robot,
            logs,
            free or (),
            preset=preset,
            holdout=holdout or (),
            validate=validate or (),
            out=out,
            force=force,
            ties=[words.split(",") for words in tie or []],
            bounds=pairs(bounds, "LOW:HIGH"),
            priors=pairs(prior, "MEAN:STD"),
            prior_width=prior_width,
            per_log=None if per_log is None else lazy.per_log.read_per_log(per_log),
            channels=channel or (),
            contact=contact or "none",
            smoothing=smoothing,
            blueprint=blueprint,
            window=window,
            horizons=horizon or (),
            robust=robust,
            optimizer=optimizer,
            iterations=iterations,
            solve=lazy.solve_options.SolveOptions(misfit_factor=misfit_factor, segment_factor=segment_factor),
            diagnose=lazy.diagnose_options.DiagnoseOptions(identifiable_std=identifiable_std),
            search=_search_options(search, engine, workers or str(threads), (seconds, solves, cost), seed, window),
            seed=seed,
            threads=threads,
            mapping=mapping,
            floating_base=floating_base,
            actuator_models=dict(actuator_models(actuator_model)),
            servos=servo_gains(servo),
            gears=gear_values(gear),
            values=dict(numbers(set_)),
            observer=observer,
        )
        tool = None if payload is None else lazy.payload.find(fit, payload, loaded or (), mapping, weighed)
        with observer.stopwatch.part("writing"):
            page = _write_page(fit, out)
    if as_json:
        print(json.dumps(fit.document, indent=1))
    elif quiet:
        print(fit.status)
    else:
        lazy.fit_tables.print_fit(fit, out, page)
        if tool is not None:
            lazy.payload.print_payload(tool)
        observer.print_times()
    return EXIT_CODES[fit.status]


def _write_page(fit: "ts.Fit", out: Path) -> Path:
    """Write the page of a fit that is saved; without space for it the fit stays."""
    try:
        return fit.report()
    except OSError as error:
        raise TruesimError(
            f"{error.strerror}: {out} holds the result, but not its page. Free some space, then `truesim report {out}`."
        ) from None


def _search_options(
    method: str,
    engine: str,
    workers: str,
    stop: tuple[float | None, int | None, float | None],
    seed: int,
    window: float | None,
) -> "lazy.search_run.SearchOptions | None":
    """Options of the search; None without one."""
    if method == given.LOCAL_SEARCH:
        if (engine, workers.isdigit(), stop) != ("truesim", True, (None, None, None)):
            raise TruesimError(
                "--engine, --workers, --seconds, --solves and --cost belong to a search: add --search hopping or cmaes."
            )
        return None
    found = lazy.search_run.SearchOptions(method, engine, workers, seed, *stop)
    return found if window is None else dataclasses.replace(found, window=window)
