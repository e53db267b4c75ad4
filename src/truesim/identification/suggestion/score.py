"""Cross-validated scores: fraction of the error on held-out windows that columns explain."""

import dataclasses

import numpy as np

from truesim.core.typing import Float, Int
from truesim.identification.suggestion.evidence import SMALLEST_EXCESS, Evidence

FOLDS = 8
"""Maximum number of folds of cross-validation."""
RIDGES = (1e-8, 1e-5, 1e-3, 1e-1)
"""Ridge penalties to choose from, as fractions of the information on each weight."""


@dataclasses.dataclass(frozen=True)
class Score:
    """Out-of-sample fraction of explained error."""

    explained: float
    """Explained fraction of the squares beyond sensor noise that the refitted model leaves."""
    folds: Float[np.ndarray, " folds"]
    """Contribution of each fold to the explained fraction."""
    shares: Float[np.ndarray, " folds"]
    """Fraction of the model's squares in each fold."""
    left: float
    """Root mean square of the remaining residuals in units of the sensor noise."""

    @property
    def error(self) -> float:
        """Standard error of the explained fraction."""
        return _error(self.folds, self.shares)

    def significance(self, other: "Score | None" = None) -> float:
        """Difference of the explained fraction to another score, or to zero, in standard errors."""
        more = self.folds if other is None else self.folds - other.folds
        return float(more.sum() / (_error(more, self.shares) + 1e-12))


def _error(parts: Float[np.ndarray, " folds"], shares: Float[np.ndarray, " folds"]) -> float:
    """Standard error of a sum over folds whose expected contributions are proportional to their shares."""
    apart = parts - parts.sum() * shares
    count = len(parts)
    return float(np.sqrt(count / max(count - 1, 1) * np.sum(apart**2)))


def assign_folds(windows: int) -> Int[np.ndarray, " windows"]:
    """Fold of each window; folds are contiguous."""
    count = min(FOLDS, windows)
    return np.arange(windows) * count // windows


def score(found: Evidence, parameters: int) -> Score:
    """Score of all columns.

    Args:
        found: Evidence of the windows.
        parameters: Number of first columns that are parameters of the model, which are refitted in any case.
    """
    fold = assign_folds(len(found.rest))
    base = _held_out_squares(found.select(np.arange(parameters)), fold, RIDGES[0])
    best = base
    if found.g.shape[1] > parameters:
        tried = [_held_out_squares(found, fold, ridge) for ridge in RIDGES]
        best = min(tried, key=lambda left: left.sum())
    total = max(base.sum() - found.count.sum(), SMALLEST_EXCESS * base.sum())
    return Score(
        explained=float((base - best).sum() / total),
        folds=(base - best) / total,
        shares=base / base.sum(),
        left=float(np.sqrt(max(best.sum(), 0.0) / found.count.sum())),
    )


def weights(found: Evidence, ridge: float = RIDGES[1]) -> Float[np.ndarray, " columns"]:
    """Weights that explain all windows best."""
    return _solve_ridge(found.H.sum(axis=0), found.g.sum(axis=0), ridge)


def _held_out_squares(found: Evidence, fold: np.ndarray, ridge: float) -> Float[np.ndarray, " folds"]:
    """Remaining sum of squares of each fold with weights fitted to the others."""
    count = fold.max() + 1
    H = np.stack([found.H[fold == k].sum(axis=0) for k in range(count)])
    g = np.stack([found.g[fold == k].sum(axis=0) for k in range(count)])
    rest = np.bincount(fold, found.rest)
    left = np.empty(count)
    for k in range(count):
        w = _solve_ridge(H.sum(axis=0) - H[k], g.sum(axis=0) - g[k], ridge)
        left[k] = rest[k] + 2 * g[k] @ w + w @ H[k] @ w
    return left


def _solve_ridge(H: np.ndarray, g: np.ndarray, ridge: float) -> np.ndarray:
    if not len(g):
        return np.zeros(0)
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    unit = H / scale[:, None] / scale + ridge * np.eye(len(g))
    return -np.linalg.lstsq(unit, g / scale, rcond=None)[0] / scale
