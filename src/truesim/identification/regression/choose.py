"""Choice of band, offsets and friction terms by cross-validation over contiguous blocks of samples."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Float, Int
from truesim.files.logs import Log
from truesim.identification.regression.equations import (
    ARMATURE_TERM,
    DAMPING_TERM,
    FRICTION_TERM,
    LOAD_TERM,
    OFFSET_TERM,
    STRIBECK_TERM,
    TERMS,
    Reduced,
    equations,
    reduce,
)
from truesim.identification.regression.errors import BAND
from truesim.identification.regression.estimate import ArmSystem, Regressed, Terms, basic_terms, regress
from truesim.identification.regression.signals import STRIBECK_SPEEDS, JointSamples, band_limited, rest_speeds
from truesim.physics.model.model import Model

BAND_FACTORS = (0.5, 2.0)
"""Other bands that are tried, relative to `BAND`."""
REGRESSION_FOLDS = 5
"""Folds of cross-validation."""
FOLD_CYCLES = (1, 3, 9, 27)
"""Contiguous blocks of each fold in a log: the least for which every joint moves in several folds."""
MAX_FOLD_SHARE = 0.5
"""Largest part of a joint's motion in one fold. Larger allows folds without which a joint is hardly known."""
BAND_GAIN = 0.02
"""Another band is taken if it lowers the cross-validated error by this fraction. Larger keeps `BAND` more often."""
OFFSET_GAIN = 0.01
"""Offsets are estimated if they lower the cross-validated error by this fraction."""
FRICTION_GAIN = 0.01
"""A friction term is added if it lowers a joint's cross-validated residual by this fraction. Larger adds fewer."""
FRICTION_ROUNDS = 3
"""Times that friction terms are chosen, each time with the inertial parameters found with the last ones."""
LOAD_SHARE = 0.5
"""Load-dependent friction needs a load of at least this many times the Coulomb friction; below, the two are collinear.
Larger asks for more load."""
MAX_LOAD_FRICTION = 0.5
"""Largest friction relative to the load. Larger allows terms that take the place of a wrong mass."""
LOAD_SIGNIFICANCE = 6.0
"""Standard deviations, without account of autocorrelation, that friction under load must have. Larger adds fewer."""
LOAD_GAIN = 0.002
"""Friction under load must lower the cross-validated error of all joints by this fraction. Larger adds fewer."""
ONSET_SHARE = 1e-3
"""Part of the moving samples that must lie at the onset of motion for friction that changes there."""
MAX_SHARE = 0.6
"""Part of the moving samples beyond which nothing but the onset is seen, and such friction cannot be told apart."""
MAX_ONSET = 4.0
"""Largest friction at the onset of motion, relative to that in full motion."""
MAX_WEIGHT = 30.0
"""Largest weight of the prior, in units of the residuals' variance."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Band and terms of a regression, with its estimate and the simpler one without additional friction terms."""

    samples: JointSamples
    folds: Int[np.ndarray, " samples"]
    textbook: Regressed
    """Estimate with armature, damping, Coulomb friction and offsets, in the band `BAND` and with a prior of weight
    one."""
    reference: JointSamples
    """Motion and torque in the band `BAND`."""
    basic: Regressed
    """Estimate with armature, damping, Coulomb friction and perhaps offsets."""
    best: Regressed
    """Estimate with the chosen friction terms."""
    weight: float
    """Weight of the prior."""
    weights: tuple[float, ...]
    """Weights that were compared."""
    times: Float[np.ndarray, " joints"]
    """Integrated autocorrelation of each joint's residual, in samples."""
    errors: dict[float, float]
    """Cross-validated relative torque error by band [Hz], all in the band of comparison."""
    loaded: Reduced
    """Equations with the load of the basic estimate."""

    def with_terms(self, model: Model, terms: Terms, weight: float) -> Regressed:
        """The estimate with other terms and another weight of the prior, in the chosen band."""
        return regress(ArmSystem.of(model, self.loaded, terms), np.arange(REGRESSION_FOLDS), weight)


