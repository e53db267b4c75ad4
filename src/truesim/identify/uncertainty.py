"""How sure the estimates are: covariances that know the residuals are correlated, and what no log shows.

With the first states eliminated, the estimates depend on the residuals through J, the derivatives of the scaled
residuals by the parameters. If H = J^T J and the residuals of a row have the autocorrelation rho, then the estimates'
covariance is H^-1 (sum over lags rho(lag) J(t)^T J(t + lag)) H^-1, which is H^-1 for white residuals.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identify.beliefs import beliefs
from truesim.identify.fit import Solution
from truesim.identify.levenberg_marquardt import reduced
from truesim.identify.normal import huber_weights, normal, scaled_residual, weighted_jacobian
from truesim.identify.weights import NETWORKS, is_network
from truesim.parameters.transforms import Linear

LOOSE = 0.5
"""A coordinate with a larger standard deviation is not identifiable: a factor of 1.6 either way, half of its value."""
NEGLIGIBLE = 0.1
"""Parameters that loose directions couple by less than this are not named together."""


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """Spread of the estimates."""

    coordinates: Float[np.ndarray, "size size"]
    """Covariance of the coordinates."""
    values: Float[np.ndarray, "numbers numbers"]
    """Covariance of the values, in SI units."""
    correlation_time: Float[np.ndarray, "rows"]
    """By which factor correlation of the residuals of each row reduces what its samples tell."""

    @property
    def correlations(self) -> Float[np.ndarray, "numbers numbers"]:
        """Correlation of the values."""
        std = np.sqrt(np.maximum(np.diag(self.values), 1e-300))
        return self.values / np.outer(std, std)


def uncertainty(solution: Solution) -> Uncertainty:
    """Covariance at a solution; networks with many weights are taken as they are."""
    problem, at, windows = solution.problem, solution.at, solution.windows
    size = problem.solved.size
    system = reduced(normal(problem, at, solution.weights, windows))
    inverse = np.linalg.inv(system.corner + 1e-14 * np.trace(system.corner) * np.eye(size))
    r = scaled_residual(problem, at, solution.weights)
    w = huber_weights(r, solution.weights.threshold)
    J = _profiled(solution, system.sensitivity()[windows.window, windows.place], w)
    middle, times = _middle(solution, r * w, J)
    _, prior = beliefs(problem, at.theta)
    covariance = inverse @ (middle + prior.T @ prior) @ inverse
    covariance = (covariance + covariance.T) / 2
    _, jacobian = problem.values(at.theta)
    return Uncertainty(covariance, jacobian @ covariance @ jacobian.T, times)


def loose(solution: Solution, found: Uncertainty) -> np.ndarray:
    """Which coordinates the logs do not determine."""
    scale = np.concatenate(
        [
            np.maximum(1.0, np.abs(solution.theta[s])) if isinstance(p.transform, Linear) else np.ones(p.size)
            for p, s in zip(solution.problem.solved, solution.problem.solved.slices(), strict=True)
        ]
        or [np.zeros(0)]
    )
    return np.sqrt(np.diag(found.coordinates)) > LOOSE * scale


def unseen(solution: Solution, found: Uncertainty) -> list[str]:
    """What the logs do not show, in words.

    Loose directions of the covariance span a space; parameters that it couples are named together.
    """
    names = coordinate_names(solution)
    values, vectors = np.linalg.eigh(found.coordinates)
    directions = vectors[:, values > LOOSE**2]
    together = np.abs(directions @ directions.T) > NEGLIGIBLE
    left = [k for k in range(len(names)) if together[k, k]]
    sentences = []
    while left:
        group = [left.pop(0)]
        for k in group:
            group += (coupled := [j for j in left if together[k, j]])
            left = [j for j in left if j not in coupled]
        labels = list(dict.fromkeys(names[k] for k in sorted(group)))
        if all(label.startswith(NETWORKS + "/") for label in labels):
            continue
        if len(labels) == 1:
            sentences.append(f"{labels[0]} does not show in these logs.")
        else:
            shown = ", ".join(labels[:-1]) + f" and {labels[-1]}"
            sentences.append(f"{shown}: only a combination of them shows in these logs.")
    return list(dict.fromkeys(sentences))


def coordinate_names(solution: Solution) -> list[str]:
    """Name of each coordinate's parameter, with its element where it has several."""
    names = []
    for parameter in solution.problem.solved:
        several = isinstance(parameter.transform, Linear) and parameter.size > 1 and not is_network(parameter)
        names += [f"{parameter.name}[{k}]" if several else parameter.name for k in range(parameter.size)]
    return names


def _profiled(
    solution: Solution, moves: np.ndarray, w: np.ndarray
) -> Float[np.ndarray, "stretches intervals rows size"]:
    """Derivatives of the scaled residuals by the parameters, first states following."""
    problem = solution.problem
    J = weighted_jacobian(problem, solution.at, solution.weights, w)
    columns = problem.columns[problem.layout.log]
    own = columns.shape[1]
    out = J[..., own:] @ moves
    for log in range(len(problem.recordings)):
        mine = problem.layout.log == log
        out[np.ix_(mine, range(out.shape[1]), problem.columns[log])] += J[mine][..., :own]
    return out.reshape(*w.shape, -1)


def _middle(solution: Solution, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inner matrix of the covariance, and the correlation time of each row in samples."""
    windows, valid = solution.windows, solution.problem.layout.valid
    count = J.shape[1]

    def joined(x: np.ndarray) -> np.ndarray:
        padded = windows.padded(x)
        return padded.reshape(padded.shape[0], padded.shape[1] * count, *x.shape[2:])

    return correlated(joined(r), joined(J), joined(valid.astype(float)))


def correlated(
    r: Float[np.ndarray, "windows samples rows"],
    J: Float[np.ndarray, "windows samples rows size"],
    used: Float[np.ndarray, "windows samples rows"],
) -> tuple[Float[np.ndarray, "size size"], Float[np.ndarray, "rows"]]:
    """The inner matrix of the covariance, and the correlation time of each row in samples.

    Args:
        r: Scaled residuals.
        J: Their derivatives by the coordinates.
        used: One where something was measured, else zero.
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


def _autocorrelation(r: Float[np.ndarray, "windows samples"], used: np.ndarray) -> Float[np.ndarray, "lags"]:
    """Autocorrelation of a row within windows, tapered to zero where it no longer differs from noise."""
    variance = float((r**2).sum() / max(used.sum(), 1))
    longest = r.shape[1] // 2
    if variance == 0 or longest < 2:
        return np.zeros(0)
    spectrum = np.fft.rfft(r, 2 * r.shape[1], axis=1)
    pairs = np.fft.rfft(used, 2 * r.shape[1], axis=1)
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=1).sum(axis=0)[1 : longest + 1]
    counts = np.fft.irfft(np.abs(pairs) ** 2, axis=1).sum(axis=0)[1 : longest + 1]
    rho = products / np.maximum(counts, 1) / variance
    quiet = np.flatnonzero(rho < 3 / np.sqrt(np.maximum(counts, 1)))
    length = int(quiet[0]) if len(quiet) else longest
    return rho[:length] * (1 - np.arange(1, length + 1) / (2 * (length + 1)))
