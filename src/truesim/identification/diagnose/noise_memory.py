"""Noise with memory: the autocovariance of measurement noise, from residuals of windows.

The residuals of a fit are not the noise: initial states and parameters absorb part of it, and the slow part most of
all, so that the autocorrelation of residuals within short windows is far too low. What is left of noise of a known
kind is found by fitting draws of it in place of the residuals (the problem is linear near its solution). The noise of a
row is a sum of autoregressive noises of first order with a few correlation times, white noise among them; their
variances are those whose draws leave the lagged products that the residuals have, by least squares without negative
variances. Such a sum also describes what goes on from window to window, which no window shows.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core.typing import Float, Int
from truesim.optimize.nonnegative import nonnegative_least_squares

DRAWS = 4
"""Draws of each kind of noise. Larger is slower and more exact."""
DRAWN_BYTES = 1 << 24
"""Size of the draws that are fitted at a time. Larger needs more memory and is faster in long windows."""
DRAWN_SAMPLES = 4000
"""Samples of windows in which noise is drawn, all rows together, approximately. Larger is slower and more exact."""
SIGNIFICANT = 3.0
"""Standard deviations by which lagged products must exceed those of white noise. Larger finds memory less often."""
SEED = 0

Left = Callable[[Float[np.ndarray, "windows samples rows draws"]], Float[np.ndarray, "windows samples rows draws"]]
"""Residuals that a fit leaves of draws of noise."""


@dataclasses.dataclass(frozen=True)
class NoiseMemory:
    """Autocovariance of the noise of each row: a sum of exponentials, in units of the residuals' variance."""

    factors: Float[np.ndarray, " kinds"]
    """Correlation of each kind of noise from sample to sample; zero, white noise, is the first."""
    variances: Float[np.ndarray, "rows kinds"]

    @property
    def correlation_time(self) -> Float[np.ndarray, " rows"]:
        """Sum of the autocorrelation over all lags of each row, in samples; one for white noise."""
        times = (1 + self.factors) / (1 - self.factors)
        return self.variances @ times / np.maximum(self.variances.sum(axis=1), 1e-300)

    def information(self, J: Float[np.ndarray, "pieces samples rows size"]) -> Float[np.ndarray, "size size"]:
        """Covariance of the gradient J^T r for noise r of this kind, which goes on through each piece of a log."""
        total = np.zeros((J.shape[-1], J.shape[-1]))
        for row, variances in enumerate(self.variances):
            own = J[:, :, row]
            flat = own.reshape(own.shape[0] * own.shape[1], own.shape[2])
            for factor, variance in zip(self.factors, variances, strict=True):
                if variance > 0:
                    past = _decaying_sum(own, factor)
                    cross = flat.T @ past.reshape(flat.shape)
                    total += variance * (cross + cross.T - flat.T @ flat)
        return total


def noise_memory(
    r: Float[np.ndarray, "windows samples rows"], used: Float[np.ndarray, "windows samples rows"], left: Left | None
) -> NoiseMemory:
    """Autocovariance of the noise behind residuals.

    Args:
        r: Scaled residuals, zero where not measured.
        used: One where measured, else zero.
        left: Residuals that the fit leaves of draws in the windows of `chosen_windows`; none if it leaves all of them.
    """
    samples, rows = r.shape[1:]
    times = 2.0 ** np.arange(max(0, int(np.log2(max(samples, 1)))))  # up to half a window
    factors = np.concatenate([[0.0], np.exp(-1 / times)])
    variances = np.zeros((rows, len(factors)))
    variances[:, 0] = 1.0
    lags = _lags(samples)
    if len(lags) < 3:
        return NoiseMemory(factors, variances)
    products, pairs = _products(r[..., None], lags)[..., 0], _products(used[..., None], lags)[..., 0]
    if left is None:
        expected = factors ** lags[:, None, None] * pairs[..., None]
    else:
        some = used[chosen_windows(r.shape)]
        ratio = pairs / np.maximum(_products(some[..., None], lags)[..., 0], 1)
        expected = _expected(some, factors, lags, left) * ratio[..., None]
    for row in range(rows):
        if pairs[1, row] > 0:
            variances[row] = _variances(products[:, row], expected[:, row], pairs[:, row])
    return NoiseMemory(factors, variances)


