"""The fit of a search on MuJoCo: intervals from differences, errors and verdict from MuJoCo's own simulations."""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.evaluate import Prediction
from truesim.identify.fit import Solution
from truesim.identify.noise import first_noise
from truesim.identify.normal import Point, Weights
from truesim.identify.problem import Problem
from truesim.identify.result import Fit, assembled
from truesim.identify.search.hopping import Found
from truesim.identify.search.mujoco_engine import MujocoEngine
from truesim.identify.search.open_loop import Windows, prior
from truesim.identify.shooting import Sensitivity, Shot
from truesim.identify.uncertainty import Uncertainty, correlated

NUDGE = 1e-3
"""Step of central differences, in coordinates: large beside the roughness that contacts and friction give the cost."""


def conclude_on_mujoco(engine: MujocoEngine, found: Found, held_out: MujocoEngine | None = None) -> Fit:
    """Intervals, errors and the verdict of what a search on MuJoCo found.

    Args:
        engine: What was searched.
        found: What the search came to.
        held_out: The same with logs that were not fitted to.
    """
    problem, theta = engine.problem, found.best.theta
    start = problem.parameters.start
    simulated = {}
    for name, own in (("train", engine), ("held_out", held_out)):
        if own is not None:
            pairs = own.residuals(np.stack([theta, start]))
            simulated[name] = [_prediction(windows, r[0]) for windows, r in pairs]
            simulated[f"{name}_start"] = [_prediction(windows, r[1]) for windows, r in pairs]
    residual = _by_sample(problem, simulated["train"])
    noise = np.maximum(_spread(simulated["train"]), first_noise(problem))
    nodes, none = problem.first_nodes(), np.zeros((problem.layout.size, 0))
    nothing = Sensitivity(np.zeros((0,)), np.zeros((0,)))
    solution = Solution(
        problem=problem,
        at=Point(theta, nodes, Shot(residual, nodes.q, nodes.v, none), nothing),
        weights=Weights(noise, np.ones(2 * nodes.v.shape[1])),
        windows=problem.layout.windows(max(1, round(engine.window / problem.layout.seconds))),
        start=Point(start, nodes, Shot(_by_sample(problem, simulated["train_start"]), nodes.q, nodes.v, none), nothing),
        sensor_noise=first_noise(problem),
        converged=found.best.ending == "converged",
        interrupted=found.interrupted,
        history=(),
        compile_seconds=0.0,
        solve_seconds=found.seconds,
        found=found,
    )
    return assembled(
        solution, _uncertainty(engine, theta, noise), simulated, None if held_out is None else held_out.problem
    )


def _uncertainty(engine: MujocoEngine, theta: np.ndarray, noise: np.ndarray) -> Uncertainty:
    """Covariance from central differences of the residuals, first states as they were taken."""
    size = len(theta)
    low, high = engine.box.low, engine.box.high
    below, above = np.maximum(theta - NUDGE, low), np.minimum(theta + NUDGE, high)
    moved = np.concatenate([theta[None], *(np.where(np.eye(size, dtype=bool), edge, theta) for edge in (above, below))])
    middle, times, total = np.zeros((size, size)), [], prior(engine.problem, theta[None]).matrix[0]
    for windows, r in engine.residuals(moved):
        used = windows.factor > 0
        scaled = np.where(used & np.isfinite(r), r / noise, 0.0)
        J = np.moveaxis(scaled[1 : size + 1] - scaled[size + 1 :], 0, -1) / (above - below)
        part, time = correlated(scaled[0], J, used.astype(float))
        middle, total = middle + part, total + np.einsum("wirp,wirq->pq", J, J)
        times.append(time)
    inverse = np.linalg.inv(total)
    covariance = inverse @ (middle + prior(engine.problem, theta[None]).matrix[0]) @ inverse
    covariance = (covariance + covariance.T) / 2
    _, jacobian = engine.problem.values(theta)
    return Uncertainty(covariance, jacobian @ covariance @ jacobian.T, np.median(times, axis=0))


def _prediction(windows: Windows, residual: Float[np.ndarray, "windows intervals rows"]) -> Prediction:
    residual = np.where(np.isfinite(residual), residual, np.inf)
    return Prediction(windows.log, windows.at[:, 0], residual, windows.factor > 0)


def _spread(predicted: list[Prediction]) -> Float[np.ndarray, "rows"]:
    """Root-mean-square residual of each row."""
    squares = [np.square(np.where(p.valid, p.residual, 0.0)).sum(axis=(0, 1)) for p in predicted]
    total, count = np.sum(squares, axis=0), np.sum([p.valid.sum(axis=(0, 1)) for p in predicted], axis=0)
    return np.sqrt(total / np.maximum(count, 1))


def _by_sample(problem: Problem, predicted: list[Prediction]) -> Float[np.ndarray, "stretches intervals rows"]:
    """Residuals of windows at the samples of the problem's own stretches; zero where no window was."""
    layout = problem.layout
    out = np.zeros(layout.valid.shape)
    for p in predicted:
        samples = len(problem.recordings[p.log].time)
        held = np.zeros((samples, len(problem.rows)))
        count = np.arange(np.shape(p.residual)[1])
        at = np.minimum(p.first[:, None] + count, samples - 1)
        inside = p.valid.any(axis=-1)
        held[at[inside]] = p.residual[inside]
        mine = layout.log == p.log
        places = np.minimum(layout.first[mine][:, None] + np.arange(layout.intervals.duration.shape[1]), samples - 1)
        out[mine] = held[places]
    return out
