"""Where a search begins: random motions, of which those that tell most are taken.

Most information is at the limits, so that a search ends in the arrangement of moves with which it began. Half of the
candidates have an arrangement that tells much of any robot: each joint alternates between moves at full speed, which
tell of damping, and pauses in which it creeps to and fro, which tell of dry friction and gravity; what is between them
tells of inertia. The others swing at random, fast or slow.
"""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.design.criterion import CRITERIA
from truesim.identify.design.search import Experiment

CANDIDATES = 24
"""Candidates for each start that is asked for."""
SMOOTH = (0, 1, 2, 4)
"""Widths over which noise is smoothed, in knots."""
MOVE = (4.0, 12.0)
"""How long a move or a pause lasts, in knots."""
TURN = 5.0
"""How long a joint creeps one way, in knots."""
CREEP = 0.05
"""Speed in pauses, in parts of that of moves."""
SMALL = 1e-3
"""Size of probes."""
SCALES = 1.3 * 0.94 ** np.arange(32)


def reach(experiment: Experiment, shapes: Float[np.ndarray, "splines nu"] | None = None) -> Float[np.ndarray, "nu"]:
    """Size of a motion of each control alone, by default of a single spline, that would use some limit in full."""
    n, nu = experiment.basis.shape[1], len(experiment.rest)
    forms = experiment.basis @ (np.tile(np.eye(n)[n // 2], (nu, 1)).T if shapes is None else shapes)
    probes = np.concatenate([np.zeros((1, nu)), SMALL * np.eye(nu)])
    commands = experiment.rest + forms * probes[:, None]
    usage = experiment.limits.usage(experiment.sensitivities.motions(commands))
    rate = np.abs(usage[1:] - usage[:1]).max(axis=1) / SMALL
    room = np.maximum(1 - np.abs(usage[0]).max(axis=0), 0.05)
    return np.min(room / np.maximum(rate, 1e-9), axis=1)


def starts(experiment: Experiment, count: int, rng: np.random.Generator) -> list[Float[np.ndarray, "splines nu"]]:
    """The best of many random motions, all within the limits."""
    n, nu = experiment.basis.shape[1], len(experiment.rest)
    candidates = []
    for k in range(CANDIDATES * count):
        noise = _smoothed(rng.normal(size=(n, nu)), SMOOTH[k // 2 % len(SMOOTH)])
        shapes = np.stack([_moves(n, rng) for _ in range(nu)], axis=1) if k % 2 else noise
        candidate = shapes * reach(experiment, shapes) / experiment.reach
        candidates.append(candidate * fitting(experiment, candidate))
    return sorted(candidates, key=lambda c: _value(experiment, c))[:count]


def fitting(experiment: Experiment, coefficients: Float[np.ndarray, "splines nu"]) -> float:
    """The factor with which a motion stays just within the limits."""
    commands = np.stack([experiment.commands(scale * coefficients) for scale in SCALES])
    usage = np.abs(experiment.limits.usage(experiment.sensitivities.motions(commands))).max(axis=(1, 2))
    inside = np.flatnonzero(usage <= 1)
    return float(SCALES[inside[0] if len(inside) else -1])


def _value(experiment: Experiment, coefficients: np.ndarray) -> float:
    sensed = experiment.sensitivities.sensed(experiment.commands(coefficients))
    return CRITERIA[experiment.criterion](experiment.fisher(sensed)).value if np.isfinite(sensed.J).all() else np.inf


def _moves(n: int, rng: np.random.Generator) -> Float[np.ndarray, "splines"]:
    """Positions at the knots of moves and pauses in turn, that end where they began."""
    speed, now, far = np.zeros(n), 0.0, rng.uniform(0.1, 0.4) * n
    moving, where, way = rng.random() < 0.5, 0.0, rng.choice((-1.0, 1.0))
    knots = np.arange(n)
    while now < n:
        length = rng.uniform(*MOVE)
        within = (knots >= now) & (knots < now + length)
        if moving:
            way = -np.sign(where) if abs(where + way * length) > far else way
            speed[within], where = way, where + way * length
            way = rng.choice((-1.0, 1.0))
        else:
            speed[within] = CREEP * np.where((knots - now) // TURN % 2, 1.0, -1.0)[within]
        moving, now = not moving, now + length
    position = np.cumsum(speed)
    return position - position[-1] * (knots + 1) / n


def _smoothed(noise: Float[np.ndarray, "splines nu"], width: int) -> Float[np.ndarray, "splines nu"]:
    if not width:
        return noise
    distance = np.arange(len(noise))[:, None] - np.arange(len(noise))
    kernel = np.exp(-0.5 * (distance / width) ** 2)
    return kernel @ noise / np.sqrt((kernel**2).sum(axis=1))[:, None]
