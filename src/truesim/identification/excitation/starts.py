"""Random starts of a motion optimization, the most informative of many candidates.

Optimal motions are at their limits, and the optimization hardly changes the sequence of moves with which it starts. In
half of the candidates each joint alternates between moves at full speed, which are informative on damping, and pauses
with slow reversals, which are informative on joint friction and gravity; transitions are informative on inertia. The
others are smoothed noise of several bandwidths.
"""

import numpy as np

from truesim.core.typing import Float
from truesim.identification.excitation.criterion import CRITERIA
from truesim.identification.excitation.search import Experiment

CANDIDATES_PER_START = 24
"""Random candidates for each start."""
NOISE_WIDTHS = (0, 1, 2, 4)
"""Widths over which noise is smoothed, in knots."""
MOVE_DURATION = (4.0, 12.0)
"""Shortest and longest duration of a move or a pause, in knots."""
REVERSAL_PERIOD = 5.0
"""Time between reversals in a pause, in knots."""
PAUSE_SPEED = 0.05
"""Speed in pauses, as a fraction of that of moves."""
PROBE_SIZE = 1e-3
"""Size of the motions that measure the usage of limits."""
TRIED_SCALES = 1.3 * 0.94 ** np.arange(32)
"""Factors by which a candidate is scaled to fit into the limits."""


def control_reach(
    experiment: Experiment, shapes: Float[np.ndarray, "splines nu"] | None = None
) -> Float[np.ndarray, " nu"]:
    """Size of a motion of each control alone, by default of a single spline, that uses some limit fully."""
    n, nu = experiment.basis.shape[1], len(experiment.rest)
    forms = experiment.basis @ (np.tile(np.eye(n)[n // 2], (nu, 1)).T if shapes is None else shapes)
    probes = np.concatenate([np.zeros((1, nu)), PROBE_SIZE * np.eye(nu)])
    commands = experiment.rest + forms * probes[:, None]
    usage = experiment.limits.usage(experiment.sensitivities.motions(commands))
    rate = np.abs(usage[1:] - usage[:1]).max(axis=1) / PROBE_SIZE
    room = np.maximum(1 - np.abs(usage[0]).max(axis=0), 0.05)
    return np.min(room / np.maximum(rate, 1e-9), axis=1)


def draw_starts(experiment: Experiment, count: int, rng: np.random.Generator) -> list[Float[np.ndarray, "splines nu"]]:
    """The best of many random motions within the limits."""
    n, nu = experiment.basis.shape[1], len(experiment.rest)
    candidates = []
    for k in range(CANDIDATES_PER_START * count):
        noise = _smooth(rng.normal(size=(n, nu)), NOISE_WIDTHS[k // 2 % len(NOISE_WIDTHS)])
        shapes = np.stack([_moves(n, rng) for _ in range(nu)], axis=1) if k % 2 else noise
        candidate = shapes * control_reach(experiment, shapes) / experiment.reach
        candidates.append(candidate * fitting_scale(experiment, candidate))
    return sorted(candidates, key=lambda c: _value(experiment, c))[:count]


def fitting_scale(experiment: Experiment, coefficients: Float[np.ndarray, "splines nu"]) -> float:
    """Largest tried factor with which a motion stays within the limits."""
    commands = np.stack([experiment.commands(scale * coefficients) for scale in TRIED_SCALES])
    usage = np.abs(experiment.limits.usage(experiment.sensitivities.motions(commands))).max(axis=(1, 2))
    inside = np.flatnonzero(usage <= 1)
    return float(TRIED_SCALES[inside[0] if len(inside) else -1])


def _value(experiment: Experiment, coefficients: np.ndarray) -> float:
    sensed = experiment.sensitivities.sense(experiment.commands(coefficients))
    return CRITERIA[experiment.criterion](experiment.fisher(sensed)).value if np.isfinite(sensed.J).all() else np.inf


def _moves(n: int, rng: np.random.Generator) -> Float[np.ndarray, " splines"]:
    """Positions at the knots of alternating moves and pauses that return to the start."""
    speed, now, far = np.zeros(n), 0.0, rng.uniform(0.1, 0.4) * n
    moving, where, way = rng.random() < 0.5, 0.0, rng.choice((-1.0, 1.0))
    knots = np.arange(n)
    while now < n:
        length = rng.uniform(*MOVE_DURATION)
        within = (knots >= now) & (knots < now + length)
        if moving:
            way = -np.sign(where) if abs(where + way * length) > far else way
            speed[within], where = way, where + way * length
            way = rng.choice((-1.0, 1.0))
        else:
            speed[within] = PAUSE_SPEED * np.where((knots - now) // REVERSAL_PERIOD % 2, 1.0, -1.0)[within]
        moving, now = not moving, now + length
    position = np.cumsum(speed)
    return position - position[-1] * (knots + 1) / n


def _smooth(noise: Float[np.ndarray, "splines nu"], width: int) -> Float[np.ndarray, "splines nu"]:
    if not width:
        return noise
    distance = np.arange(len(noise))[:, None] - np.arange(len(noise))
    kernel = np.exp(-0.5 * (distance / width) ** 2)
    return kernel @ noise / np.sqrt((kernel**2).sum(axis=1))[:, None]
