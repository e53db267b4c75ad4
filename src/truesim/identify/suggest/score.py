"""Scores by cross-validation: what part of the error on windows that were not fitted to is explained."""

import dataclasses

import numpy as np

from truesim.core.typing import Float, Int
from truesim.identify.suggest.evidence import LEAST, Evidence

FOLDS = 8
RIDGES = (1e-8, 1e-5, 1e-3, 1e-1)
"""Priors on weights to choose from, in parts of what the windows say of each."""


@dataclasses.dataclass(frozen=True)
class Score:
    """How much of the error is explained out of sample."""

    explained: float
    """Part of the squares beyond the sensors' noise that is gone, of those that the model leaves at its best."""
    folds: Float[np.ndarray, "folds"]
    """The same fold by fold, in parts of the whole."""
    shares: Float[np.ndarray, "folds"]
    """Part of the model's squares that each fold holds."""
    left: float
    """Root mean square of what is left, in units of the sensors' noise."""

    @property
    def error(self) -> float:
        """Standard error of the explained part."""
        return _error(self.folds, self.shares)

    def beyond(self, other: "Score | None" = None) -> float:
        """By how much it explains more than another, or than nothing, in standard errors of the difference."""
        more = self.folds if other is None else self.folds - other.folds
        return float(more.sum() / (_error(more, self.shares) + 1e-12))


def _error(parts: Float[np.ndarray, "folds"], shares: Float[np.ndarray, "folds"]) -> float:
    """Standard error of a sum over folds, each of which should hold as much of it as of the squares."""
    apart = parts - parts.sum() * shares
    count = len(parts)
    return float(np.sqrt(count / max(count - 1, 1) * np.sum(apart**2)))


def folds(windows: int) -> Int[np.ndarray, "windows"]:
    """The fold of each window: as many contiguous parts as there are folds."""
    count = min(FOLDS, windows)
    return np.arange(windows) * count // windows


def score(found: Evidence, parameters: int) -> Score:
    """The score of all columns.

    Args:
        found: What windows say of them.
        parameters: How many of the first columns are the model's own parameters, which may readjust in any case.
    """
    fold = folds(len(found.rest))
    base = _left(found.of(np.arange(parameters)), fold, RIDGES[0])
    best = base
    if found.g.shape[1] > parameters:
        tried = [_left(found, fold, ridge) for ridge in RIDGES]
        best = min(tried, key=lambda left: left.sum())
    total = max(base.sum() - found.count.sum(), LEAST * base.sum())
    return Score(
        explained=float((base - best).sum() / total),
        folds=(base - best) / total,
        shares=base / base.sum(),
        left=float(np.sqrt(max(best.sum(), 0.0) / found.count.sum())),
    )


def weights(found: Evidence, ridge: float = RIDGES[1]) -> Float[np.ndarray, "columns"]:
    """The weights that explain all windows best."""
    return _solved(found.H.sum(axis=0), found.g.sum(axis=0), ridge)


def _left(found: Evidence, fold: np.ndarray, ridge: float) -> Float[np.ndarray, "folds"]:
    """Sum of squares left in each fold by the weights of the others."""
    count = fold.max() + 1
    H = np.stack([found.H[fold == k].sum(axis=0) for k in range(count)])
    g = np.stack([found.g[fold == k].sum(axis=0) for k in range(count)])
    rest = np.bincount(fold, found.rest)
    left = np.empty(count)
    for k in range(count):
        w = _solved(H.sum(axis=0) - H[k], g.sum(axis=0) - g[k], ridge)
        left[k] = rest[k] + 2 * g[k] @ w + w @ H[k] @ w
    return left


def _solved(H: np.ndarray, g: np.ndarray, ridge: float) -> np.ndarray:
    if not len(g):
        return np.zeros(0)
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    unit = H / scale[:, None] / scale + ridge * np.eye(len(g))
    return -np.linalg.lstsq(unit, g / scale, rcond=None)[0] / scale
