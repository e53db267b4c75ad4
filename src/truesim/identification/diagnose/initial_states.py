"""Initial states of windows, estimated from the samples before them.

With precise positions, a parabola is fitted to the last of them, over the time that predicts later positions best. With
positions too noisy for its derivative, or with other sensors only, the simulator is fitted: the state some samples
earlier minimizes the residuals up to the window.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import Recording
from truesim.identification.solve.noise import initial_defect_std, initial_noise
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model

MIN_LEAD_IN_SAMPLES = 4
"""Minimum number of samples for an initial state. Larger averages more noise and more model error."""
MAX_VELOCITY_STD = 0.1
"""Standard deviation of a parabola's velocity, relative to the root-mean-square velocity, beyond which the simulator is
fitted instead. Larger prefers parabolas."""
LEAD_IN_FACTORS = (1, 2, 4)
"""Lengths of parabolas that are tried, relative to the shortest. Longer ones average more noise."""
LEAD_IN_GAIN = 0.4
"""A longer parabola is used if its error in predicting later positions is below this fraction of that of the shortest.
Larger prefers longer parabolas."""
LEAD_IN_TRIALS = 50
"""Places of a log at which lengths of parabolas are compared. Larger is slower and chooses more reliably."""
LEAD_IN_HORIZON = 2.0
"""Time over which parabolas predict when they are compared, relative to the shortest. Larger weights velocities
more than positions."""
INITIAL_STATE_ITERATIONS = 25
"""Levenberg-Marquardt iterations. Larger is more accurate and slower."""
INITIAL_STATE_DAMPING = 1e-4
"""Initial damping. Larger makes the first steps shorter."""
STATE_REGULARIZATION = 1e-10
"""Damping relative to the trace of the normal matrix. Larger holds unmeasured components closer to their guess."""

ResidualFunction = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From configurations and velocities to scaled residuals and their derivatives."""


class InitialStates(NamedTuple):
    """Initial states of windows."""

    lead: int
    """Number of samples between these states and the start of the windows."""
    q: Float[np.ndarray, "windows nq"]
    v: Float[np.ndarray, "windows nv"]


def initial_states(
    problem: Problem, theta: Float[np.ndarray, " size"], log: int, firsts: Sequence[int], before: float
) -> InitialStates:
    """Estimate the initial states of windows of one log.

    Args:
        problem: The problem.
        theta: Coordinates of the parameters.
        log: Index of the log.
        firsts: First sample of each window.
        before: Length of the part before a window that is used [s].
    """
    recording = problem.recordings[log]
    step = float(np.median(np.diff(recording.time)))
    if not recording.has_unmeasured_joints and not _is_noisy(problem, before, step):
        return _from_positions(problem, theta, log, firsts, before)
    longest = problem.layout.intervals.duration.shape[1] - 1
    lead = int(np.clip(round(before / step), MIN_LEAD_IN_SAMPLES - 1, min(longest, min(firsts))))
    return _from_measurements(problem, theta, log, np.array(firsts) - lead, lead)


def are_from_positions(problem: Problem, log: int, before: float) -> bool:
    """True if initial states are parabolas through positions, which do not depend on the parameters."""
    recording = problem.recordings[log]
    step = float(np.median(np.diff(recording.time)))
    noisy = recording.has_unmeasured_joints or _is_noisy(problem, before, step)
    return not noisy and not _has_sensor_parameters(problem)


def _is_noisy(problem: Problem, before: float, step: float) -> bool:
    """True if positions are too noisy for the velocity at the end of a parabola.

    With n samples of noise s over a time T, its standard deviation is s / T sqrt(192 / n).
    """
    noise = initial_defect_std(problem)[: problem.simulator.model.nv]
    count = max(round(before / step) + 1, MIN_LEAD_IN_SAMPLES)
    std = noise / (step * (count - 1)) * np.sqrt(192 / count)
    typical = np.sqrt(np.mean(np.concatenate([r.v for r in problem.recordings]) ** 2, axis=0))
    return bool(np.median(std / np.maximum(typical, 1e-9)) > MAX_VELOCITY_STD)


def _from_positions(
    problem: Problem, theta: np.ndarray, log: int, firsts: Sequence[int], before: float
) -> InitialStates:
    """Fit parabolas to the positions before each window."""
    model, recording = _model_of_sensors(problem, theta, log), problem.recordings[log]
    bias = np.asarray(model.sensors.bias)[model.sensors.positions]
    scale = np.asarray(model.sensors.scale)[model.sensors.positions]
    q, v = recording.q[list(firsts)].copy(), recording.v[list(firsts)].copy()
    lead_in = choose_lead_ins(recording, before)
    for link in model.topology.links:
        if link.joint < 0 or link.kind not in (HINGE, SLIDE):
            continue
        k = link.q_start
        for row, first in enumerate(firsts):
            near = _samples_before(recording, first, lead_in[k])
            time = recording.time[near] - recording.time[first]
            value, velocity = fit_parabola(time, recording.q[near, k])
            q[row, k], v[row, link.v_start] = (value - bias[k]) / scale[k], velocity / scale[k]
    return InitialStates(0, q, v)


