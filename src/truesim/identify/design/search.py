"""The search for the best motion: quasi-Newton steps on the coefficients of splines, with limits that harden."""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from truesim.core.typing import Float
from truesim.identify.design.criterion import CRITERIA
from truesim.identify.design.limits import Limits
from truesim.identify.design.sensitivity import Sensed, Sensitivities

HARD = (30.0, 300.0, 3000.0)
"""Weight of what lies beyond the limits, stage by stage."""
MARGIN = 0.03
"""Part of the limits that is kept in reserve."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Commands as a function of coefficients, and what they are worth."""

    sensitivities: Sensitivities
    limits: Limits
    basis: Float[np.ndarray, "samples splines"]
    """Splines, from rest to rest."""
    rest: Float[np.ndarray, "nu"]
    """Controls that hold the robot where it starts."""
    reach: Float[np.ndarray, "nu"]
    """Usual size of the coefficients of each control."""
    information: Float[np.ndarray, "rows"]
    """Of one sample of the design, for each reading: one over the variance, times the samples that it stands for."""
    prior: Float[np.ndarray, "size size"]
    """Information before the experiment."""
    criterion: str = "intervals"

    def commands(self, coefficients: Float[np.ndarray, "splines nu"]) -> Float[np.ndarray, "samples nu"]:
        """The commands."""
        return self.rest + self.basis @ (coefficients * self.reach)

    def fisher(self, sensed: Sensed) -> Float[np.ndarray, "size size"]:
        """Information after the experiment."""
        J = sensed.J.reshape(-1, sensed.J.shape[-1])
        weights = np.tile(self.information, len(sensed.J))
        return self.prior + (J * weights[:, None]).T @ J

    def cost(self, coefficients: Float[np.ndarray, "splines nu"], hard: float) -> tuple[float, np.ndarray]:
        """The criterion plus what lies beyond the limits, and its gradient."""
        commands = self.commands(coefficients)
        sensed = self.sensitivities.sensed(commands)
        if not (np.isfinite(sensed.J).all() and np.isfinite(sensed.motion).all()):
            return 1e6, np.zeros_like(coefficients)
        score = CRITERIA[self.criterion](self.fisher(sensed))
        usage = self.limits.usage(sensed.motion)
        beyond = np.sign(usage) * np.maximum(np.abs(usage) - (1 - MARGIN), 0.0)
        penalty = hard * float(np.sum(beyond**2)) / len(usage)
        pull = 2 * hard / len(usage) * beyond * self.limits.slope
        weights = 2 * (self.information[:, None] * sensed.J) @ score.slope
        slope = self.basis.T @ self.sensitivities.gradient(commands, weights, pull) * self.reach
        return score.value + penalty, slope


def search(
    experiment: Experiment,
    start: Float[np.ndarray, "splines nu"],
    iterations: int,
    seen: Callable[[float], None] | None = None,
) -> Float[np.ndarray, "splines nu"]:
    """The best coefficients near a start.

    Args:
        experiment: What is improved.
        start: Coefficients to begin with.
        iterations: Of each stage.
        seen: Called with every cost.
    """
    best = start
    for hard in HARD:

        def cost(x: np.ndarray, hard: float = hard) -> tuple[float, np.ndarray]:
            value, slope = experiment.cost(x.reshape(start.shape), hard)
            if seen is not None:
                seen(value)
            return value, slope.ravel()

        with threadpool_limits(1):
            found = minimize(cost, best.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations})
        best = found.x.reshape(start.shape)
    return best
