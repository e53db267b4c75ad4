"""From a robot and logs to a fit, in one call."""

from collections.abc import Mapping, Sequence

import numpy as np

from truesim.data import Log
from truesim.identify.build import Pair, build
from truesim.identify.fit import Settings, solve_problem
from truesim.identify.levenberg_marquardt import Watch
from truesim.identify.per_log import PerLog
from truesim.identify.problem import Problem
from truesim.identify.result import Fit, conclude
from truesim.model.model import Model


def identify(
    model: Model,
    logs: Sequence[Log],
    free: Sequence[str],
    *,
    holdout: Sequence[Log] = (),
    settings: Settings | None = None,
    watch: Watch | None = None,
    **options: object,
) -> Fit:
    """The robot that agrees best with logs, and how sure that is.

    Args:
        model: The robot; its values are the start.
        logs: Recordings of it.
        free: Paths to identify, such as `bodies/*.mass` or `joints/elbow.*`.
        holdout: Recordings to predict, not to fit to.
        settings: How the problem is solved.
        watch: Called after every iteration.
        options: `ties`, `bounds`, `priors`, `per_log`, `channels`, as in `truesim.identify.build`.
    """
    problem, unseen = problems(model, logs, free, holdout, **options)
    return conclude(solve_problem(problem, settings, watch), unseen)


def problems(
    model: Model,
    logs: Sequence[Log],
    free: Sequence[str],
    holdout: Sequence[Log] = (),
    *,
    ties: Sequence[Sequence[str] | str] = (),
    bounds: Mapping[str, Pair] | None = None,
    priors: Mapping[str, Pair] | None = None,
    per_log: PerLog | None = None,
    channels: Sequence[str] = (),
) -> tuple[Problem, Problem | None]:
    """The problem of a fit, and the same problem on held-out logs if there are any."""
    problem = build(
        model, logs, free, ties=ties, bounds=bounds, priors=priors, per_log=_of(per_log, logs), channels=channels
    )
    if not holdout:
        return problem, None
    names = [channel.name for channel in problem.channels]
    other = build(
        model, holdout, free, ties=ties, bounds=bounds, priors=priors, per_log=_of(per_log, holdout), channels=names
    )
    return problem, other


def resumed(problem: Problem, values: Sequence[object]) -> np.ndarray:
    """Coordinates of values that an earlier fit of the same problem came to."""
    pairs = zip(problem.parameters, values, strict=True)
    low, high = problem.parameters.bounds
    return np.clip(np.concatenate([np.zeros(0), *(p.transform.coordinates(v) for p, v in pairs)]), low, high)


def _of(per_log: PerLog | None, logs: Sequence[Log]) -> PerLog:
    """The part of a table that concerns these logs."""
    names = {log.name for log in logs} | {log.name.rpartition(".")[0] for log in logs}
    return {name: row for name, row in (per_log or {}).items() if name == "*" or name in names}
