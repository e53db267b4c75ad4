"""Start of fits in which gains of position servos are free: gains and delays with which each joint is predicted best.

Robot files often have gains of an ideal servo, many times too large. A fit that starts from them can end where delay,
armature and friction make up for each other. Here all gains are scaled by a few common factors, then all delays set to
a few values, and each servo takes what predicts its own joint best, open loop.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from truesim.core.timing import part
from truesim.core.typing import Float
from truesim.identification.diagnose.evaluation import errors, predictions
from truesim.identification.problem.problem import Problem
from truesim.physics.model.columns import joint_position_columns
from truesim.physics.parameters import Parameter

FACTORS = (0.3, 0.1, 0.03)
"""Factors of the file's gains that are tried."""
DELAYS = (0.01, 0.02, 0.04)
"""Delays that are tried if the file has none and they are free [s]."""
BETTER = 0.8
"""Ratio of the open-loop error of a joint to that of the robot file below which another start is taken. Larger leaves
more starts unchanged."""


def has_free_gains(problem: Problem) -> bool:
    """True if gains of position servos are free, whose joints are compared."""
    return bool(_of_servos(problem, "kp"))


def servo_start(problem: Problem, window: float) -> Float[np.ndarray, " size"] | None:
    """Coordinates to start from; none if the values of the robot file are as good.

    Args:
        problem: The problem.
        window: Length of the windows of open-loop errors [s].
    """
    gains, delays = (_of_servos(problem, field) for field in ("kp", "delay"))
    delays = {k: rows for k, rows in delays.items() if np.all(problem.parameters.parameters[k].start == 0)}
    if not gains:
        return None
    with part("starting"):
        start = problem.parameters.start
        theta = _best(problem, start, gains, lambda p: (p.start * factor for factor in FACTORS), window)
        if np.array_equal(theta, start):
            return None
        return _best(problem, theta, delays, lambda _: (np.asarray(delay) for delay in DELAYS), window)


def _of_servos(problem: Problem, field: str) -> dict[int, list[str]]:
    """Free parameters of actuators of one field, by index, with the compared positions of the joints they drive."""
    model = problem.simulator.model
    found = {}
    for k, p in enumerate(problem.solved):
        paths = [target.path for target in p.targets]
        if p.log is not None or np.size(p.start) != 1 or any((q.group, q.field) != ("actuators", field) for q in paths):
            continue
        joints = [model.actuators.joints[q.index or 0] for q in paths]
        rows = [joint_position_columns(model, j)[0] for j in joints if j >= 0]
        if rows and set(rows) <= set(problem.rows):
            found[k] = rows
    return found


def _best(
    problem: Problem,
    theta: Float[np.ndarray, " size"],
    members: Mapping[int, list[str]],
    values: Callable[[Parameter], Iterable[Float[np.ndarray, "..."]]],
    window: float,
) -> Float[np.ndarray, " size"]:
    """Coordinates in which each parameter has the value that predicts its own joints best."""
    score = _scores(problem, theta, members, window)
    best, chosen = dict(score), theta.copy()
    places = problem.solved.slices()
    every = {k: list(values(problem.parameters.parameters[k])) for k in members}
    for k in range(max(map(len, every.values()), default=0)):
        moved = theta.copy()
        for m in members:
            p = problem.parameters.parameters[m]
            moved[places[m]] = p.transform.coordinates(np.clip(every[m][k], p.low, p.high))
        found = _scores(problem, moved, members, window)
        for m in members:
            if found[m] < min(best[m], BETTER * score[m]):
                best[m] = found[m]
                chosen[places[m]] = moved[places[m]]
    return chosen


def _scores(problem: Problem, theta: np.ndarray, members: Mapping[int, list[str]], window: float) -> dict[int, float]:
    """Geometric mean of the open-loop errors of each parameter's joints [rad or m]."""
    found = errors(problem, list(predictions(problem, theta, window)))
    return {
        k: float(np.exp(np.mean([np.log(max(found[r].median, 1e-12)) for r in rows]))) for k, rows in members.items()
    }
