"""Dependence of the estimates on the time step: what they would be with half of it.

A simulation with a finite step errs, and the estimates make up for the error: with a long step, armatures and damping
stand for numerical damping as well. The segments are simulated once more with half the step. One Gauss-Newton step
with those residuals, and the derivatives at hand, is the change of the estimates.
"""

import dataclasses

import numpy as np

from truesim.core.timing import part
from truesim.core.typing import Float
from truesim.identification.diagnose.estimates import Estimate
from truesim.identification.diagnose.halved_step import simulate_halved
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Code, Diagnostic
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.normal_equations import normal_equations
from truesim.identification.solve.solution import Solution
from truesim.optimize.box import minimize_in_box


def time_step_diagnostics(
    solution: Solution, estimates: tuple[Estimate, ...], options: DiagnoseOptions
) -> tuple[Diagnostic, ...]:
    """Estimates that half the time step would move out of their intervals, those that move most first.

    Contact and large networks are left out: their kernels compile for longer than the answer is worth.

    Args:
        solution: The solved problem.
        estimates: Its estimates.
        options: Thresholds.
    """
    problem = solution.problem
    simulator = problem.simulator
    if simulator.contact is not None or simulator.constraint_contact is not None or problem.trained.size:
        return ()
    if not solution.differentiable or not len(problem.solved):
        return ()
    with part("halving the time step"):
        moved, _ = problem.values(solution.theta + half_step_shift(solution))
    step = float(np.median(problem.layout.intervals.duration)) / problem.substeps
    found = []
    for p, n in zip(problem.solved, problem.solved.number_slices(), strict=True):
        for e in (e for e in estimates if e.path == p.name and e.identifiable):
            value, new, half = np.ravel(e.value), moved[n], np.ravel(e.high - e.low) / 2
            change = np.abs(new - value) / np.maximum(np.abs(value), 1e-300)
            change = np.where(np.abs(new - value) > half, change, 0.0)
            k = int(np.argmax(change))
            if change[k] > options.step_change:
                name = e.path if value.size == 1 else f"{e.path}[{k}]"
                ratio = new[k] / value[k] if value[k] else np.inf
                found.append(Diagnostic(Code.TIME_STEP, (name, f"{1e3 * step / 2:.3g}"), new[k], ratio))
    return tuple(sorted(found, key=lambda d: -abs(d.ratio - 1)))


def half_step_shift(solution: Solution) -> Float[np.ndarray, " size"]:
    """Change of the coordinates if the same logs were fitted with half the time step."""
    problem, at, windows = solution.problem, solution.at, solution.windows
    finer = dataclasses.replace(at, simulated=simulate_halved(problem, at.theta, at.nodes))
    here, there = (eliminate_states(normal_equations(problem, each, solution.weights, windows)) for each in (at, finer))
    size = problem.solved.size
    low, high = problem.solved.bounds
    theta = at.theta[:size]
    H = here.corner + 1e-14 * np.trace(here.corner) * np.eye(size)
    return minimize_in_box(H, there.gradient - here.gradient, low - theta, high - theta)
