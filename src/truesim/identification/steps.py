"""The steps of an identification: read, search, solve, diagnose, save."""

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError
from truesim.core.persistence.checkpoint import Checkpoint
from truesim.core.persistence.lock import lock_folder
from truesim.core.timing import part
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification import fit_folder
from truesim.identification.diagnose.contradictions import find_contradictions
from truesim.identification.diagnose.diagnosis import Diagnosis, diagnose
from truesim.identification.diagnose.evaluation import check_windows, validation_loss
from truesim.identification.diagnose.status import Diagnostic
from truesim.identification.fit import Fit
from truesim.identification.options import IdentifyOptions
from truesim.identification.presets import ARM, preset_patterns
from truesim.identification.problem.build import assemble, same_problem
from truesim.identification.problem.fitted import coordinates_of, same_values
from truesim.identification.problem.problem import Problem
from truesim.identification.reading import (
    LogLike,
    Observer,
    RobotLike,
    check_motion,
    check_per_log,
    hold_unrecorded,
    read_logs,
    read_raw,
    read_robot,
)
from truesim.identification.regression.checks import check_torques
from truesim.identification.regression.limits import lift_limits
from truesim.identification.regression.machine import joint_sizes
from truesim.identification.regression.torques import inapplicable
from truesim.identification.request import Request
from truesim.identification.search.blackbox import diagnose_on_mujoco
from truesim.identification.search.mujoco_engine import MujocoEngine
from truesim.identification.search.run import build_objective, search
from truesim.identification.servo_start import has_free_gains, servo_start
from truesim.identification.solve.levenberg_marquardt import Ending, Progress
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem
from truesim.identification.solve.widening import sizes_at_bounds
from truesim.identification.torque_fit import conclude, torque_parts
from truesim.identification.torque_regression import ArmRegression, regress_arm
from truesim.identification.torque_start import TRAJECTORY, better_start, keep_best, regress_free
from truesim.optimize.basin_hopping import SearchResult
from truesim.physics.model.model import Model
from truesim.physics.parameters import free as free_parameters

ARM_JOINTS = 4
"""Joints from which on a robot with torques in its logs counts as an arm, if nothing else is said."""
WIDENINGS = 2
"""Times that default bounds are widened. Larger follows estimates further."""


class Parts(NamedTuple):
    """Logs or log files of an identification, by their use."""

    train: Sequence[LogLike]
    holdout: Sequence[LogLike] = ()
    validate: Sequence[LogLike] = ()


@dataclasses.dataclass(frozen=True)
class PreparedIdentification:
    """Everything that an identification starts from."""

    request: Request
    problem: Problem
    train: tuple[Log, ...]
    """Prepared logs of the fit."""
    holdout: tuple[Log, ...]
    held_out: Problem | None
    """The same problem with the held-out logs."""
    validation: Problem | None
    """The same problem with the validation logs."""
    folder: Path | None
    theta: Float[np.ndarray, " size"] | None
    """Coordinates of an interrupted fit to continue from."""
    regression: ArmRegression | None = None
    """Regression of joint torques, of which the fit is made with the preset of arms."""
    has_torques: bool = False
    """True if the logs hold the joint torques of a fixed arm, which a regression can start from."""

    @property
    def options(self) -> IdentifyOptions:
        """Options of the request."""
        return self.request.options

    def alone(self, log: int) -> Problem:
        """The same problem with one of its logs."""
        model, own = self.problem.simulator.model, self.train[log : log + 1]
        return same_problem(self.problem, model, own, self.request.free, self.options.problem)


