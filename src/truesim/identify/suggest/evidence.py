"""Evidence: how well columns of disturbances, window by window, would explain what the model leaves.

In a window the first state e is free and everything else follows: with the derivatives of every interval, residuals are
`r + J e + K w` for weights w of the columns. Eliminating e leaves a quadratic form in w for each window. Sums of these
are all that a fit of w on some windows, and its test on others, need.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float, Int
from truesim.identify.suggest.track import Track

LOOSE = 1e-9
"""Prior on a first state, over what the window says of it."""
LEAST = 0.2
"""At least this part of what a model leaves counts as more than noise, since the noise is known only about so well."""
CAPPED = 25.0
"""A window counts no more than this many times the median window: one where the linear model fails must not rule."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """Quadratic forms `w H w + 2 g w + rest` of every window."""

    H: Float[np.ndarray, "windows columns columns"]
    g: Float[np.ndarray, "windows columns"]
    rest: Float[np.ndarray, "windows"]
    """Sum of squares without any disturbance, in units of the sensors' noise."""
    count: Float[np.ndarray, "windows"]
    """Measurements, less the numbers of a first state."""

    def of(self, columns: np.ndarray) -> "Evidence":
        """The same for some of the columns."""
        return dataclasses.replace(self, H=self.H[:, columns[:, None], columns], g=self.g[:, columns])


def evidence(
    track: Track,
    torques: Float[np.ndarray, "stretches intervals disturbances columns"] | None,
    readings: Float[np.ndarray, "stretches intervals rows columns"] | None = None,
) -> Evidence:
    """What windows say of columns: first those of the problem's parameters, then disturbances along these.

    Args:
        track: The track.
        torques: Disturbances that each column stands for [N m or N, then coefficients of friction].
        readings: What each column adds to the readings instead [their own units].
    """
    steps = _stretches(track, torques, readings)
    return _eliminated(track, *steps)


def reach(track: Track, basis: Float[np.ndarray, "stretches disturbances axes"]) -> float:
    """The part of the error that any disturbance along some axes could explain, constant within each stretch.

    Every number that is free to explain takes up one measurement.

    Args:
        track: The track.
        basis: Axes of each stretch; axes of zeros count for nothing.
    """
    windows, (stretches, intervals, nx) = track.windows, track.linear.A.shape[:3]
    held = np.repeat(basis[:, None], intervals, axis=1)
    rows, ends, used = _stretches(track, held, None)
    own, axes = track.problem.slots.size, basis.shape[-1]
    left = before = measured = 0.0
    spent = np.linalg.matrix_rank(basis) if axes else np.zeros(stretches)
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
            before += _least(N, nx) / (count - nx) * count
            left += _least(N, size) / (count - free) * count
            measured += count
    beyond = max(before - measured, LEAST * before, 1e-300)
    return float(np.clip((before - left) / beyond, 0.0, 1.0))


def _least(N: np.ndarray, free: int) -> float:
    """Least sum of squares with the first columns free and the last given, from the products of all columns."""
    H, g = N[:free, :free], N[:free, -1]
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    unit = H / scale[:, None] / scale + 1e-10 * np.eye(free)
    return float(max(N[-1, -1] - (g / scale) @ np.linalg.solve(unit, g / scale), 0.0))