def choose(model: Model, logs: Sequence[Log], load_friction: bool = True) -> Chosen:
    """Choose band, offsets and friction terms, and estimate with them.

    Args:
        model: The robot; its inertias are the prior.
        logs: Prepared logs with joint torques.
        load_friction: Whether friction that is proportional to the load may be added.
    """
    every, rest = np.arange(REGRESSION_FOLDS), rest_speeds(model)
    first = band_limited(model, logs, BAND)
    folds = fold(first, rest)
    reference = reduce(model, first, folds)
    offsets = basic_terms(model.nv)
    textbook = regress(ArmSystem.of(model, reference, offsets), every, 1.0)
    tried = _prior_weights(model, first, textbook)
    weights = {w: cross_validate(model, reference, reference, offsets, w) for w in tried}
    weight = min(weights, key=lambda w: weights[w])
    reductions = {BAND: (first, folds, reference)}
    errors = {BAND: weights[weight]}
    for factor in BAND_FACTORS:
        other = band_limited(model, logs, factor * BAND)
        if len(other):
            own = fold(other, rest)
            reduced = reduce(model, other, own)
            reductions[factor * BAND] = (other, own, reduced)
            errors[factor * BAND] = cross_validate(model, reduced, reference, offsets, weight)
    band = min(errors, key=lambda b: errors[b] * (1.0 if b == BAND else 1 + BAND_GAIN))
    samples, folds, reduced = reductions[band]
    without = cross_validate(model, reduced, reference, basic_terms(model.nv, offsets=False), weight)
    terms = basic_terms(model.nv, offsets=errors[band] < (1 - OFFSET_GAIN) * without)
    basic = regress(ArmSystem.of(model, reduced, terms), every, weight)
    loaded = reduce(model, samples, folds, basic.theta)
    chosen = choose_friction(dataclasses.replace(basic.system, reduced=loaded), basic, load_friction)
    if load_friction:
        chosen = add_loads(model, loaded, chosen, weight)
    best = basic
    for _ in range(FRICTION_ROUNDS):
        if np.array_equal(chosen, best.system.terms):
            break
        best = regress(ArmSystem.of(model, loaded, chosen), every, weight)
        terms[:, LOAD_TERM] = chosen[:, LOAD_TERM]
        chosen = choose_friction(ArmSystem.of(model, loaded, terms), best, load_friction=False)
    times = correlation_times(model, samples, best)
    return Chosen(samples, folds, textbook, first, basic, best, weight, tried, times, errors, loaded)


def fold(samples: JointSamples, rest: Float[np.ndarray, " joints"]) -> Int[np.ndarray, " samples"]:
    """Contiguous blocks of equal length in each log, so that the order of logs does not matter.

    Each fold is one block, or several shorter ones where a joint would move in a single fold only: in a log that moves
    one joint after the other.

    Args:
        samples: Motion and torque.
        rest: Speed below which each joint counts as at rest.
    """
    out, moving = np.zeros(len(samples), int), np.abs(samples.v) > rest
    for cycles in FOLD_CYCLES:
        for log in np.unique(samples.log):
            own = np.flatnonzero(samples.log == log)
            out[own] = np.arange(len(own)) * REGRESSION_FOLDS * cycles // len(own) % REGRESSION_FOLDS
        moved = np.stack([moving[out == k].sum(axis=0) for k in range(REGRESSION_FOLDS)])
        if np.all(moved.max(axis=0) <= MAX_FOLD_SHARE * moved.sum(axis=0)):
            break
    return out


def cross_validate(model: Model, reduced: Reduced, reference: Reduced, terms: Terms, weight: float) -> float:
    """Relative torque error of blocks that were not fitted to, mean over joints.

    Args:
        model: The robot.
        reduced: Equations to fit to.
        reference: Equations of the same blocks in which errors are taken, so that bands can be compared.
        terms: Terms of each joint.
        weight: Weight of the prior.
    """
    system, other = (ArmSystem.of(model, r, terms) for r in (reduced, reference))
    blocks = np.arange(len(reduced.gram))
    start = regress(system, blocks, weight, rounds=2)
    total = np.zeros(model.nv)
    for block in blocks:
        fitted = regress(system, blocks[blocks != block], weight, start, rounds=1)
        total += other.squares(fitted.x, np.array([block]))
    moved = reference.count.sum(axis=0) > 0
    return float(np.mean(np.sqrt(total / other.torque_squares(blocks))[moved])) if moved.any() else np.inf


