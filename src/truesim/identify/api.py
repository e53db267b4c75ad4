"""From a robot and logs to a fit, in one call."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from truesim.core.errors import unknown_name
from truesim.data import Log
from truesim.identify.build import Options, build
from truesim.identify.evaluate import judge
from truesim.identify.fit import Settings, solve_problem
from truesim.identify.levenberg_marquardt import Watch
from truesim.identify.problem import Problem
from truesim.identify.result import Fit, conclude
from truesim.model.model import Model


def identify(
    model: Model,
    logs: Sequence[Log],
    free: Sequence[str],
    *,
    holdout: Sequence[Log] = (),
    options: Options | None = None,
    settings: Settings | None = None,
    watch: Watch | None = None,
) -> Fit:
    """The robot that agrees best with logs, and how sure that is.

    Args:
        model: The robot; its values are the start.
        logs: Recordings of it.
        free: Paths to identify, such as `bodies/*.mass` or `joints/elbow.*`.
        holdout: Recordings to predict, not to fit to.
        options: Ties, bounds, priors, what differs from log to log, channels, networks and logs to validate them on.
        settings: How the problem is solved.
        watch: Called after every iteration.
    """
    problem, unseen = problems(model, logs, free, holdout, options)
    judged = judge(alike(problem, model, options.validation, free, options)) if options and options.validation else None
    return conclude(solve_problem(problem, settings, watch, judge=judged), unseen)


def problems(
    model: Model,
    logs: Sequence[Log],
    free: Sequence[str],
    holdout: Sequence[Log] = (),
    options: Options | None = None,
) -> tuple[Problem, Problem | None]:
    """The problem of a fit, and the same problem on held-out logs if there are any."""
    options = options or Options()
    names = {log.name for log in (*logs, *holdout)} | {Path(log.name).stem for log in (*logs, *holdout)}
    for name in options.per_log:
        if name != "*" and name not in names:
            raise unknown_name("log", name, names)
    problem = build(model, logs, free, options)
    return problem, alike(problem, model, holdout, free, options) if holdout else None


def alike(
    problem: Problem, model: Model, logs: Sequence[Log], free: Sequence[str], options: Options | None = None
) -> Problem:
    """The same problem with other logs."""
    same = dataclasses.replace(options or Options(), channels=[channel.name for channel in problem.channels])
    return dataclasses.replace(build(model, logs, free, same), like=problem)


def resumed(problem: Problem, values: Mapping[str, object]) -> np.ndarray:
    """Coordinates of values that an earlier fit of the same problem came to, by path."""
    low, high = problem.parameters.bounds
    coordinates = [p.transform.coordinates(values[p.name]) for p in problem.parameters]
    return np.clip(np.concatenate([np.zeros(0), *coordinates]), low, high)
