"""Segments of a fit simulated with half the time step, which shows the integration error of the whole step."""

import dataclasses

import jax
import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes
from truesim.identification.problem.shooting import SimulatedSegment


def simulate_halved(problem: Problem, theta: Float[np.ndarray, " size"], nodes: Nodes) -> SimulatedSegment:
    """Segments with half the time step, by the kernel of the fit: each interval as two of half its duration."""
    if problem.simulator.history:
        return halved(problem).simulate(theta, nodes)
    own, known, segment, *weights = problem.arguments(theta, nodes)
    twice = jax.tree.map(lambda x: np.repeat(x, 2, axis=1), segment.intervals)
    twice = twice._replace(duration=twice.duration / 2)
    count = segment.intervals.duration.shape[1]
    halves = [jax.tree.map(lambda x, k=k: x[:, k * count : (k + 1) * count], twice) for k in range(2)]
    before = problem.kernels.predict(own, known, segment._replace(intervals=halves[0]), *weights)
    middle = segment._replace(q=before.q, v=before.v, memory=before.memory, intervals=halves[1])
    after = problem.kernels.predict(own, known, middle, *weights)
    return after._replace(residual=np.concatenate([before.residual, after.residual], axis=1)[:, ::2])


def halved(problem: Problem) -> Problem:
    """The problem with half the time step, and room for twice as many past commands."""
    step = float(np.median(problem.layout.intervals.duration)) / problem.substeps
    simulator = dataclasses.replace(
        problem.simulator, timestep=np.asarray(step / 2), history=2 * problem.simulator.history
    )
    return dataclasses.replace(problem, simulator=simulator, like=None, selection=None)
