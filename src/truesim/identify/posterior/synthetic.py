"""Problems whose true parameters are known: the commands and stamps of real logs, the motion of the simulator.

All choices of the parameters are simulated side by side, stretch by stretch, each from where the last one ended.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.data import Log, command_columns, prepared
from truesim.identify.channels import Channel
from truesim.identify.fit import Solution
from truesim.identify.locate import located
from truesim.identify.problem import Problem
from truesim.identify.recording import Recording, recording
from truesim.identify.shooting import Interval, Stretch
from truesim.spatial.rotation import quaternion_exp, quaternion_product


def simulated(solution: Solution, theta: Float[np.ndarray, "lanes size"]) -> list[np.ndarray]:
    """What every log would have shown, as departures `lanes samples rows` from what it did; NaN beyond its end.

    Every segment of a log begins from the first state that the solution found for it.

    Args:
        solution: A solved problem.
        theta: Coordinates of the true parameters of each lane.
    """
    problem, nodes = solution.problem, solution.at.nodes
    if any(r.ahead for r in problem.recordings):
        raise TruesimError("Logs whose readings are late (sensors/*.delay) cannot be simulated again yet.")
    layout, lanes = problem.layout, len(theta)
    out = [np.full((lanes, len(r.time), len(problem.rows)), np.nan) for r in problem.recordings]
    q, v = nodes.q[:1], nodes.v[:1]
    for k, (log, first) in enumerate(zip(layout.log, layout.first, strict=True)):
        if not layout.follows[k]:
            q, v = np.repeat(nodes.q[k : k + 1], lanes, axis=0), np.repeat(nodes.v[k : k + 1], lanes, axis=0)
        intervals = Interval(*(x[k] for x in layout.intervals))
        known = np.zeros(0) if problem.known_values is None else problem.known_values[log]
        stretch = Stretch(q, v, layout.commands[k], layout.stamps[k], intervals)
        shot = problem.prediction(theta[:, problem.columns[log]], known, stretch)
        q, v = shot.q, shot.v
        inside = min(shot.residual.shape[1], _end(problem.recordings[log], int(first)) - int(first))
        out[log][:, first : first + inside] = shot.residual[:, :inside]
    if not all(np.isfinite(x).any(axis=(1, 2)).all() and not np.isinf(x).any() for x in out):
        raise TruesimError("The robot of this fit does not stay finite when its logs are simulated from end to end.")
    return out


def repeated(solution: Solution, departures: Sequence[np.ndarray], rng: np.random.Generator) -> Problem:
    """The same problem with simulated logs, and white noise of the level that the solution found.

    Args:
        solution: A solved problem.
        departures: Of each log, `samples rows`: one lane of what `simulated` gives.
        rng: Of the noise.
    """
    problem, model = solution.problem, solution.problem.simulator.model
    recordings = []
    with jax.enable_x64(True):
        for original, departure in zip(problem.recordings, departures, strict=True):
            noise = solution.weights.noise * rng.normal(size=departure.shape)
            log = _log(problem, original, np.where(original.valid, departure + noise, np.nan))
            clean = located([prepared(log, model)], model)[0]
            recordings.append(recording(clean, model, problem.channels, _inputs(original)))
    return dataclasses.replace(problem, recordings=tuple(recordings), like=problem)


def _end(recording: Recording, sample: int) -> int:
    """Last sample of the segment that a sample lies in."""
    return next(end for begin, end in recording.segments if begin <= sample < end)


def _log(problem: Problem, original: Recording, departure: Float[np.ndarray, "samples rows"]) -> Log:
    """The log that is measured as the original was, but for the departure."""
    columns = dict(zip(command_columns(problem.simulator.model), original.command.T, strict=True))
    columns |= dict(zip(_inputs(original), original.inputs.T, strict=True))
    row = at = 0
    for channel in problem.channels:
        own = original.measured[:, at : at + len(channel.columns)]
        values = _moved(channel, own, departure[:, row : row + len(channel.rows)])
        columns |= dict(zip(channel.columns, values.T, strict=True))
        row, at = row + len(channel.rows), at + len(channel.columns)
    return Log(original.time, columns, original.name)


def _inputs(original: Recording) -> list[str]:
    """Names for the columns that parameters follow."""
    return [f"input/{k}" for k in range(original.inputs.shape[1])]


def _moved(channel: Channel, measured: np.ndarray, departure: np.ndarray) -> np.ndarray:
    """Columns of a channel after a departure, rotations along rotation vectors."""
    if not channel.turns:
        return measured + departure
    turn = jax.vmap(lambda q, r: quaternion_product(q, quaternion_exp(r)))
    turned = np.asarray(turn(jnp.asarray(measured[:, -4:]), jnp.asarray(departure[:, -3:])))
    return np.concatenate([measured[:, :-4] + departure[:, :-3], turned], axis=1)
