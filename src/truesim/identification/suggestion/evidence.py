"""Quadratic forms of the residuals of each window in the weights of disturbance columns.

The initial state e of a window is free: with the derivatives of every interval, residuals are `r + J e + K w` for
weights w of the columns. Eliminating e leaves a quadratic form in w for each window. Sums of these are sufficient to
fit w on some windows and to test it on others.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float, Int
from truesim.identification.suggestion.track import Track

INITIAL_STATE_PRIOR = 1e-9
"""Information of the prior on an initial state, as a fraction of that of its window."""
SMALLEST_EXCESS = 0.2
"""Smallest fraction of the remaining error that counts as error beyond noise, since the noise is not known exactly."""
WINDOW_CAP = 25.0
"""Largest weight of a window relative to the median window, which limits windows where the linear model fails."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Quadratic forms `w H w + 2 g w + rest` of every window."""

    H: Float[np.ndarray, "windows columns columns"]
    g: Float[np.ndarray, "windows columns"]
    rest: Float[np.ndarray, " windows"]
    """Sum of squares without disturbance, in units of the sensor noise."""
    count: Float[np.ndarray, " windows"]
    """Number of measurements minus the size of an initial state."""

    def select(self, columns: np.ndarray) -> "Evidence":
        """Evidence of some of the columns."""
        return dataclasses.replace(self, H=self.H[:, columns[:, None], columns], g=self.g[:, columns])


def evidence(
    track: Track,
    torques: Float[np.ndarray, "segments intervals disturbances columns"] | None,
    measurements: Float[np.ndarray, "segments intervals rows columns"] | None = None,
) -> Evidence:
    """Evidence of all windows; columns are the parameters of the problem, then the given disturbances.

    Args:
        track: The track.
        torques: Disturbance of each column [N m or N, then friction coefficients].
        measurements: Addition of each column to the measurements instead [their units].
    """
    return _eliminate_states(track, *_linearize_segments(track, torques, measurements))


def explainable_fraction(track: Track, basis: Float[np.ndarray, "segments disturbances axes"]) -> float:
    """Fraction of the error that any disturbance along some axes could explain, constant within each segment.

    Every free number uses up one measurement.

    Args:
        track: The track.
        basis: Axes of each segment; axes of zeros are ignored.
    """
    windows, (segments, intervals, nx) = track.windows, track.linear.A.shape[:3]
    held = np.repeat(basis[:, None], intervals, axis=1)
    rows, ends, used = _linearize_segments(track, held, None)
    own, axes = track.problem.slots.size, basis.shape[-1]
    left = before = measured = 0.0
    spent = np.linalg.matrix_rank(basis) if axes else np.zeros(segments)
    for window in range(windows.shape[0]):
        mine = np.flatnonzero(windows.window == window)
        size = nx + axes * len(mine)
        X, N, count = np.eye(nx, size + 1), np.zeros((size + 1, size + 1)), int(used[mine].sum())
        for place, k in enumerate(mine):
            at = slice(nx + axes * place, nx + axes * (place + 1))
            Y, E = rows[k][:, :nx] @ X, ends[k][:, :nx] @ X
            for out, of in ((Y, rows[k]), (E, ends[k])):
                out[:, at] += of[:, nx + own : -1]
                out[:, -1] += of[:, -1]
            N, X = N + Y.T @ Y, E
        free = nx + int(spent[mine].sum())
        if np.isfinite(N).all() and count > free:
            before += _smallest_squares(N, nx) / (count - nx) * count
            left += _smallest_squares(N, size) / (count - free) * count
            measured += count
    beyond = max(before - measured, SMALLEST_EXCESS * before, 1e-300)
    return float(np.clip((before - left) / beyond, 0.0, 1.0))


def _smallest_squares(N: np.ndarray, free: int) -> float:
    """Smallest sum of squares over the weights of the first columns, from the products of all columns."""
    H, g = N[:free, :free], N[:free, -1]
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    unit = H / scale[:, None] / scale + 1e-10 * np.eye(free)
    return float(max(N[-1, -1] - (g / scale) @ np.linalg.solve(unit, g / scale), 0.0))


