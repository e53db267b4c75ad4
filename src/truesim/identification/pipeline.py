"""Identification from robot and logs to a saved fit: the whole job in one call."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.fit import Fit
from truesim.identification.options import IdentifyOptions
from truesim.identification.problem.options import NumberPair, ProblemOptions
from truesim.identification.problem.per_log import PerLog
from truesim.identification.reading import LogLike, Observer, RobotLike, Silent
from truesim.identification.search.run import SearchOptions
from truesim.identification.solve.options import SolveOptions
from truesim.identification.steps import Parts, run
from truesim.physics.blueprint import Blueprint, Trained, read_blueprint


def identify(
    robot: RobotLike,
    logs: Sequence[LogLike],
    free: Sequence[str] = (),
    *,
    preset: str | None = None,
    holdout: Sequence[LogLike] = (),
    validate: Sequence[LogLike] = (),
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    ties: Sequence[Sequence[str] | str] = (),
    bounds: Mapping[str, NumberPair] | None = None,
    priors: Mapping[str, NumberPair] | None = None,
    prior_width: float = ProblemOptions.prior_width,
    per_log: PerLog | None = None,
    channels: Sequence[str] = (),
    contact: str = ProblemOptions.contact,
    smoothing: float | None = None,
    blueprint: Blueprint | Trained | str | os.PathLike[str] | None = None,
    window: float | None = None,
    horizons: Sequence[float] = (),
    robust: float = SolveOptions.robust,
    optimizer: str = SolveOptions.optimizer,
    iterations: int = SolveOptions.iterations,
    solve: SolveOptions | None = None,
    diagnose: DiagnoseOptions | None = None,
    search: SearchOptions | str | None = None,
    seed: int = 0,
    threads: int = 1,
    mapping: str | os.PathLike[str] | None = None,
    floating_base: bool = False,
    actuator_models: Mapping[str, str] | None = None,
    servos: Mapping[str, Mapping[str, float]] | None = None,
    gears: Mapping[str, Mapping[str, float]] | None = None,
    values: Mapping[str, float] | None = None,
    observer: Observer | None = None,
) -> Fit:
    """Identify the parameters with which a robot moves as it did in logs.

    Args:
        robot: A model or robot file (MJCF or URDF); its values are the start.
        logs: Logs or log files to fit to.
        free: Paths of the parameters to identify, such as `bodies/*.mass` or `joints/elbow.*`.
        preset: Kind of robot that decides what is free, in addition to `free`: `arm`, `servo`, `quadruped` or
            `free-body`. Without it and without `free`, an arm with joint torques in its logs is recognized.
        holdout: Logs to predict, not to fit to.
        validate: Logs that decide when networks are trained enough (early stopping); not fitted to.
        out: Folder to save the fit to. An interrupted fit of the same request in it is continued.
        force: Whether to replace what is in the folder.
        ties: Patterns, or lists of patterns, whose matches share one value.
        bounds: Lower and upper bound by pattern [SI units].
        priors: Mean and standard deviation of a Gaussian prior by pattern [SI units].
        prior_width: Standard deviation of the weak prior of every coordinate around its start; infinite removes it.
        per_log: Values that differ from log to log, by log name and path.
        channels: Patterns of measured channels to compare; by default all that the simulator can predict.
        contact: Contact model: `none`, `rigid` or `compliant`.
        smoothing: Smoothing of rigid contact, such as 1e-3; the least by default.
        blueprint: Networks within the physics, or a TOML file that describes them.
        window: Length of windows within which the motion must be continuous [s]; found from the logs by default.
        horizons: Lengths of windows [s], one stage after the other, instead of `window`.
        robust: Huber threshold in standard deviations; infinite for least squares.
        optimizer: `lm` (Levenberg-Marquardt), `adam`, or `auto`: Adam for networks with many weights.
        iterations: Maximum number of iterations of each stage.
        solve: All options of the solver; the arguments above take precedence where they are given.
        diagnose: Thresholds of status and flags.
        search: Global search for the start: `hopping`, `cmaes`, or options; none starts at the robot's values.
        seed: Seed of everything random: search and order of batches.
        threads: Threads of the search.
        mapping: File that renames and scales the logs' own columns.
        floating_base: Whether the root of a URDF moves freely.
        actuator_models: Actuator model by actuator, instead of the file's.
        servos: Gains `kp` and `kv` of motors that are servos, by pattern, such as `{"joints/*": {"kp": 50}}`.
        gears: Joints of MJCF whose gear gives or has play, such as `{"elbow": {"stiffness": 9000, "backlash": 0.002}}`;
            `files.robots.gears.with_gear` tells the values.
        values: Start values by path, instead of the file's [SI units].
        observer: Receives progress.
    """
    base = solve or SolveOptions()
    given = {"window": window, "robust": robust, "optimizer": optimizer, "iterations": iterations, "seed": seed}
    changed: dict[str, Any] = {name: value for name, value in given.items() if value != getattr(SolveOptions, name)}
    options = IdentifyOptions(
        problem=ProblemOptions(
            ties=tuple(ties),
            bounds=dict(bounds or {}),
            priors=dict(priors or {}),
            prior_width=prior_width,
            per_log=dict(per_log or {}),
            channels=tuple(channels),
            contact=contact,
            smoothing=smoothing,
            blueprint=read_blueprint(blueprint) if isinstance(blueprint, str | os.PathLike) else blueprint,
        ),
        solve=dataclasses.replace(base, horizons=tuple(horizons) or base.horizons, **changed),
        diagnose=diagnose or DiagnoseOptions(),
        search=_search_options(search, seed, threads, window),
        preset=preset,
        floating_base=floating_base,
        mapping=None if mapping is None else str(mapping),
        actuator_models=dict(actuator_models or {}),
        servos=dict(servos or {}),
        gears=dict(gears or {}),
        values=dict(values or {}),
    )
    return run(robot, Parts(logs, holdout, validate), free, options, observer or Silent(), out, force)


def _search_options(
    search: SearchOptions | str | None, seed: int, threads: int, window: float | None
) -> SearchOptions | None:
    if search is None or search == "local":
        return None
    if isinstance(search, SearchOptions):
        return search
    found = SearchOptions(method=search, seed=seed, workers=str(threads))
    return found if window is None else dataclasses.replace(found, window=window)
