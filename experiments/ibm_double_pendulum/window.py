"""Fit of one second of one recording, parameters and initial state, tested in a single simulation.

`python -m experiments.ibm_double_pendulum.window`. It is the second that Tiny Differentiable Simulator's own experiment
fits: the first 400 frames of `train/28.csv`. The score is the root-mean-square error of both absolute arm angles over a
single simulation of the whole second from the fitted initial state.
"""

import jax
import numpy as np

from experiments.ibm_double_pendulum.forecast import arm_angles
from experiments.ibm_double_pendulum.parameters import patterns
from experiments.ibm_double_pendulum.recordings import RIG, first_second
from experiments.recorded import show
from truesim import native
from truesim.files.robots import load
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem

REQUIRED = 0.006
"""Largest accepted error [rad]."""
SECOND = 1.0


def fit() -> Solution:
    """Fit of the pendulum and the initial state."""
    log, camera = first_second()
    return solve_problem(
        build(load(RIG), [log], patterns(), ProblemOptions(per_log=camera)), SolveOptions(window=SECOND)
    )


def error(solution: Solution) -> float:
    """Error of both arm angles over one simulation of the whole second [rad]."""
    problem, nodes = solution.problem, solution.at.nodes
    frames = np.arange(len(problem.recordings[0].time) - 1)
    whole = problem.segments(0, frames[None], nodes.q[:1], nodes.v[:1])
    whole = jax.tree.map(lambda x: x[0], whole)
    assert problem.known_values is not None, "the camera's scale is known"
    arguments = (solution.theta, problem.known_values[0], whole)
    with jax.enable_x64(True):
        simulated = native.compile(problem.shooting.shoot, *arguments)(*arguments)
    measured = whole.intervals.measured
    off = np.angle(np.exp(1j * (arm_angles(measured + simulated.residual) - arm_angles(measured))))
    return float(np.sqrt(np.mean(off**2)))


def main() -> None:
    """Fit and print."""
    jax.config.update("jax_enable_x64", True)
    solution = fit()
    row = (solution.problem.layout.valid[..., 0].sum(), solution.solve_seconds, REQUIRED, error(solution))
    show("First second of train/28.csv", ("frames", "CPU seconds", "required [rad]", "reached [rad]"), [row])


if __name__ == "__main__":
    main()
