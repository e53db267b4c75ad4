"""Covariance of the estimates, for residuals that are correlated in time (sandwich estimator).

J is the Jacobian of the scaled residuals by the parameters, with the initial states eliminated. If H = J^T J and the
noise has the autocovariance c, the covariance of the estimates is
H^-1 (sum over lags c(lag) J(t)^T J(t + lag)) H^-1, which is H^-1 for white noise. The sum runs over whole logs, across
windows; `noise_memory` finds the autocovariance.
"""

import dataclasses

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.typing import Float
from truesim.identification.diagnose.noise_memory import NoiseMemory, chosen_windows, noise_memory
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.normal_equations import (
    NormalEquations,
    huber_weights,
    linearize,
    normal_equations,
    scaled_residual,
)
from truesim.identification.solve.prior import prior_residuals
from truesim.identification.solve.solution import Solution
from truesim.optimize.bordered import Chains, eliminate

NORMAL_QUANTILE = 1.959964
"""Half width of a 95 % interval in standard deviations."""


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """Covariance of the estimates."""

    coordinates: Float[np.ndarray, "size size"]
    """Covariance of the coordinates."""
    values: Float[np.ndarray, "numbers numbers"]
    """Covariance of the values, in SI units."""
    correlation_time: Float[np.ndarray, " rows"]
    """Factor by which the correlation of the noise reduces the information of each row's samples."""
    noise: NoiseMemory | None = None
    """Autocovariance of the noise; none for a fit that was loaded or that has no derivatives."""

    def widen(self, shift: Float[np.ndarray, " size"], jacobian: Float[np.ndarray, "numbers size"]) -> "Uncertainty":
        """The covariance with standard deviations that reach another model's estimates; correlations are kept.

        Args:
            shift: Distance of the other model's coordinates.
            jacobian: Derivatives of the values by the coordinates.
        """
        wide = widen(self.coordinates, shift)
        return dataclasses.replace(self, coordinates=wide, values=jacobian @ wide @ jacobian.T)

    @property
    def correlations(self) -> Float[np.ndarray, "numbers numbers"]:
        """Correlation of the values."""
        std = np.sqrt(np.maximum(np.diag(self.values), 1e-300))
        return self.values / np.outer(std, std)


def widen(
    covariance: Float[np.ndarray, "size size"], shift: Float[np.ndarray, " size"]
) -> Float[np.ndarray, "size size"]:
    """Covariance whose 95 % intervals reach as far as `shift` from the mean; correlations are kept."""
    std = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    factor = np.hypot(std, shift / NORMAL_QUANTILE) / std
    return covariance * np.outer(factor, factor)


def uncertainty(solution: Solution) -> Uncertainty:
    """Covariance at a solution, given the weights of networks with many weights."""
    problem, at, windows = solution.problem, solution.at, solution.windows
    size = problem.solved.size
    equations = normal_equations(problem, at, solution.weights, windows)
    system = eliminate_states(equations)
    inverse = np.linalg.inv(system.corner + 1e-14 * np.trace(system.corner) * np.eye(size))
    r = scaled_residual(problem, at, solution.weights)
    w = huber_weights(r, solution.weights.threshold)
    J = profiled_jacobian(solution, system.sensitivity()[windows.window, windows.place], w)
    with threadpool_limits(1):  # threads cost more than they save on small matrices
        noise = _noise_memory(solution, equations, inverse, r * w, J)
        information = noise.information(by_window(problem.layout.windows(problem.layout.size), J))
    _, prior = prior_residuals(problem, at.theta)
    covariance = inverse @ (information + prior.T @ prior) @ inverse
    covariance = (covariance + covariance.T) / 2
    _, jacobian = problem.values(at.theta)
    return Uncertainty(covariance, jacobian @ covariance @ jacobian.T, noise.correlation_time, noise)


def profiled_jacobian(
    solution: Solution, moves: np.ndarray, w: np.ndarray
) -> Float[np.ndarray, "segments intervals rows size"]:
    """Derivatives of the scaled residuals by the parameters, with initial states eliminated."""
    problem = solution.problem
    out = np.zeros((*w.shape, problem.solved.size))
    for tile in linearize(problem, solution.at, solution.weights, w):
        J, to = tile.residual, out[tile.segments].reshape(*tile.residual.shape[:2], out.shape[-1])
        own = J.shape[-1] - moves.shape[1]
        np.matmul(J[..., own:], moves[tile.segments], out=to)
        logs = problem.layout.log[tile.segments]
        for log in np.unique(logs):
            to[np.ix_(logs == log, range(J.shape[1]), problem.columns[log])] += J[logs == log, :, :own]
    return out


def _noise_memory(
    solution: Solution, equations: NormalEquations, inverse: np.ndarray, residual: np.ndarray, J: np.ndarray
) -> NoiseMemory:
    """Autocovariance of the noise, given what initial states and parameters leave of it."""
    problem, windows = solution.problem, solution.windows
    used = by_window(windows, problem.layout.valid.astype(float))
    r = by_window(windows, residual)
    chosen = chosen_windows(r.shape)
    drawn = np.isin(windows.window, chosen)
    segments = np.flatnonzero(drawn)
    own = Windows(np.searchsorted(chosen, windows.window[segments]), windows.place[segments])
    w = huber_weights(scaled_residual(problem, solution.at, solution.weights), solution.weights.threshold)
    nx = equations.chains.gradient.shape[-1]
    tiles = linearize(problem, solution.at, solution.weights, w)
    by_state = np.concatenate([tile.residual[drawn[tile.segments]][..., -nx:] for tile in tiles])
    by_parameter = J[segments].reshape(len(segments) * J.shape[1] * J.shape[2], J.shape[3])
    D, E, _, g = (x[chosen] for x in equations.chains)

    def pad(blocks: np.ndarray) -> np.ndarray:
        out = np.zeros((len(chosen), windows.shape[1], *blocks.shape[1:]))
        out[own.window, own.place] = blocks
        return out

    def left(noise: np.ndarray) -> np.ndarray:
        draws = noise.reshape(len(chosen), windows.shape[1], -1, noise.shape[-1])[own.window, own.place]
        border = pad(by_state.transpose(0, 2, 1) @ draws)
        empty = np.zeros((noise.shape[-1], noise.shape[-1] + 1))
        states = eliminate(Chains(D + 1e-12 * np.eye(nx), E, border, 0 * g), empty[:, 1:], empty[:, 0]).sensitivity()
        rest = (draws + by_state @ states[own.window, own.place]).reshape(len(by_parameter), noise.shape[-1])
        rest -= by_parameter @ (inverse @ (by_parameter.T @ rest))
        return pad(rest.reshape(draws.shape)).reshape(noise.shape)

    return noise_memory(r, used, left)


def by_window(windows: Windows, x: np.ndarray) -> np.ndarray:
    """Samples of segments, arranged by window; zero beyond the end of a window."""
    padded = windows.pad(x)
    return padded.reshape(padded.shape[0], padded.shape[1] * padded.shape[2], *x.shape[2:])