def chosen_windows(shape: tuple[int, int, int]) -> Int[np.ndarray, " some"]:
    """Windows at regular places in which noise is drawn."""
    count, samples, rows = shape
    some = min(count, max(1, round(DRAWN_SAMPLES / max(samples * rows, 1))))
    return np.unique(np.linspace(0, count - 1, some).round().astype(int))


def _variances(products: np.ndarray, expected: np.ndarray, pairs: np.ndarray) -> Float[np.ndarray, " kinds"]:
    """Variances of the kinds of noise of one row; those of white noise unless its first lag is significant."""
    white = np.eye(1, expected.shape[1])[0]
    excess = products[1] / max(products[0], 1e-300) - expected[1, 0] / max(expected[0, 0], 1e-300)
    if excess * np.sqrt(pairs[1]) < SIGNIFICANT:
        return white
    scale = 1 / np.sqrt(np.maximum(pairs, 1))
    return nonnegative_least_squares(expected * scale[:, None], products * scale)


def _expected(
    used: Float[np.ndarray, "windows samples rows"], factors: np.ndarray, lags: np.ndarray, left: Left
) -> Float[np.ndarray, "lags rows kinds"]:
    """Mean lagged products of what is left of noise of each kind with unit variance."""
    fresh = np.random.default_rng(SEED).normal(size=(*used.shape, DRAWS))
    lost = []
    for kinds in np.array_split(factors, min(len(factors), 1 + len(factors) * fresh.nbytes // DRAWN_BYTES)):
        noise = np.concatenate([_autoregressive(fresh, factor) for factor in kinds], axis=-1) * used[..., None]
        lost.append(_products(left(noise), lags) - _products(noise, lags))  # less by chance than the products
    exact = factors ** lags[:, None, None] * _products(used[..., None], lags)
    return exact + np.concatenate(lost, axis=-1).reshape(*exact.shape[:2], len(factors), DRAWS).mean(axis=-1)


def _autoregressive(fresh: Float[np.ndarray, "windows samples *rest"], factor: float) -> np.ndarray:
    """Stationary noise with unit variance from white noise."""
    scaled = fresh * np.sqrt(1 - factor**2)
    scaled[:, 0] = fresh[:, 0]
    return _decaying_sum(scaled, factor)


def _decaying_sum(x: Float[np.ndarray, "windows samples *rest"], factor: float) -> np.ndarray:
    """Filter `y[t] = x[t] + factor y[t - 1]`, by `1 / (1 - fz) = (1 + fz) (1 + (fz)^2) (1 + (fz)^4) ...`."""
    y, lag = x, 1
    while lag < x.shape[1] and factor > np.finfo(float).tiny:
        past = factor * y[:, :-lag]
        y = np.concatenate([y[:, :lag], y[:, lag:] + past], axis=1)
        factor, lag = factor * factor, 2 * lag
    return y


def _lags(samples: int) -> Int[np.ndarray, " lags"]:
    """Lags up to half a window: all small ones, and fewer large ones."""
    grid = np.concatenate([np.arange(8), np.round(8 * 2 ** (np.arange(64) / 3)).astype(int)])
    return grid[grid <= samples // 2]


def _products(x: Float[np.ndarray, "windows samples rows draws"], lags: np.ndarray) -> np.ndarray:
    """Sums over windows of products of samples that are a lag apart."""
    count = x.shape[1]
    return np.stack([np.einsum("wsrd,wsrd->rd", x[:, : count - lag], x[:, lag:]) for lag in lags])
