"""Line search: step lengths that are tried, and which of them is taken."""

from collections.abc import Sequence

STEP_LENGTHS_TRIED = 10
"""Number of halvings of a step before the damping grows."""
BATCH_WIDTH = 4
"""Smallest number of forward passes that are made at once: vector width of the kernels."""
ACCEPTED_DECREASE = 0.1
"""Part of the predicted decrease that a step must reach; larger gives shorter steps."""


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
