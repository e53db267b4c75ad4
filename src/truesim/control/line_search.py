"""Rules of an iteration: step lengths that are tried, which of them is taken, penalty of defects and damping."""

from collections.abc import Sequence

STEP_LENGTHS_TRIED = 10
"""Number of halvings of a step before the damping grows."""
BATCH_WIDTH = 4
"""Smallest number of forward passes that are made at once: vector width of the kernels."""
ACCEPTED_DECREASE = 0.1
"""Part of the predicted decrease that a step must reach; larger gives shorter steps."""
LOWEST_STATE_DAMPING, HIGHEST_STATE_DAMPING = 1e-12, 1e9
"""Range of the damping: beyond the upper end a problem stalls."""
DAMPING_FACTOR = 10.0
"""Factor by which the damping changes."""
SHORT_STEP, LONG_STEP = 0.02, 0.5
"""Step length below which the damping grows, and from which on it falls."""
DEFECT_TOLERANCE = 1e-9
"""Sum of defects below which a motion counts as feasible."""
PENALTY_MARGIN = 0.5
"""Part of the decrease of the penalty function that comes from closing defects, at least."""


def accepted_step(
    lengths: Sequence[float], costs: Sequence[float], cost: float, weight: float, prediction: tuple[float, float]
) -> int | None:
    """Index of the first step length that decreases the penalty function enough; None if none does.

    Args:
        lengths: Step lengths.
        costs: Cost that each reaches.
        cost: Present cost.
        weight: Penalty of the present defects, of which a step of length a closes the part a.
        prediction: First-order change of the cost by a full step, and its curvature.
    """
    first, curvature = prediction
    for k, (length, reached) in enumerate(zip(lengths, costs, strict=True)):
        actual = reached - cost - weight * length
        expected = length * first + 0.5 * length**2 * curvature - weight * length
        if actual < 0 and actual <= ACCEPTED_DECREASE * min(expected, 0.0):
            return k
    return None


def needed_penalty(first: float, curvature: float, defect: float) -> float:
    """Penalty of defects with which a step decreases the penalty function.

    Args:
        first: First-order change of the cost by a full step.
        curvature: Its curvature along the step.
        defect: Sum of the defects.
    """
    return (first + 0.5 * max(curvature, 0.0)) / (PENALTY_MARGIN * defect)


def damping_factor(length: float) -> float:
    """Factor of the damping after a step."""
    if length < SHORT_STEP:
        return DAMPING_FACTOR
    return 1.0 if length < LONG_STEP else 1 / DAMPING_FACTOR
