"""Trials: balls on a table, simulated exactly from event to event, and drawn as noisy frames.

Distances are pixels and times are frames. Between events a ball slows down by viscous friction, `dv/dt = -c v`; in the
time `s = (1 - exp(-c t)) / c` it moves on a straight line, so that impacts with walls and other balls are roots of
linear and quadratic equations. This generator shares no code with truesim.
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float

SIZE, BALLS, RADIUS = 64, 3, 5.0
"""Width of a frame, number of balls, and their radius [px]."""
SEEN, AHEAD = 3, 10
"""Frames that are seen, and frames that are predicted."""
FASTEST = 3.0
"""Largest speed along each axis [px/frame]."""
NOISE = 0.03
"""Standard deviation of the noise of a pixel, whose range is 0 to 1."""
COLORS = np.array([[1.0, 0.25, 0.2], [0.25, 1.0, 0.3], [0.3, 0.35, 1.0]])
"""Colours of the balls."""
EQUAL_COLORS = np.array([[1.0, 0.8, 0.3]] * BALLS)
"""Colours of balls that cannot be told apart."""
NEVER = 1e9


class Table(NamedTuple):
    """Numbers of the physics."""

    restitution: float = 1.0
    friction: float = 0.0
    """Rate at which velocities decay [1/frame]."""


class Trials(NamedTuple):
    """Trials with their frames and true places."""

    frames: Float[np.ndarray, "trials 13 64 64 3"]
    places: Float[np.ndarray, "trials 13 3 2"]
    """[px]"""


def make_trials(count: int, seed: int, table: Table, colors: Float[np.ndarray, "3 3"] = COLORS) -> Trials:
    """Random trials: places apart from each other, uniform velocities up to the fastest."""
    rng = np.random.default_rng(seed)
    places = np.stack([_trial(rng, table) for _ in range(count)])
    frames = draw(places, colors)
    noise = NOISE * rng.standard_normal(frames.shape, dtype=np.float32)
    return Trials(np.clip(frames + noise, 0, 1).astype(np.float32), places)


def draw(places: Float[np.ndarray, "*batch 3 2"], colors: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "..."]:
    """Frames without noise: discs with an edge of one pixel on a black table."""
    at = np.arange(SIZE) + 0.5
    x, y = places[..., 0, None, None], places[..., 1, None, None]
    distance = np.sqrt((at[None, :] - x) ** 2 + (at[:, None] - y) ** 2)
    cover = np.clip(RADIUS + 0.5 - distance, 0, 1)
    return np.einsum("...kij,kc->...ijc", cover, colors).clip(0, 1).astype(np.float32)


def simulate(
    x: Float[np.ndarray, "3 2"], v: Float[np.ndarray, "3 2"], times: Float[np.ndarray, " n"], table: Table
) -> Float[np.ndarray, "n 3 2"]:
    """Places of all balls at increasing times, exact to rounding."""
    c, e = table.friction, table.restitution
    scaled = (1 - np.exp(-c * np.asarray(times))) / c if c else np.asarray(times, float)
    x, v, now, places = x.copy(), v.copy(), 0.0, []
    for goal in scaled:
        while True:
            wait, event = _next_event(x, v)
            if now + wait >= goal:
                break
            x, now = x + wait * v, now + wait
            v = _bounce(x, v, event, e)
        x, now = x + (goal - now) * v, goal
        places.append(x)
    return np.stack(places)


def _trial(rng: np.random.Generator, table: Table) -> Float[np.ndarray, "13 3 2"]:
    while True:
        x = rng.uniform(RADIUS + 0.5, SIZE - RADIUS - 0.5, (BALLS, 2))
        gaps = np.linalg.norm(x[:, None] - x[None], axis=2)[np.triu_indices(BALLS, 1)]
        if gaps.min() > 2 * RADIUS + 1:
            break
    v = rng.uniform(-FASTEST, FASTEST, (BALLS, 2))
    return simulate(x, v, np.arange(SEEN + AHEAD), table)


def _next_event(x: np.ndarray, v: np.ndarray) -> tuple[float, tuple[int, int, int]]:
    """Time to the next impact, and what it is: (0, ball, axis) with a wall, (1, ball, ball) with another ball."""
    first, what = NEVER, (0, 0, 0)
    for i in range(BALLS):
        for axis in range(2):
            if v[i, axis]:
                wall = SIZE - RADIUS if v[i, axis] > 0 else RADIUS
                wait = (wall - x[i, axis]) / v[i, axis]
                if wait < first:
                    first, what = max(wait, 0.0), (0, i, axis)
        for j in range(i):
            d, w = x[i] - x[j], v[i] - v[j]
            closing, speed2 = d @ w, w @ w
            root = closing**2 - speed2 * (d @ d - 4 * RADIUS**2)
            if closing < 0 and root > 0:
                wait = (-closing - np.sqrt(root)) / speed2
                if wait < first:
                    first, what = max(wait, 0.0), (1, i, j)
    return first, what


def _bounce(x: np.ndarray, v: np.ndarray, event: tuple[int, int, int], e: float) -> np.ndarray:
    """Velocities after an impact."""
    v, (kind, i, j) = v.copy(), event
    if kind == 0:
        v[i, j] *= -e
        return v
    n = (x[i] - x[j]) / np.linalg.norm(x[i] - x[j])
    impulse = 0.5 * (1 + e) * ((v[i] - v[j]) @ n) * n
    v[i], v[j] = v[i] - impulse, v[j] + impulse
    return v
