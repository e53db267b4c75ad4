"""Options and status of trajectory optimization."""

import dataclasses
import enum

from truesim.core.errors import TruesimError


class PlanStatus(enum.StrEnum):
    """Reason for which an optimization ended."""

    CONVERGED = "converged"
    """No step improves the cost by more than the tolerance, and all limits hold."""
    STALLED = "stalled"
    """No step length with any damping improves the cost."""
    OUT_OF_ITERATIONS = "out of iterations"
    """The maximum number of iterations was reached."""
    OUT_OF_TIME = "out of time"
    """The time limit was reached."""
    LIMITS_VIOLATED = "limits violated"
    """The optimization ended, and the best motion still violates a limit."""


STATUS_SENTENCES = {
    PlanStatus.CONVERGED: "The plan is a local minimum.",
    PlanStatus.STALLED: "The optimization stalled: no step improves the cost, which may not be smooth here.",
    PlanStatus.OUT_OF_ITERATIONS: "The optimization did not converge within its iterations; this is its best motion.",
    PlanStatus.OUT_OF_TIME: "The optimization did not converge within its time; this is its best motion.",
    PlanStatus.LIMITS_VIOLATED: "No motion within all limits was found; this one violates them least.",
}
"""One sentence for each status."""


@dataclasses.dataclass(frozen=True)
class PlanOptions:
    """Tolerances, number of iterations, damping and limits of trajectory optimization."""

    iterations: int = 300
    """Maximum number of iterations of each problem, over all stages."""
    tolerance: float = 1e-9
    """Predicted decrease of the cost, relative to 1 plus the cost, below which it has converged."""
    violation: float = 1e-4
    """Largest violation of a limit that is accepted [units of the quantity]."""
    stages: int = 12
    """Maximum number of updates of the multipliers of limits."""
    stiffness: float = 10.0
    """First stiffness of limits; larger holds them earlier and makes the problem harder."""
    damping: float = 1.0
    """First damping: weight of changes of the states; larger gives shorter first steps."""
    starts: int = 1
    """Number of initial guesses: the given one and random ones around it, of which the best plan is kept."""
    randomness: float = 0.3
    """Standard deviation of random guesses, relative to the range of each command (to 1 where it has none)."""
    seed: int = 0
    """Seed of the random guesses."""
    smoothing: tuple[float, ...] = ()
    """Smoothing of rigid contact in the derivatives, from one stage to the next, which share the iterations; motions
    keep that of the simulator."""
    seconds: float | None = None
    """Time limit [s]."""
    threads: int = 1
    """Threads that share the knots and the problems of a batch; results do not depend on it."""

    def __post_init__(self) -> None:
        for name in ("iterations", "tolerance", "violation", "stages", "stiffness", "damping", "starts", "threads"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be positive.")
        for name in ("iterations", "stages", "starts", "threads"):
            if getattr(self, name) != int(getattr(self, name)):
                raise TruesimError(f"{name} is {getattr(self, name):g}; it must be a whole number.")
        if any(not 0 < s < 1 for s in self.smoothing):
            raise TruesimError(f"The smoothing is {self.smoothing}; every value must lie between 0 and 1.")