def _stretches(
    track: Track, torques: np.ndarray | None, readings: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scaled residuals of every stretch with their derivatives, those of its end, and which residuals count.

    Columns: the first state, parameters, disturbances, and last what is there without any of them.
    """
    linear, problem = track.linear, track.problem
    own = problem.slots.size
    factor = np.where(problem.layout.valid & np.isfinite(linear.residual), 1 / track.noise, 0.0)
    stretches, intervals, nx = linear.A.shape[:3]
    given = torques if torques is not None else readings
    extra = 0 if given is None else given.shape[-1]
    X = np.zeros((stretches, nx, nx + own + extra + 1))
    X[:, :, :nx] = np.eye(nx)
    rows = np.empty((stretches, intervals, linear.residual.shape[-1], X.shape[-1]))
    for k in range(intervals):
        Y = linear.C[:, k] @ X
        Y[..., nx : nx + own] += linear.D[:, k, :, :own]
        Y[..., -1] += linear.residual[:, k]
        X = linear.A[:, k] @ X
        X[..., nx : nx + own] += linear.B[:, k, :, :own]
        if torques is not None:
            Y[..., nx + own : -1] += linear.D[:, k, :, own:] @ torques[:, k]
            X[..., nx + own : -1] += linear.B[:, k, :, own:] @ torques[:, k]
        elif readings is not None:
            Y[..., nx + own : -1] += readings[:, k]
        rows[:, k] = factor[:, k, :, None] * np.where(np.isfinite(Y), Y, 0.0)
    X[..., -1] += track.jump
    return rows.reshape(stretches, -1, X.shape[-1]), X, factor.reshape(stretches, -1) > 0


def _eliminated(track: Track, rows: np.ndarray, ends: np.ndarray, used: np.ndarray) -> Evidence:
    windows, nx = track.windows, ends.shape[1]
    count, places = windows.shape
    at = np.full((count, places), -1)
    at[windows.window, windows.place] = np.arange(len(windows.window))
    X = np.zeros((count, nx, rows.shape[-1]))
    X[:, :, :nx] = np.eye(nx)
    N = np.zeros((count, rows.shape[-1], rows.shape[-1]))
    for place in range(places):
        inside = at[:, place] >= 0
        stretch = at[inside, place]
        Y = rows[stretch].copy()
        J = Y[..., :nx] @ X[inside]
        Y[..., :nx] = 0.0
        Y += J
        N[inside] += Y.transpose(0, 2, 1) @ Y
        E = ends[stretch].copy()
        F = E[..., :nx] @ X[inside]
        E[..., :nx] = 0.0
        X[inside] = E + F
    measured = np.bincount(windows.window, used.sum(axis=1))
    D = N[:, :nx, :nx]
    D = D + (LOOSE * np.trace(D, axis1=1, axis2=2) + 1e-300)[:, None, None] * np.eye(nx)
    reduced = N[:, nx:, nx:] - N[:, nx:, :nx] @ np.linalg.solve(D, N[:, :nx, nx:])
    finite = np.isfinite(reduced).all(axis=(1, 2)) & (measured > nx)
    reduced, measured = reduced[finite], measured[finite]
    rest = np.maximum(reduced[:, -1, -1], 0.0)
    typical = np.median(rest / (measured - nx))
    weight = np.minimum(1.0, CAPPED * typical * (measured - nx) / np.maximum(rest, 1e-300))[:, None]
    where = _places(track, np.flatnonzero(finite), reduced.shape[1] - 1)
    H, g = _spread(reduced, where, track.problem.parameters.size + reduced.shape[1] - 1 - track.problem.slots.size)
    return Evidence(
        H=H * weight[..., None],
        g=g * weight,
        rest=rest * weight[:, 0],
        count=(measured - nx) * 1.0,
    )


def _places(track: Track, windows: np.ndarray, columns: int) -> Int[np.ndarray, "windows columns"]:
    """Where columns of one log's parameters stand among those of all logs, and disturbances after them."""
    problem = track.problem
    first = np.searchsorted(track.windows.window, windows)
    own = problem.columns[problem.layout.log[first]]
    after = problem.parameters.size + np.arange(columns - own.shape[1])
    return np.concatenate([own, np.broadcast_to(after, (len(windows), len(after)))], axis=1)


def _spread(reduced: np.ndarray, places: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Quadratic forms with their columns in these places."""
    H, g = np.zeros((len(reduced), size, size)), np.zeros((len(reduced), size))
    each = np.arange(len(reduced))
    H[each[:, None, None], places[:, :, None], places[:, None, :]] = reduced[:, :-1, :-1]
    g[each[:, None], places] = reduced[:, :-1, -1]
    return H, g
