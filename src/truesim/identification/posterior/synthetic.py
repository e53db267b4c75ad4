"""Problems with known true parameters: commands and stamps of real logs, simulated motion.

All candidates are simulated in one batch, segment by segment, each from the end of the one before.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.files.logs import Log, prepare
from truesim.identification.problem.channels import Channel
from truesim.identification.problem.locate import locate
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import Recording, recording
from truesim.identification.problem.shooting import Interval, Segment
from truesim.identification.solve.solution import Solution
from truesim.math.spatial.rotation import quaternion_exp, quaternion_product
from truesim.physics.model.columns import command_columns


def simulate_logs(solution: Solution, theta: Float[np.ndarray, "batch size"]) -> list[np.ndarray]:
    """Simulated minus recorded measurements of every log, `batch samples rows`; NaN beyond the end of a log.

    Each continuous piece of a log starts from the initial state of the solution.

    Args:
        solution: A solved problem.
        theta: Coordinates of the true parameters of each batch element.
    """
    problem, nodes = solution.problem, solution.at.nodes
    if any(r.lookahead for r in problem.recordings):
        raise TruesimError("Logs with delayed measurements (sensors/*.delay) cannot be simulated again yet.")
    layout, count = problem.layout, len(theta)
    out = [np.full((count, len(r.time), len(problem.rows)), np.nan) for r in problem.recordings]
    q, v = nodes.q[:1], nodes.v[:1]
    for k, (log, first) in enumerate(zip(layout.log, layout.first, strict=True)):
        if not layout.follows[k]:
            q, v = np.repeat(nodes.q[k : k + 1], count, axis=0), np.repeat(nodes.v[k : k + 1], count, axis=0)
        intervals = Interval(*(x[k] for x in layout.intervals))
        known = np.zeros(0) if problem.known_values is None else problem.known_values[log]
        segment = Segment(q, v, layout.commands[k], layout.stamps[k], intervals)
        simulated = problem.kernels.values(theta[:, problem.columns[log]], known, segment)
        q, v = simulated.q, simulated.v
        inside = min(simulated.residual.shape[1], _end(problem.recordings[log], int(first)) - int(first))
        out[log][:, first : first + inside] = simulated.residual[:, :inside]
    if not all(np.isfinite(x).any(axis=(1, 2)).all() and not np.isinf(x).any() for x in out):
        raise TruesimError("The simulation of this fit diverges when its logs are simulated from end to end.")
    return out


def replace_measurements(solution: Solution, deviations: Sequence[np.ndarray], rng: np.random.Generator) -> Problem:
    """Problem with simulated logs and white noise of the level of the solution.

    Args:
        solution: A solved problem.
        deviations: For each log, one batch element of `simulate_logs`, `samples rows`.
        rng: Generator of the noise.
    """
    problem, model = solution.problem, solution.problem.simulator.model
    recordings = []
    with jax.enable_x64(True):
        for original, deviation in zip(problem.recordings, deviations, strict=True):
            noise = solution.weights.noise * rng.normal(size=deviation.shape)
            log = _log(problem, original, np.where(original.valid, deviation + noise, np.nan))
            clean = locate([prepare(log, model)], model)[0]
            recordings.append(recording(clean, model, problem.channels, _inputs(original)))
    return dataclasses.replace(problem, recordings=tuple(recordings), like=problem)


def _end(recording: Recording, sample: int) -> int:
    """Last sample of the continuous piece that contains a sample."""
    return next(end for begin, end in recording.pieces if begin <= sample < end)


def _log(problem: Problem, original: Recording, deviation: Float[np.ndarray, "samples rows"]) -> Log:
    """Log with the measurements of the original plus a deviation."""
    columns = dict(zip(command_columns(problem.simulator.model), original.command.T, strict=True))
    columns |= dict(zip(_inputs(original), original.inputs.T, strict=True))
    row = at = 0
    for channel in problem.channels:
        own = original.measured[:, at : at + len(channel.columns)]
        values = _add_deviation(channel, own, deviation[:, row : row + len(channel.rows)])
        columns |= dict(zip(channel.columns, values.T, strict=True))
        row, at = row + len(channel.rows), at + len(channel.columns)
    return Log(original.time, columns, original.name)


def _inputs(original: Recording) -> list[str]:
    """Names of the columns that parameters follow."""
    return [f"input/{k}" for k in range(original.inputs.shape[1])]


def _add_deviation(channel: Channel, measured: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Columns of a channel plus a deviation; rotations are composed with rotation vectors."""
    if not channel.has_quaternion:
        return measured + deviation
    turn = jax.vmap(lambda q, r: quaternion_product(q, quaternion_exp(r)))
    turned = np.asarray(turn(jnp.asarray(measured[:, -4:]), jnp.asarray(deviation[:, -3:])))
    return np.concatenate([measured[:, :-4] + deviation[:, :-3], turned], axis=1)
