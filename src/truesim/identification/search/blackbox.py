"""Fit of a search on MuJoCo: intervals from finite differences, errors and status from MuJoCo's own simulations."""

from typing import NoReturn

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.diagnose.diagnosis import Diagnosis, Part, diagnose_predictions
from truesim.identification.diagnose.evaluation import Prediction
from truesim.identification.diagnose.noise_memory import noise_memory
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.shooting import Sensitivity, SimulatedSegment
from truesim.identification.search.mujoco_engine import MujocoEngine
from truesim.identification.search.open_loop import LogWindows, prior_equations
from truesim.identification.solve.levenberg_marquardt import Ending
from truesim.identification.solve.noise import initial_noise
from truesim.identification.solve.normal_equations import Point, ResidualWeights
from truesim.identification.solve.solution import NO_DERIVATIVES, Solution
from truesim.optimize.basin_hopping import SearchResult
from truesim.optimize.basins import SolveStatus

DIFFERENCE_STEP = 1e-3
"""Step of central differences, in coordinates: large compared with the roughness that contact and friction cause."""


class NoSensitivity(Sensitivity):
    """Sensitivity of a solution that was simulated by MuJoCo: every access is an error."""

    def __new__(cls) -> "NoSensitivity":
        """Make a sensitivity without numbers."""
        return super().__new__(cls, np.zeros(0), np.zeros(0))

    def __getattribute__(self, name: str) -> object:
        return _refuse() if name in Sensitivity._fields else super().__getattribute__(name)


def _refuse() -> NoReturn:
    raise TruesimError(NO_DERIVATIVES)


def diagnose_on_mujoco(
    engine: MujocoEngine,
    found: SearchResult,
    held_out: MujocoEngine | None = None,
    options: DiagnoseOptions | None = None,
) -> tuple[Solution, Diagnosis]:
    """Solution and diagnosis of a search on MuJoCo.

    The covariance comes from central differences, errors and status from MuJoCo's own simulations. Anything that needs
    derivatives of segments (a mixture posterior, covariances computed again) is refused with a sentence.

    Args:
        engine: The searched objective.
        found: Result of the search.
        held_out: The same objective on held-out logs.
        options: Thresholds of the diagnosis.
    """
    problem, theta = engine.problem, found.best.theta
    simulated: dict[Part, list[Prediction]] = {}
    for part, start, own in (
        (Part.TRAIN, Part.TRAIN_START, engine),
        (Part.HELD_OUT, Part.HELD_OUT_START, held_out),
    ):
        if own is not None:
            pairs = own.residuals(np.stack([theta, problem.parameters.start]))
            simulated[part] = [_prediction(windows, r[0]) for windows, r in pairs]
            simulated[start] = [_prediction(windows, r[1]) for windows, r in pairs]
    noise = np.maximum(_residual_rms(simulated[Part.TRAIN]), initial_noise(problem))
    solution = Solution.at_point(
        problem,
        _point(problem, theta, simulated[Part.TRAIN]),
        weights=ResidualWeights(noise, np.ones(2 * problem.simulator.model.nv)),
        windows=problem.layout.windows(max(1, round(engine.window / problem.layout.seconds))),
        sensor_noise=initial_noise(problem),
        ending=_ending(found),
        solve_seconds=found.seconds,
        found=found,
        differentiable=False,
    )
    other = None if held_out is None else held_out.problem
    return solution, diagnose_predictions(solution, _uncertainty(engine, theta, noise), simulated, other, options)


def _ending(found: SearchResult) -> Ending:
    if found.interrupted:
        return Ending.INTERRUPTED
    return Ending.CONVERGED if found.best.status == SolveStatus.CONVERGED else Ending.ITERATION_LIMIT


def _point(problem: Problem, theta: np.ndarray, predicted: list[Prediction]) -> Point:
    """Point with the residuals of MuJoCo and without derivatives."""
    nodes = problem.initial_nodes()
    simulated = SimulatedSegment(
        _residuals_by_sample(problem, predicted), nodes.q, nodes.v, np.zeros((problem.layout.size, 0))
    )
    return Point(theta, nodes, simulated, NoSensitivity())


def _uncertainty(engine: MujocoEngine, theta: np.ndarray, noise: np.ndarray) -> Uncertainty:
    """Covariance from central differences of the residuals, with fixed initial states."""
    size = len(theta)
    low, high = engine.space.low, engine.space.high
    below, above = np.maximum(theta - DIFFERENCE_STEP, low), np.minimum(theta + DIFFERENCE_STEP, high)
    moved = np.concatenate([theta[None], *(np.where(np.eye(size, dtype=bool), edge, theta) for edge in (above, below))])
    prior = prior_equations(engine.problem, theta[None]).matrix[0]
    middle, times, total = np.zeros((size, size)), [], prior
    for windows, r in engine.residuals(moved):
        used = windows.factor > 0
        scaled = np.where(used & np.isfinite(r), r / noise, 0.0)
        J = np.moveaxis(scaled[1 : size + 1] - scaled[size + 1 :], 0, -1) / (above - below)
        memory = noise_memory(scaled[0], used.astype(float), None)
        middle, total = middle + memory.information(J), total + np.einsum("wirp,wirq->pq", J, J)
        times.append(memory.correlation_time)
    inverse = np.linalg.inv(total)
    covariance = inverse @ (middle + prior) @ inverse
    covariance = (covariance + covariance.T) / 2
    _, jacobian = engine.problem.values(theta)
    return Uncertainty(covariance, jacobian @ covariance @ jacobian.T, np.median(times, axis=0))


def _prediction(windows: LogWindows, residual: Float[np.ndarray, "windows intervals rows"]) -> Prediction:
    residual = np.where(np.isfinite(residual), residual, np.inf)
    return Prediction(windows.log, windows.at[:, 0], residual, windows.factor > 0)


def _residual_rms(predicted: list[Prediction]) -> Float[np.ndarray, " rows"]:
    """Root-mean-square residual of each row."""
    squares = [np.square(np.where(p.valid, p.residual, 0.0)).sum(axis=(0, 1)) for p in predicted]
    total, count = np.sum(squares, axis=0), np.sum([p.valid.sum(axis=(0, 1)) for p in predicted], axis=0)
    return np.sqrt(total / np.maximum(count, 1))


def _residuals_by_sample(problem: Problem, predicted: list[Prediction]) -> Float[np.ndarray, "segments intervals rows"]:
    """Residuals of the windows at the samples of the problem's segments; zero where there is no window."""
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
