"""States at the start of windows, estimated from what a log shows just before, without looking ahead.

Where positions were measured finely, a parabola goes through the last of them. Where encoders are too coarse for its
slope, or where only other sensors show the robot, the simulator itself is fitted: the state some samples earlier is the
one from which it meets the readings best.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.identify.noise import first_allowance, first_noise
from truesim.identify.problem import Problem
from truesim.model.kinds import HINGE, SLIDE

FEWEST_SAMPLES = 4
"""Samples that are looked at, at least."""
COARSE = 0.1
"""A slope is uncertain if its standard deviation is more than this part of the typical velocity."""
ITERATIONS = 25
DAMPING, FAINT = 1e-4, 1e-10
"""Levenberg-Marquardt's damping at first, and what keeps states that no reading shows where they were guessed."""

Seen = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From states to scaled residuals and their derivatives."""


class FirstStates(NamedTuple):
    """States from which windows are simulated."""

    lead: int
    """So many samples before the windows."""
    q: Float[np.ndarray, "windows nq"]
    v: Float[np.ndarray, "windows nv"]


def first_states(
    problem: Problem, theta: Float[np.ndarray, "size"], log: int, firsts: Sequence[int], before: float
) -> FirstStates:
    """States for windows of one log.

    Args:
        problem: The problem.
        theta: Coordinates of its parameters.
        log: Which log.
        firsts: First sample of each window.
        before: How long before its first sample a window may be looked at [s].
    """
    recording = problem.recordings[log]
    step = float(np.median(np.diff(recording.time)))
    if not recording.hidden and not _coarse(problem, before, step):
        return _from_positions(problem, theta, log, firsts, before)
    longest = problem.layout.intervals.duration.shape[1] - 1
    lead = int(np.clip(round(before / step), FEWEST_SAMPLES - 1, min(longest, min(firsts))))
    return _from_readings(problem, theta, log, np.array(firsts) - lead, lead)


def _coarse(problem: Problem, before: float, step: float) -> bool:
    """Whether noise of the positions makes the slope of a parabola at its end uncertain.

    With n samples of noise s over a time T its standard deviation is s / T sqrt(192 / n).
    """
    noise = first_allowance(problem)[: problem.simulator.model.nv]
    count = max(round(before / step) + 1, FEWEST_SAMPLES)
    slope = noise / (step * (count - 1)) * np.sqrt(192 / count)
    typical = np.sqrt(np.mean(np.concatenate([r.v for r in problem.recordings]) ** 2, axis=0))
    return bool(np.median(slope / np.maximum(typical, 1e-9)) > COARSE)


def _from_positions(problem: Problem, theta: np.ndarray, log: int, firsts: Sequence[int], before: float) -> FirstStates:
    """Parabolas through the positions just before."""
    model, recording = problem.simulator_at(theta, log).model, problem.recordings[log]
    bias = np.asarray(model.sensors.bias)[model.sensors.positions]
    scale = np.asarray(model.sensors.scale)[model.sensors.positions]
    q, v = recording.q[list(firsts)].copy(), recording.v[list(firsts)].copy()
    for row, first in enumerate(firsts):
        begin = int(np.searchsorted(recording.time, recording.time[first] - before - 1e-9))
        near = slice(min(begin, max(first - FEWEST_SAMPLES + 1, 0)), first + 1)
        time = recording.time[near] - recording.time[first]
        for link in model.topology.links:
            if link.joint >= 0 and link.kind in (HINGE, SLIDE):
                k = link.q_start
                value, slope = parabola(time, recording.q[near, k])
                q[row, k], v[row, link.v_start] = (value - bias[k]) / scale[k], slope / scale[k]
    return FirstStates(0, q, v)


def _from_readings(problem: Problem, theta: np.ndarray, log: int, begins: np.ndarray, lead: int) -> FirstStates:
    """The states at samples `begins` from which a simulation meets the readings up to `lead` samples later best."""
    recording = problem.recordings[log]
    size = problem.layout.intervals.duration.shape[1]
    at = np.minimum(begins[:, None] + np.arange(size), len(recording.time) - 2)
    used = recording.valid[at] & (np.arange(size) <= lead)[:, None]
    factor = np.where(used, 1 / first_noise(problem), 0.0)

    def seen(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Readings' departures in units of their noise, and their derivatives by the first state."""
        shot, sensitivity = problem.predict_with_derivatives(theta, log, problem.stretches(log, at, q, v))
        r = np.where(used, shot.residual * factor, 0.0).reshape(len(q), -1)
        J = sensitivity.residual[..., -2 * v.shape[1] :] * factor[..., None]
        return r, np.where(used[..., None], J, 0.0).reshape(*r.shape, -1)

    q = recording.q[begins]
    span = recording.time[begins + lead] - recording.time[begins]
    v = problem.apart(recording.q[begins + lead], q) / span[:, None]
    return FirstStates(lead, *_fitted(problem, seen, q, v))


def _fitted(problem: Problem, seen: Seen, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levenberg-Marquardt for many states side by side."""
    nv = v.shape[1]
    r, J = seen(q, v)
    damping = np.full(len(q), DAMPING)
    for _ in range(ITERATIONS):
        H = J.transpose(0, 2, 1) @ J
        scale = np.einsum("wii->wi", H) * (1 + damping[:, None]) + FAINT * np.trace(H, axis1=1, axis2=2)[:, None]
        H[:, np.arange(2 * nv), np.arange(2 * nv)] = np.maximum(scale, 1e-300)
        step = -np.linalg.solve(H, (J.transpose(0, 2, 1) @ r[..., None]))[..., 0]
        trial = problem.moved(q, step[:, :nv]), v + step[:, nv:]
        r_trial, J_trial = seen(*trial)
        better = np.nan_to_num((r_trial**2).sum(axis=1), nan=np.inf) <= (r**2).sum(axis=1)
        q, v = np.where(better[:, None], trial[0], q), np.where(better[:, None], trial[1], v)
        r, J = np.where(better[:, None], r_trial, r), np.where(better[:, None, None], J_trial, J)
        damping = np.where(better, damping / 10, damping * 10)
    return q, v


def parabola(time: Float[np.ndarray, "n"], values: Float[np.ndarray, "n"]) -> tuple[float, float]:
    """Value and slope at time zero of the parabola that fits best; a line through two samples."""
    reach = max(float(np.abs(time).max()), 1e-9)
    degree = min(2, len(time) - 1)
    fitted = np.polynomial.polynomial.polyfit(time / reach, values, degree)
    return float(fitted[0]), float(fitted[1] / reach) if degree else 0.0
