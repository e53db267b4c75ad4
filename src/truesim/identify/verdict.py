"""The verdict: whether a fit may be believed, in one word and in sentences."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.identify.evaluate import Errors
from truesim.identify.fit import Solution

CONVERGED, NOT_IDENTIFIABLE = "converged", "not identifiable"
DOES_NOT_FIT, DIVERGED, INTERRUPTED = "model does not fit", "diverged", "interrupted"
ROUGH = 3.0
"""Residuals this many times larger than the sensors' noise are worth a sentence."""
UNEXPLAINED = 0.5
"""Residuals larger than this part of the motion within a window mean that the model does not fit."""
WORSE = 3.0
"""Held-out errors larger than those on the logs of the fit by this factor mean the same."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What to think of a fit."""

    kind: str
    """`converged`, `not identifiable`, `model does not fit`, `diverged` or `interrupted`."""
    sentences: tuple[str, ...]
    """Why, and what to do about it."""


def verdict(
    solution: Solution,
    unseen: Sequence[str],
    train: Mapping[str, Errors],
    held_out: Mapping[str, Errors] | None = None,
) -> Verdict:
    """The verdict on a solution.

    Args:
        solution: The solved problem.
        unseen: What the logs do not show, in words.
        train: Open-loop errors on the logs of the fit.
        held_out: Open-loop errors on other logs.
    """
    rough, unexplained = _misfit(solution)
    sentences = list(rough)
    worse = _worse(train, held_out or {})
    if solution.interrupted:
        return Verdict(INTERRUPTED, ("Stopped before the end: these are the best values so far.", *sentences))
    if not np.isfinite(solution.at.shot.residual[solution.problem.layout.valid]).all():
        return Verdict(DIVERGED, ("A simulation did not stay finite at the end: try narrower bounds.", *sentences))
    if unexplained or worse:
        return Verdict(DOES_NOT_FIT, (*unexplained, *worse, *sentences, *unseen))
    if not solution.converged and solution.problem.blueprint is not None:
        sentences.append("Training ended at its limit of iterations: more of them may help.")
    elif not solution.converged:
        advice = "try a better start or narrower bounds" if solution.found is None else "give it more time or solves"
        return Verdict(DIVERGED, (f"The search ended before it came to rest: {advice}.", *sentences))
    if unseen:
        return Verdict(NOT_IDENTIFIABLE, (*unseen, *sentences))
    return Verdict(CONVERGED, tuple(sentences))


def _misfit(solution: Solution) -> tuple[list[str], list[str]]:
    """Rows whose residuals exceed the sensors' noise by far, and rows whose motion is not explained."""
    problem, at, windows = solution.problem, solution.at, solution.windows
    rough, unexplained = [], []
    for k, row in enumerate(problem.rows):
        valid = problem.layout.valid[..., k]
        residual = np.where(valid, at.shot.residual[..., k], 0.0)
        rms = float(np.sqrt((residual**2).sum() / max(valid.sum(), 1)))
        ratio = rms / max(float(solution.sensor_noise[k]), 1e-300)
        motion = _motion(solution, windows.window, k)
        if rms > UNEXPLAINED * motion > 0 and ratio > ROUGH:  # rotations are compared, their motion is not known
            unexplained.append(
                f"{row}: the residual of {rms:.3g} is {100 * rms / max(motion, 1e-300):.0f} % of the motion itself."
            )
        elif ratio > ROUGH:
            rough.append(
                f"{row}: residuals of {rms:.2g} are {ratio:.0f} times the sensor's noise, so something in the robot is "
                "not in the model; the intervals allow for it."
            )
    return rough, unexplained


def _motion(solution: Solution, window: np.ndarray, row: int) -> float:
    """Typical spread of a measured row within a window, as far as it is not straight [the row's unit]."""
    problem = solution.problem
    measured = problem.measured_rows[..., row]
    valid = problem.layout.valid[..., row]
    spreads = [np.std(measured[window == w][valid[window == w]]) for w in np.unique(window) if valid[window == w].any()]
    return float(np.sqrt(np.mean(np.square(spreads)))) if spreads else 0.0


def _worse(train: Mapping[str, Errors], held_out: Mapping[str, Errors]) -> list[str]:
    return [
        f"{row}: the error on held-out logs, {held_out[row].median:.3g}, is "
        f"{held_out[row].median / train[row].median:.1f} times that on the logs of the fit."
        for row in held_out
        if row in train and held_out[row].median > WORSE * train[row].median > 0
    ]
