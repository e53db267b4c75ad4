"""Where a search begins: random motions, of which those that tell most are taken.

Half of the candidates swing around rest, fast or slow. The others swing around another posture, to which the robot goes
first and from which it returns at the end: what gravity tells differs most between postures.
"""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.design.criterion import CRITERIA
from truesim.identify.design.search import Experiment

CANDIDATES = 12
"""Candidates for each start that is asked for."""
SMOOTH = (0, 1, 2, 4)
"""Widths over which noise is smoothed, in knots."""
RISE = 0.25
"""Part of the time in which a posture is reached, and left again."""
SMALL = 1e-3
"""Size of probes."""
SCALES = 0.8 ** np.arange(16)


def reach(experiment: Experiment, shape: Float[np.ndarray, "splines"] | None = None) -> Float[np.ndarray, "nu"]:
    """Size of a motion of each control alone, by default of a single spline, that would use some limit in full."""
    n, nu = experiment.basis.shape[1], len(experiment.rest)
    form = experiment.basis @ (np.eye(n)[n // 2] if shape is None else shape)
    probes = np.concatenate([np.zeros((1, nu)), SMALL * np.eye(nu)])
    commands = experiment.rest + form[None, :, None] * probes[:, None]
    usage = experiment.limits.usage(experiment.sensitivities.motions(commands))
    rate = np.abs(usage[1:] - usage[:1]).max(axis=1) / SMALL
    room = np.maximum(1 - np.abs(usage[0]).max(axis=0), 0.05)
    return np.min(room / np.maximum(rate, 1e-9), axis=1)


def starts(experiment: Experiment, count: int, rng: np.random.Generator) -> list[Float[np.ndarray, "splines nu"]]:
    """The best of many random motions, all within the limits."""
    n, nu = experiment.basis.shape[1], len(experiment.rest)
    at = (np.arange(n) + 0.5) / n
    posture = _smoothstep(np.minimum(at, 1 - at) / RISE)
    far = reach(experiment, posture) / experiment.reach
    candidates = []
    for k in range(CANDIDATES * count):
        swing = _smoothed(rng.normal(size=(n, nu)), SMOOTH[k % len(SMOOTH)])
        swing = swing * fitting(experiment, swing) * rng.uniform(0.3, 1.0)
        around = posture[:, None] * far * rng.uniform(-0.9, 0.9, nu) * (k % 2)
        candidates.append((swing + around) * fitting(experiment, swing + around))
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


def _smoothed(noise: Float[np.ndarray, "splines nu"], width: int) -> Float[np.ndarray, "splines nu"]:
    if not width:
        return noise
    distance = np.arange(len(noise))[:, None] - np.arange(len(noise))
    kernel = np.exp(-0.5 * (distance / width) ** 2)
    return kernel @ noise / np.sqrt((kernel**2).sum(axis=1))[:, None]


def _smoothstep(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, 0.0, 1.0)
    return x**2 * (3 - 2 * x)