def _linearize_segments(
    track: Track, torques: np.ndarray | None, measurements: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scaled residuals of every segment with derivatives, the same of its end state, and which residuals count.

    Columns: initial state, parameters, disturbances, and last the constant term.
    """
    linear, problem = track.linear, track.problem
    own = problem.slots.size
    factor = np.where(problem.layout.valid & np.isfinite(linear.residual), 1 / track.noise, 0.0)
    segments, intervals, nx = linear.A.shape[:3]
    given = torques if torques is not None else measurements
    extra = 0 if given is None else given.shape[-1]
    X = np.zeros((segments, nx, nx + own + extra + 1))
    X[:, :, :nx] = np.eye(nx)
    rows = np.empty((segments, intervals, linear.residual.shape[-1], X.shape[-1]))
    for k in range(intervals):
        Y = linear.C[:, k] @ X
        Y[..., nx : nx + own] += linear.D[:, k, :, :own]
        Y[..., -1] += linear.residual[:, k]
        X = linear.A[:, k] @ X
        X[..., nx : nx + own] += linear.B[:, k, :, :own]
        if torques is not None:
            Y[..., nx + own : -1] += linear.D[:, k, :, own:] @ torques[:, k]
            X[..., nx + own : -1] += linear.B[:, k, :, own:] @ torques[:, k]
        elif measurements is not None:
            Y[..., nx + own : -1] += measurements[:, k]
        rows[:, k] = factor[:, k, :, None] * np.where(np.isfinite(Y), Y, 0.0)
    X[..., -1] += track.defect
    return rows.reshape(segments, -1, X.shape[-1]), X, factor.reshape(segments, -1) > 0


def _eliminate_states(track: Track, rows: np.ndarray, ends: np.ndarray, used: np.ndarray) -> Evidence:
    windows, nx = track.windows, ends.shape[1]
    count, places = windows.shape
    at = np.full((count, places), -1)
    at[windows.window, windows.place] = np.arange(len(windows.window))
    X = np.zeros((count, nx, rows.shape[-1]))
    X[:, :, :nx] = np.eye(nx)
    N = np.zeros((count, rows.shape[-1], rows.shape[-1]))
    for place in range(places):
        inside = at[:, place] >= 0
        segment = at[inside, place]
        Y = rows[segment].copy()
        J = Y[..., :nx] @ X[inside]
        Y[..., :nx] = 0.0
        Y += J
        N[inside] += Y.transpose(0, 2, 1) @ Y
        E = ends[segment].copy()
        F = E[..., :nx] @ X[inside]
        E[..., :nx] = 0.0
        X[inside] = E + F
    measured = np.bincount(windows.window, used.sum(axis=1))
    D = N[:, :nx, :nx]
    D = D + (INITIAL_STATE_PRIOR * np.trace(D, axis1=1, axis2=2) + 1e-300)[:, None, None] * np.eye(nx)
    reduced = N[:, nx:, nx:] - N[:, nx:, :nx] @ np.linalg.solve(D, N[:, :nx, nx:])
    finite = np.isfinite(reduced).all(axis=(1, 2)) & (measured > nx)
    reduced, measured = reduced[finite], measured[finite]
    rest = np.maximum(reduced[:, -1, -1], 0.0)
    typical = np.median(rest / (measured - nx))
    weight = np.minimum(1.0, WINDOW_CAP * typical * (measured - nx) / np.maximum(rest, 1e-300))[:, None]
    where = _places(track, np.flatnonzero(finite), reduced.shape[1] - 1)
    H, g = _scatter(reduced, where, track.problem.parameters.size + reduced.shape[1] - 1 - track.problem.slots.size)
    return Evidence(
        H=H * weight[..., None],
        g=g * weight,
        rest=rest * weight[:, 0],
        count=(measured - nx) * 1.0,
    )


def _places(track: Track, windows: np.ndarray, columns: int) -> Int[np.ndarray, "windows columns"]:
    """Places of the columns of one log among the columns of all logs; disturbances follow the parameters."""
    problem = track.problem
    first = np.searchsorted(track.windows.window, windows)
    own = problem.columns[problem.layout.log[first]]
    after = problem.parameters.size + np.arange(columns - own.shape[1])
    return np.concatenate([own, np.broadcast_to(after, (len(windows), len(after)))], axis=1)


def _scatter(reduced: np.ndarray, places: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Quadratic forms with their columns moved to these places."""
    H, g = np.zeros((len(reduced), size, size)), np.zeros((len(reduced), size))
    each = np.arange(len(reduced))
    H[each[:, None, None], places[:, :, None], places[:, None, :]] = reduced[:, :-1, :-1]
    g[each[:, None], places] = reduced[:, :-1, -1]
    return H, g