def _samples_before(recording: Recording, first: int, before: float) -> slice:
    """Samples of the time before one of them, in its own contiguous piece."""
    start = max((begin for begin, _ in recording.pieces if begin <= first), default=0)
    begin = int(np.searchsorted(recording.time, recording.time[first] - before - 1e-9))
    return slice(max(start, min(begin, max(first - MIN_LEAD_IN_SAMPLES + 1, 0))), first + 1)


def choose_lead_ins(recording: Recording, before: float) -> Float[np.ndarray, " nq"]:
    """Length of the parabola that predicts later positions of each coordinate best [s].

    Args:
        recording: A recording with joint positions.
        before: The shortest length [s].
    """
    lengths = before * np.array(LEAD_IN_FACTORS, float)
    time, horizon = recording.time, LEAD_IN_HORIZON * before
    squares = np.zeros((len(lengths), recording.q.shape[1]))
    for begin, end in recording.pieces:
        inside = (time[begin:end] > time[begin] + lengths[-1]) & (time[begin:end] < time[end] - horizon)
        places = begin + np.flatnonzero(inside)
        for at in places[:: max(1, len(places) // LEAD_IN_TRIALS)]:
            later = int(np.searchsorted(time, time[at] + horizon))
            for row, length in enumerate(lengths):
                near = _samples_before(recording, int(at), length)
                x = (time[near] - time[at]) / length
                fitted = np.polynomial.polynomial.polyfit(x, recording.q[near], min(2, len(x) - 1))
                predicted = np.polynomial.polynomial.polyval((time[later] - time[at]) / length, fitted)
                squares[row] += (predicted - recording.q[later]) ** 2
    best = np.argmin(squares, axis=0)
    smallest = np.min(squares, axis=0)
    return np.where(smallest < LEAD_IN_GAIN**2 * squares[0], lengths[best], lengths[0])


def _model_of_sensors(problem: Problem, theta: np.ndarray, log: int) -> Model:
    """A model with the sensors' values of one log; that of the problem, if no parameter is one of a sensor."""
    return problem.simulator_at(theta, log).model if _has_sensor_parameters(problem) else problem.simulator.model


def _has_sensor_parameters(problem: Problem) -> bool:
    targets = [t for p in problem.solved for t in p.targets] + [*problem.known, *problem.inputs]
    return any(target.path.group == "sensors" for target in targets)


def _from_measurements(problem: Problem, theta: np.ndarray, log: int, begins: np.ndarray, lead: int) -> InitialStates:
    """States at samples `begins` that minimize the residuals of the simulation over `lead` samples."""
    recording = problem.recordings[log]
    size = problem.layout.intervals.duration.shape[1]
    at = np.minimum(begins[:, None] + np.arange(size), len(recording.time) - 2)
    used = recording.valid[at] & (np.arange(size) <= lead)[:, None]
    factor = np.where(used, 1 / initial_noise(problem), 0.0)

    def residuals(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals in units of the noise, and their derivatives by the initial state."""
        simulated, sensitivity = problem.predict_with_derivatives(theta, log, problem.segments(log, at, q, v))
        r = np.where(used, simulated.residual * factor, 0.0).reshape(len(q), -1)
        J = sensitivity.residual[..., -2 * v.shape[1] :] * factor[..., None]
        return r, np.where(used[..., None], J, 0.0).reshape(*r.shape, -1)

    q = recording.q[begins]
    span = recording.time[begins + lead] - recording.time[begins]
    v = problem.tangent_space.difference(recording.q[begins + lead], q) / span[:, None]
    return InitialStates(lead, *_fit(problem, residuals, q, v))


def _fit(problem: Problem, residuals: ResidualFunction, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Levenberg-Marquardt for a batch of states."""
    nv = v.shape[1]
    r, J = residuals(q, v)
    damping = np.full(len(q), INITIAL_STATE_DAMPING)
    for _ in range(INITIAL_STATE_ITERATIONS):
        H = J.transpose(0, 2, 1) @ J
        scale = (
            np.einsum("wii->wi", H) * (1 + damping[:, None])
            + STATE_REGULARIZATION * np.trace(H, axis1=1, axis2=2)[:, None]
        )
        H[:, np.arange(2 * nv), np.arange(2 * nv)] = np.maximum(scale, 1e-300)
        step = -np.linalg.solve(H, (J.transpose(0, 2, 1) @ r[..., None]))[..., 0]
        trial = problem.tangent_space.integrate(q, step[:, :nv]), v + step[:, nv:]
        r_trial, J_trial = residuals(*trial)
        accepted = np.nan_to_num((r_trial**2).sum(axis=1), nan=np.inf) <= (r**2).sum(axis=1)
        q, v = np.where(accepted[:, None], trial[0], q), np.where(accepted[:, None], trial[1], v)
        r, J = np.where(accepted[:, None], r_trial, r), np.where(accepted[:, None, None], J_trial, J)
        damping = np.where(accepted, damping / 10, damping * 10)
    return q, v


def fit_parabola(time: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Value and derivative at time zero of the least-squares parabola; a line for two samples."""
    reach = max(float(np.abs(time).max()), 1e-9)
    degree = min(2, len(time) - 1)
    fitted = np.polynomial.polynomial.polyfit(time / reach, values, degree)
    return float(fitted[0]), float(fitted[1] / reach) if degree else 0.0
