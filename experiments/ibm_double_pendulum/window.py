"""Fits one second of one recording, parameters and first state, and simulates it in one go.

`python -m experiments.ibm_double_pendulum.window`. It is the second that Tiny Differentiable Simulator's own experiment
fits: the first 400 frames of `train/28.csv`. The score is the root-mean-square error of both absolute arm angles over a
single simulation of the whole second from the fitted first state.
"""

import jax
import numpy as np

from experiments.ibm_double_pendulum.__main__ import patterns
from experiments.ibm_double_pendulum.forecast import arm_angles
from experiments.ibm_double_pendulum.recordings import RIG, first_second
from experiments.recorded import show
from truesim import native
from truesim.formats import load
from truesim.identify.build import Options, build
from truesim.identify.fit import Settings, Solution, solve_problem

REQUIRED = 0.006
"""Error that is allowed [rad]."""
SECOND = 1.0


def fit() -> Solution:
    """The pendulum and the first state that explain the second."""
    log, camera = first_second()
    return solve_problem(build(load(RIG), [log], patterns(), Options(per_log=camera)), Settings(window=SECOND))


def error(solution: Solution) -> float:
    """Error of both arm angles over one simulation of the whole second [rad]."""
    problem, nodes = solution.problem, solution.at.nodes
    frames = np.arange(len(problem.recordings[0].time) - 1)
    whole = problem.stretches(0, frames[None], nodes.q[:1], nodes.v[:1])
    whole = jax.tree.map(lambda x: x[0], whole)
    assert problem.known_values is not None, "the camera's scale is known"
    arguments = (solution.theta, problem.known_values[0], whole)
    with jax.enable_x64(True):
        shot = native.compile(problem.shooting.shoot, *arguments)(*arguments)
    measured = whole.intervals.measured
    off = np.angle(np.exp(1j * (arm_angles(measured + shot.residual) - arm_angles(measured))))
    return float(np.sqrt(np.mean(off**2)))


def main() -> None:
    """Fits and prints."""
    jax.config.update("jax_enable_x64", True)
    solution = fit()
    row = (solution.problem.layout.valid[..., 0].sum(), solution.solve_seconds, REQUIRED, error(solution))
    show("First second of train/28.csv", ("frames", "CPU seconds", "required [rad]", "reached [rad]"), [row])


if __name__ == "__main__":
    main()
