"""Logs that contradict each other: each of them fits alone, but no parameters fit all."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.identification.diagnose.diagnosis import Diagnosis
from truesim.identification.diagnose.status import Code, Diagnostic, Status
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem

MAX_TESTED_LOGS = 6
"""Logs that are fitted alone; more of them take longer than the fit itself."""
BETTER_ALONE = 3.0
"""Factor by which the residual of every log must fall if it is fitted alone."""


def find_contradictions(
    solution: Solution,
    diagnosis: Diagnosis,
    names: Sequence[str],
    alone: Callable[[int], Problem],
    options: SolveOptions,
) -> Diagnosis:
    """The diagnosis, with a statement about logs that fit alone but not together, if they do.

    Only fits of several logs whose model does not fit are tested.

    Args:
        solution: The solved problem.
        diagnosis: Its diagnosis.
        names: Names of the logs.
        alone: Builds the same problem with one of the logs.
        options: Of the solver.
    """
    if diagnosis.status is not Status.DOES_NOT_FIT or not 2 <= len(names) <= MAX_TESTED_LOGS:
        return diagnosis
    if solution.problem.blueprint is not None or not solution.differentiable:
        return diagnosis
    together = _residuals(solution, len(names))
    each = [_solve_alone(alone(k), solution.theta, options) for k in range(len(names))]
    apart = np.array([_residuals(one, 1)[0] for one in each])
    if not np.all(together > BETTER_ALONE * apart):
        return diagnosis
    stated = Diagnostic(
        Code.CONTRADICTORY_LOGS, _most_different(solution, each, names), float(np.min(together / apart))
    )
    return dataclasses.replace(diagnosis, diagnostics=(stated, *diagnosis.diagnostics))


def _solve_alone(problem: Problem, theta: Float[np.ndarray, " size"], options: SolveOptions) -> Solution:
    return solve_problem(problem, options, theta=np.clip(theta, *problem.parameters.bounds))


def _residuals(solution: Solution, logs: int) -> Float[np.ndarray, " logs"]:
    """Root-mean-square residual of each log, in multiples of the sensors' noise."""
    problem = solution.problem
    scaled = solution.at.simulated.residual / np.maximum(solution.sensor_noise, 1e-300)
    valid = problem.layout.valid
    squares, own = np.where(valid, scaled, 0.0) ** 2, problem.layout.log
    return np.array([np.sqrt(squares[own == k].sum() / max(valid[own == k].sum(), 1)) for k in range(logs)])


def _most_different(solution: Solution, each: Sequence[Solution], names: Sequence[str]) -> tuple[str, ...]:
    """The parameter that differs most between logs, and its lowest and highest value with their logs."""
    parameters = solution.problem.parameters
    theta = np.stack([one.theta for one in each])
    k = int(np.argmax(np.ptp(theta, axis=0)))
    values = np.stack([np.asarray(solution.problem.values(one.theta[None])[0])[0] for one in each])
    sizes = np.cumsum([p.size for p in parameters])
    index = int(np.searchsorted(sizes, k, side="right"))
    column = values[:, sum(np.size(p.start) for p in list(parameters)[:index])]
    low, high = int(np.argmin(column)), int(np.argmax(column))
    path = list(parameters)[index].name
    return path, f"{column[low]:.3g} by {names[low]}", f"{column[high]:.3g} by {names[high]}"
