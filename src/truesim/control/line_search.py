"""Line search: step lengths that are tried, and which of them is taken."""

from collections.abc import Sequence

STEP_LENGTHS_TRIED = 10
"""Number of halvings of a step before the damping grows."""
BATCH_WIDTH = 4
"""Smallest number of forward passes that are made at once: vector width of the kernels."""
ACCEPTED_DECREASE = 0.1
"""Part of the predicted decrease that a step must reach; larger gives shorter steps."""
LONGER_STEPS = (1.5, 2.5)
"""Step lengths that a single feasible problem tries beside a full step after another full step: in the linear
convergence of Gauss-Newton they save a tenth of the iterations, where the vector would be idle."""


def chosen_step(
    lengths: Sequence[float], costs: Sequence[float], cost: float, weight: float, prediction: tuple[float, float]
) -> int | None:
    """Index of the first step length that decreases the penalty function enough, or of a longer and better one.

    Args:
        lengths: Step lengths; those beyond 1 come after it.
        costs: Cost that each reaches.
        cost: Present cost.
        weight: Penalty of the present defects, of which a step of length a closes the part a.
        prediction: First-order change of the cost by a full step, and its curvature.
    """
    first, curvature = prediction
    best = None
    for k, (length, reached) in enumerate(zip(lengths, costs, strict=True)):
        actual = reached - cost - weight * length
        expected = length * first + 0.5 * length**2 * curvature - weight * length
        if best is None:
            if length <= 1 and actual < 0 and actual <= ACCEPTED_DECREASE * min(expected, 0.0):
                best = k
        elif length > 1 and reached < costs[best]:
            best = k
    return best