def run(
    robot: RobotLike,
    parts: Parts,
    free: Sequence[str],
    options: IdentifyOptions,
    observer: Observer,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Fit:
    """Run an identification; arguments as those of `identify`."""
    with contextlib.nullcontext() if out is None else lock_folder(Path(out)):
        with part("reading"):
            setup = prepare(robot, parts, free, options, observer, out, force)
        found = None if options.search is None else _search(setup, observer)
        if setup.regression is not None:
            observer.stage("diagnose", setup.problem)
            with part("diagnosing"), threadpool_limits(1):
                solution, diagnosis = conclude(
                    setup.regression, setup.problem, setup.train, setup.held_out, setup.holdout, options.diagnose
                )
        elif found is not None and options.search is not None and options.search.engine == "mujoco":
            solution, diagnosis = _finish_on_mujoco(setup, found, observer)
        else:
            setup, solution, notes = _solve_from_torques(setup, found, observer)
            observer.stage("diagnose", setup.problem)
            with part("diagnosing"):
                minimal = all(note.subjects[0] == TRAJECTORY for note in notes)
                diagnosis = diagnose(solution, setup.held_out, options.diagnose, minimal)
                names = [log.name for log in setup.train] if not options.problem.per_log and minimal else []
                diagnosis = find_contradictions(solution, diagnosis, names, setup.alone, options.solve)
                torque = torque_parts(setup.problem, solution.theta, setup.train, setup.holdout)
                notes = (*notes, *diagnosis.diagnostics)
                diagnosis = dataclasses.replace(diagnosis, torque_errors=torque, diagnostics=notes)
        fit = Fit(solution, diagnosis, setup.request, setup.train, setup.holdout, setup.held_out)
        if setup.folder is not None:
            with part("writing"):
                checkpoint = Checkpoint(setup.folder, setup.request.fingerprint(), every=0.0)
                checkpoint(solution.theta)
                fit = fit.save(setup.folder)
                checkpoint.remove()
        return fit


def prepare(
    robot: RobotLike,
    parts: Parts,
    free: Sequence[str],
    options: IdentifyOptions,
    observer: Observer,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> PreparedIdentification:
    """Read robot and logs, and assemble the problem; arguments as those of `identify`."""
    model = read_robot(robot, options)
    free = (*free, *(() if options.preset is None else preset_patterns(model, options.preset)))
    request = _request(model, parts, free, options)
    free_parameters(model, free, options.problem.ties)  # wrong names are told before anything is read
    folder = None if out is None else Path(out)
    earlier = None if folder is None else fit_folder.resumable(folder, request, force)
    raw = [read_raw(logs, options) for logs in parts]
    model, options = hold_unrecorded(model, [log for logs in raw for log in logs], options, observer)
    train, holdout, validate = (
        tuple(read_logs(model, logs, options, observer, own)) for logs, own in zip(parts, raw, strict=True)
    )
    check_motion(model, train, options)
    check_per_log(options, (*train, *holdout))
    has_torques = bool(train) and inapplicable(model, train) is None
    with threadpool_limits(1):  # matrices are too small for threads
        model, regression = _regress(model, (train, holdout), free, options, observer)
    if regression is not None:
        model, free = regression.model, regression.free
        problem_options = dataclasses.replace(options.problem, reach=regression.reach)
        options = dataclasses.replace(options, problem=problem_options, preset=ARM)
    elif has_torques:
        reach = joint_sizes(model, train)
        options = dataclasses.replace(options, problem=dataclasses.replace(options.problem, reach=reach))
    request = dataclasses.replace(request, free=free, options=options)
    problem = assemble(model, train, free, options.problem)
    if not len(problem.parameters):
        raise TruesimError(
            "Nothing is free: name parameters, such as --free 'bodies/*.mass', a kind of robot (--preset arm), or "
            "networks with --blueprint."
        )
    theta = None if folder is None else Checkpoint(folder, request.fingerprint()).read()
    if earlier is not None and folder is not None:
        theta = coordinates_of(problem, fit_folder.values_in(folder, earlier))
    if theta is not None:
        observer.stage("resume", problem)
    held_out, validation = (
        same_problem(problem, model, logs, free, options.problem) if logs else None for logs in (holdout, validate)
    )
    for each in filter(None, (problem, held_out, validation)):
        check_windows(each, options.diagnose.error_window)
    return PreparedIdentification(
        request, problem, train, holdout, held_out, validation, folder, theta, regression, has_torques
    )


def _regress(
    model: Model,
    logs: tuple[Sequence[Log], Sequence[Log]],
    free: Sequence[str],
    options: IdentifyOptions,
    observer: Observer,
) -> tuple[Model, ArmRegression | None]:
    """The model without limits that its logs exceed, and the regression of an arm that is asked for.

    Faults of torque logs are reported. Without a preset and without free parameters an arm is recognized by its logs.
    """
    train, holdout = logs
    reason = inapplicable(model, train)
    recognized = options.preset is None and not free and options.problem.blueprint is None and model.nv >= ARM_JOINTS
    wanted = options.preset == ARM or recognized
    if reason is not None:
        if options.preset == ARM:
            raise TruesimError(f"The preset {ARM!r} needs a fixed arm and joint torques in its logs, but {reason}.")
        return model, None
    for finding in check_torques(model, train):
        observer.warning(finding.subject, finding)
    model = lift_limits(model, (*train, *holdout))
    if not wanted or not train:
        return model, None
    with part("regressing"):
        return model, regress_arm(model, train)


def _request(model: Model, parts: Parts, free: Sequence[str], options: IdentifyOptions) -> Request:
    source = model.source
    if source is not None and source.floating_base:
        options = dataclasses.replace(options, floating_base=True)
    names = [tuple(_file(log) for log in logs) for logs in parts]
    robot = "robot.xml" if source is None or source.path is None else str(source.path)
    return Request(robot, names[0], tuple(free), names[1], names[2], options)


def _file(log: LogLike) -> str:
    if not isinstance(log, Log):
        return str(log)
    return log.name if log.source is None else str(log.source)


def _search(setup: PreparedIdentification, observer: Observer) -> SearchResult:
    """Global search for the start; finished solves are kept in the folder."""
    assert setup.options.search is not None, "a search was asked for"
    plan = dataclasses.replace(setup.options.search, about=setup.request.fingerprint())
    journal = None
    if setup.folder is not None:
        setup.folder.mkdir(parents=True, exist_ok=True)
        journal = setup.folder / fit_folder.SEARCH_JOURNAL
    observer.stage("search", setup.problem)
    with part("searching"):
        found = search(setup.problem, plan, logs=setup.train, journal=journal, callback=observer.searched)
    finite = bool(found.solves) and np.isfinite(found.best.cost)
    if found.interrupted and not finite:
        raise KeyboardInterrupt
    if not finite:
        raise TruesimError("The search found no parameters with which the simulation stays finite; narrow the bounds.")
    return found


def _solve_from_torques(
    setup: PreparedIdentification, found: SearchResult | None, observer: Observer
) -> tuple[PreparedIdentification, Solution, tuple[Diagnostic, ...]]:
    """Local solve that a regression of joint torques starts, if the logs hold any; the best of both is returned."""
    problem, window = setup.problem, setup.options.diagnose.error_window
    regressed, local = None, found is None and setup.options.problem.blueprint is None
    if setup.has_torques and local:
        with part("regressing"):
            regressed = regress_free(problem, setup.train)
    if setup.theta is None and (regressed is not None or (local and has_free_gains(problem))):
        observer.stage("compile", problem)
        problem.compile()  # before predictions, which then need no kernels of their own
        theta = regressed if regressed is not None and better_start(problem, regressed, window) else None
        setup = dataclasses.replace(setup, theta=servo_start(problem, window) if regressed is None else theta)
    setup, solution = _solve_widening(setup, found, observer)
    if regressed is None or solution.ending is Ending.INTERRUPTED:
        return setup, solution, ()
    regressed = same_values(problem, regressed, setup.problem)
    where, logs = (setup.problem, setup.train) if setup.held_out is None else (setup.held_out, setup.holdout)
    solution, note = keep_best(solution, regressed, where, logs, window)
    return setup, solution, (note,)


def _solve_widening(
    setup: PreparedIdentification, found: SearchResult | None, observer: Observer
) -> tuple[PreparedIdentification, Solution]:
    """Local solve; default bounds that the estimate reaches are widened, and the fit goes on from there."""
    solution = _solve(setup, found, observer)
    for _ in range(WIDENINGS):
        values, _ = setup.problem.values(solution.theta)
        sizes = sizes_at_bounds(setup.problem.solved, values, setup.options.problem.bounds)
        if not sizes or setup.options.problem.blueprint is not None or solution.ending is Ending.INTERRUPTED:
            break
        problem = dataclasses.replace(setup.problem, parameters=setup.problem.parameters.reaching(sizes))
        other = None if setup.held_out is None else dataclasses.replace(setup.held_out, parameters=problem.parameters)
        reach = dict(setup.options.problem.reach) | sizes
        options = dataclasses.replace(setup.options, problem=dataclasses.replace(setup.options.problem, reach=reach))
        setup = dataclasses.replace(
            setup,
            request=dataclasses.replace(setup.request, options=options),
            problem=dataclasses.replace(problem, like=setup.problem),
            held_out=other,
            theta=same_values(setup.problem, solution.theta, problem),
        )
        solution = _solve(setup, None, observer).replace(found=solution.found)
    return setup, solution


def _solve(setup: PreparedIdentification, found: SearchResult | None, observer: Observer) -> Solution:
    """Local solve from the best start; its progress is kept in the folder."""
    problem = setup.problem
    observer.stage("compile", problem)
    problem.compile()
    observer.stage("solve", problem)
    checkpoint = None if setup.folder is None else Checkpoint(setup.folder, setup.request.fingerprint())

    def iterated(progress: Progress) -> None:
        observer.iterated(progress)
        if checkpoint is not None:
            checkpoint(progress.theta)

    loss = None if setup.validation is None else validation_loss(setup.validation)
    theta = setup.theta if found is None else found.best.theta
    with part("solving"):
        solution = solve_problem(problem, setup.options.solve, iterated, theta, loss)
    if found is None:
        return solution
    ending = Ending.INTERRUPTED if found.interrupted else solution.ending
    return solution.replace(found=found, ending=ending)


def _finish_on_mujoco(
    setup: PreparedIdentification, found: SearchResult, observer: Observer
) -> tuple[Solution, Diagnosis]:
    """Solution and diagnosis of a search on MuJoCo, by its own simulations."""
    plan = setup.options.search
    assert plan is not None, "a search was asked for"
    observer.stage("diagnose", setup.problem)
    engine = build_objective(setup.problem, plan, setup.train)
    other = None if setup.held_out is None else build_objective(setup.held_out, plan, setup.holdout)
    assert isinstance(engine, MujocoEngine), "the engine of the search"
    assert other is None or isinstance(other, MujocoEngine), "the same engine"
    return diagnose_on_mujoco(engine, found, other, setup.options.diagnose)
