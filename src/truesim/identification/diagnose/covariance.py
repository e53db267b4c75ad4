"""Covariance of the estimates, for residuals that are correlated in time (sandwich estimator).

J is the Jacobian of the scaled residuals by the parameters, with the initial states eliminated. If H = J^T J and the
residuals of a row have the autocorrelation rho, the covariance of the estimates is
H^-1 (sum over lags rho(lag) J(t)^T J(t + lag)) H^-1, which is H^-1 for white residuals.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.normal_equations import (
    huber_weights,
    normal_equations,
    scaled_residual,
    weighted_jacobian,
)
from truesim.identification.solve.prior import prior_residuals
from truesim.identification.solve.solution import Solution

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
    """Factor by which the correlation of residuals reduces the information of each row's samples."""

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
    system = eliminate_states(normal_equations(problem, at, solution.weights, windows))
    inverse = np.linalg.inv(system.corner + 1e-14 * np.trace(system.corner) * np.eye(size))
    r = scaled_residual(problem, at, solution.weights)
    w = huber_weights(r, solution.weights.threshold)
    J = _profiled_jacobian(solution, system.sensitivity()[windows.window, windows.place], w)
    information, times = _information(solution, r * w, J)
    _, prior = prior_residuals(problem, at.theta)
    covariance = inverse @ (information + prior.T @ prior) @ inverse
    covariance = (covariance + covariance.T) / 2
    _, jacobian = problem.values(at.theta)
    return Uncertainty(covariance, jacobian @ covariance @ jacobian.T, times)


def _profiled_jacobian(
    solution: Solution, moves: np.ndarray, w: np.ndarray
) -> Float[np.ndarray, "segments intervals rows size"]:
    """Derivatives of the scaled residuals by the parameters, with initial states eliminated."""
    problem = solution.problem
    J = weighted_jacobian(problem, solution.at, solution.weights, w)
    columns = problem.columns[problem.layout.log]
    own = columns.shape[1]
    out = J[..., own:] @ moves
    for log in range(len(problem.recordings)):
        mine = problem.layout.log == log
        out[np.ix_(mine, range(out.shape[1]), problem.columns[log])] += J[mine][..., :own]
    return out.reshape(*w.shape, -1)


def _information(solution: Solution, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Information matrix of correlated residuals, and the correlation time of each row in samples."""
    windows, valid = solution.windows, solution.problem.layout.valid
    count = J.shape[1]

    def join(x: np.ndarray) -> np.ndarray:
        padded = windows.pad(x)
        return padded.reshape(padded.shape[0], padded.shape[1] * count, *x.shape[2:])

    return correlated_information(join(r), join(J), join(valid.astype(float)))


def correlated_information(
    r: Float[np.ndarray, "windows samples rows"],
    J: Float[np.ndarray, "windows samples rows size"],
    used: Float[np.ndarray, "windows samples rows"],
) -> tuple[Float[np.ndarray, "size size"], Float[np.ndarray, " rows"]]:
    """Information matrix of correlated residuals, and the correlation time of each row in samples.

    Args:
        r: Scaled residuals.
        J: Derivatives of the residuals by the coordinates.
        used: One where measured, else zero.
    """
    total = np.zeros((J.shape[-1], J.shape[-1]))
    times = np.ones(r.shape[-1])
    for row in range(r.shape[-1]):
        own = J[:, :, row]
        total += np.tensordot(own, own, axes=([0, 1], [0, 1]))
        rho = _autocorrelation(r[..., row], used[..., row])
        for lag, value in enumerate(rho, start=1):
            cross = np.tensordot(own[:, :-lag], own[:, lag:], axes=([0, 1], [0, 1]))
            total += value * (cross + cross.T)
        times[row] = 1 + 2 * rho.sum()
    return total, np.maximum(times, 1.0)


def _autocorrelation(r: Float[np.ndarray, "windows samples"], used: np.ndarray) -> Float[np.ndarray, " lags"]:
    """Autocorrelation of a row within windows, tapered and cut where it is not significant."""
    variance = float((r**2).sum() / max(used.sum(), 1))
    longest = r.shape[1] // 2
    if variance == 0 or longest < 2:
        return np.zeros(0)
    spectrum = np.fft.rfft(r, 2 * r.shape[1], axis=1)
    pairs = np.fft.rfft(used, 2 * r.shape[1], axis=1)
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=1).sum(axis=0)[1 : longest + 1]
    counts = np.fft.irfft(np.abs(pairs) ** 2, axis=1).sum(axis=0)[1 : longest + 1]
    rho = products / np.maximum(counts, 1) / variance
    insignificant = np.flatnonzero(rho < 3 / np.sqrt(np.maximum(counts, 1)))
    length = int(insignificant[0]) if len(insignificant) else longest
    return rho[:length] * (1 - np.arange(1, length + 1) / (2 * (length + 1)))