def choose_friction(system: ArmSystem, found: Regressed, load_friction: bool) -> Terms:
    """Add friction terms to each joint, at most one of speed and one of load, where they predict other blocks better.

    With all inertial parameters fixed, the rest of a joint's torque is regressed on its own terms and one more.
    """
    terms = system.terms.copy()
    speed, load = list(range(STRIBECK_TERM, LOAD_TERM)), [LOAD_TERM] if load_friction else []
    for j in range(len(terms)):
        grams = _own_equations(system, found, j)
        own = [t for t in (ARMATURE_TERM, DAMPING_TERM, FRICTION_TERM, OFFSET_TERM, LOAD_TERM) if terms[j, t]]
        plain, candidates = _validated(grams, own), {*speed, *load}
        while candidates:
            errors = {t: _validated(grams, [*own, t]) for t in sorted(candidates) if _plausible(grams, own, t)}
            best = min(errors, key=errors.__getitem__, default=None)
            if best is None or errors[best] >= (1 - FRICTION_GAIN) ** 2 * plain:
                break
            terms[j, best], plain, own = True, errors[best], [*own, best]
            candidates -= {best} if best == LOAD_TERM else set(speed)
    return terms


def add_loads(model: Model, loaded: Reduced, terms: Terms, weight: float) -> Terms:
    """Add friction under load where all unknowns together show it, if that predicts other blocks better.

    Inertial parameters that were estimated without such friction have taken its place in part, so that joint by joint
    it is easily missed.
    """
    every = terms.copy()
    total = loaded.gram.sum(axis=0)[:, -1 - len(TERMS) : -1, -1 - len(TERMS) : -1]
    friction, load = total[:, FRICTION_TERM, FRICTION_TERM], total[:, LOAD_TERM, LOAD_TERM]
    first = regress(ArmSystem.of(model, loaded, terms), np.arange(len(loaded.gram)), weight)
    every[:, LOAD_TERM] |= load > (LOAD_SHARE * first.term(FRICTION_TERM)) ** 2 * np.maximum(friction, 1e-300)
    found = regress(ArmSystem.of(model, loaded, every), np.arange(len(loaded.gram)), weight)
    std = np.sqrt(np.maximum(np.diag(np.linalg.inv(found.hessian)), 0.0))
    for j in np.flatnonzero(every[:, LOAD_TERM] & ~terms[:, LOAD_TERM]):
        place = found.system.places[j, LOAD_TERM]
        every[j, LOAD_TERM] = LOAD_SIGNIFICANCE * std[place] < found.x[place] < MAX_LOAD_FRICTION
    if (every == terms).all():
        return terms
    errors = [cross_validate(model, loaded, loaded, each, weight) for each in (terms, every)]
    return every if errors[1] < (1 - LOAD_GAIN) * errors[0] else terms


def _own_equations(system: ArmSystem, found: Regressed, j: int) -> Float[np.ndarray, "blocks terms_and_torque _"]:
    """Gram matrices of a joint's own terms and of the torque that the inertial parameters leave."""
    base = system.shared
    width = system.reduced.gram.shape[-1]
    left = np.zeros((width, len(TERMS) + 1))
    left[base:-1, :-1] = np.eye(len(TERMS))
    left[:base, -1] = -found.x[:base]
    left[-1, -1] = 1.0
    return np.einsum("ik,bij,jl->bkl", left, system.reduced.gram[:, j], left)


