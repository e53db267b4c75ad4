"""Motors that turn with two joints, found in torques: their armature and friction act on both.

The motors of a wrist often turn with the sum, or the difference, of two joints. The residuals of both joints are
regressed on the terms of such a motor, beside the terms of their own; a motor is added where that predicts other parts
of the logs clearly better at both joints.
"""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Float, Int
from truesim.files.logs import Log
from truesim.identification.regression.choose import fold, least_squares, residuals
from truesim.identification.regression.equations import reduce
from truesim.identification.regression.errors import BAND, joint_names
from truesim.identification.regression.estimate import BASIC_TERMS, ArmSystem, basic_terms, regress
from truesim.identification.regression.signals import SLIDING_SPEED, JointSamples, band_limited, rest_speeds
from truesim.physics.model.kinds import HINGE
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import couplings, with_coupling

MAX_COUPLINGS = 3
"""Largest number of motors that are added."""
COUPLING_GAIN = 0.2
"""A motor is added if it lowers the cross-validated residuals of both of its joints by this fraction. Larger adds
fewer."""
MAX_DISTANCE = 2
"""Largest distance of coupled joints along the arm, in joints: motors are coupled within a wrist or a shoulder."""
MIN_COUPLED_ROWS = 100
"""Samples at which both joints of a pair move that are needed."""


@dataclasses.dataclass(frozen=True)
class _Pair:
    """Two joints, and the sign with which a motor turns with the second."""

    first: int
    second: int
    sign: float

    def name(self, model: Model) -> str:
        """Name of the motor."""
        names = joint_names(model)
        return f"{names[self.first]}_{'and' if self.sign > 0 else 'minus'}_{names[self.second]}"


def add_couplings(model: Model, logs: Sequence[Log]) -> Model:
    """The model with motors that turn with two joints where the torques of both show them.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    for _ in range(MAX_COUPLINGS):
        samples = band_limited(model, logs, BAND)
        pair = _best_pair(model, samples)
        if pair is None:
            break
        names = joint_names(model)
        model = with_coupling(model, pair.name(model), {names[pair.first]: 1.0, names[pair.second]: pair.sign})
    return model


def _best_pair(model: Model, samples: JointSamples) -> _Pair | None:
    folds = fold(samples, rest_speeds(model))
    reduced = reduce(model, samples, folds)
    system = ArmSystem.of(model, reduced, basic_terms(model.nv))
    found = regress(system, np.arange(len(reduced.gram)), 1.0)
    residual, known = -residuals(model, samples, found), couplings(model)
    hinges = [k for k, link in enumerate(x for x in model.topology.links if x.joint >= 0) if link.kind == HINGE]
    near = [(i, j) for i, j in itertools.combinations(hinges, 2) if j - i <= MAX_DISTANCE]
    pairs = [_Pair(i, j, sign) for i, j in near for sign in (1.0, -1.0)]
    left = {p: _left(samples, residual, folds, p) for p in pairs if p.name(model) not in known}
    best = min(left, key=lambda p: left[p], default=None)
    return best if best is not None and left[best] < (1 - COUPLING_GAIN) ** 2 else None


def _left(
    samples: JointSamples,
    residual: Float[np.ndarray, "samples joints"],
    folds: Int[np.ndarray, " samples"],
    pair: _Pair,
) -> float:
    """Squared residual with a motor relative to that without, of the joint that gains less; infinite if implausible."""
    both = (pair.first, pair.second)
    rows = np.isfinite(residual[:, both]).all(axis=1)
    if rows.sum() < MIN_COUPLED_ROWS:
        return np.inf
    w, dw = (x[rows, pair.first] + pair.sign * x[rows, pair.second] for x in (samples.v, samples.a))
    motor = np.stack([dw, w, np.tanh(w / SLIDING_SPEED[False])], axis=1)
    none = np.zeros((len(w), len(BASIC_TERMS) + 1))
    size = motor.shape[1] + 2 * none.shape[1] + 1
    grams = np.zeros((int(folds.max()) + 1, 2, size, size))
    for k, (j, sign) in enumerate(zip(both, (1.0, pair.sign), strict=True)):
        r, own = residual[rows, j], [none, none]
        own[k] = _own(samples, rows, j)
        A = np.column_stack([sign * motor, *own, r]) / np.sqrt(np.mean(r**2))
        for fold_of in np.unique(folds[rows]):
            part = A[folds[rows] == fold_of]
            grams[fold_of, k] = part.T @ part
    columns = list(range(size - 1))
    with_motor, without = (_validated(grams, columns[first:]) for first in (0, motor.shape[1]))
    damping, friction = least_squares(grams.sum(axis=(0, 1)), columns)[1:3]
    if friction < 0 or damping * np.abs(w).mean() + friction <= 0:
        return np.inf
    return float(np.max(with_motor / np.maximum(without, 1e-300)))


def _own(samples: JointSamples, rows: np.ndarray, j: int) -> Float[np.ndarray, "rows 4"]:
    v = samples.v[rows, j]
    return np.stack([samples.a[rows, j], v, samples.direction[rows, j], np.ones_like(v)], axis=1)


def _validated(grams: Float[np.ndarray, "folds 2 n n"], columns: Sequence[int]) -> Float[np.ndarray, "2"]:
    """Squared residuals of both joints in folds that were not fitted to."""
    total, at = np.zeros(2), [*columns, grams.shape[-1] - 1]
    for own in grams:
        y = np.append(least_squares((grams.sum(axis=0) - own).sum(axis=0), columns), -1.0)
        total += np.einsum("i,jik,k->j", y, own[:, at][:, :, at], y)
    return total