def _validated(grams: np.ndarray, terms: Sequence[int]) -> float:
    """Squared residual of blocks that were not fitted to."""
    total = 0.0
    for block in range(len(grams)):
        rest = grams.sum(axis=0) - grams[block]
        y = np.append(least_squares(rest, terms), -1.0)
        at = np.ix_([*terms, -1], [*terms, -1])
        total += float(y @ grams[block][at] @ y)
    return max(total, 0.0)


def least_squares(gram: np.ndarray, terms: Sequence[int]) -> Float[np.ndarray, " terms"]:
    """Least squares on a Gram matrix whose last column is the right side."""
    matrix, right = gram[np.ix_(terms, terms)], gram[list(terms), -1]
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix * np.outer(scale, scale) + 1e-9 * np.eye(len(scale))
    return scale * np.linalg.solve(scaled, scale * right)


def _plausible(grams: np.ndarray, own: Sequence[int], term: int) -> bool:
    """True if a term has a possible value: friction stays positive, and the joint is loaded."""
    total = grams.sum(axis=0)
    values = dict(zip([*own, term], least_squares(total, [*own, term]), strict=True))
    if term == LOAD_TERM:
        load = np.sqrt(total[LOAD_TERM, LOAD_TERM] / max(total[FRICTION_TERM, FRICTION_TERM], 1e-300))
        return bool(0 < values[LOAD_TERM] < MAX_LOAD_FRICTION and load > LOAD_SHARE * abs(values[FRICTION_TERM]))
    share = total[term, term] / max(total[FRICTION_TERM, FRICTION_TERM], 1e-300)
    onset = values[FRICTION_TERM] + values[term]
    return bool(
        values[FRICTION_TERM] > 0 and 0 < onset < MAX_ONSET * values[FRICTION_TERM] and ONSET_SHARE < share < MAX_SHARE
    )


def stribeck_speed(terms: Terms, j: int) -> float | None:
    """Speed of the chosen Stribeck term of a joint [rad/s or m/s]; None without one."""
    own = np.flatnonzero(terms[j, STRIBECK_TERM:LOAD_TERM])
    return STRIBECK_SPEEDS[own[0]] if len(own) else None


def correlation_times(model: Model, samples: JointSamples, found: Regressed) -> Float[np.ndarray, " joints"]:
    """Integrated autocorrelation of the residual of each joint, in samples, at least one."""
    return np.array([_integrated(r, samples.part) for r in residuals(model, samples, found).T])


def residuals(model: Model, samples: JointSamples, found: Regressed) -> Float[np.ndarray, "samples joints"]:
    """Residual of each joint, the estimate minus the torque; NaN where the joint rests [N m or N]."""
    residual = np.full((len(samples), model.nv), np.nan)
    maps = [found.system.selection(j) @ np.append(found.x, -1.0) for j in range(model.nv)]
    for at, j, rows in equations(model, samples, found.theta):
        residual[at, j] = rows @ maps[j]
    return residual


def _integrated(r: Float[np.ndarray, " samples"], part: Int[np.ndarray, " samples"]) -> float:
    """Integrated autocorrelation of a signal with gaps, summed up to the first lag that is not significant."""
    used = np.isfinite(r)
    x = np.where(used, r, 0.0)
    power = float((x * x).sum())
    if power == 0:
        return 1.0
    total = 1.0
    for lag in range(1, max(2, len(x) // 4)):
        same = (part[lag:] == part[:-lag]) & used[lag:] & used[:-lag]
        count = int(same.sum())
        rho = float((x[lag:] * x[:-lag])[same].sum()) / max(count, 1) * used.sum() / power
        if count < 10 or rho < 2 / np.sqrt(count):
            break
        total += 2 * rho
    return total


def _prior_weights(model: Model, samples: JointSamples, found: Regressed) -> tuple[float, ...]:
    """Weights of the prior that are compared: the correlation time of the residuals, and one.

    With the first, correlated rows count as the fewer independent ones that they are. The second is better where the
    robot file is far from the robot, such as without a heavy load.
    """
    times = correlation_times(model, samples, found)
    return tuple(dict.fromkeys((float(np.clip(np.mean(times), 1.0, MAX_WEIGHT)), 1.0)))
