"""Estimates and changes of a watched stream."""

import dataclasses

import numpy as np

from truesim.core.errors import unknown_name
from truesim.core.typing import Float
from truesim.identification.diagnose.estimates import interval
from truesim.identification.problem.problem import Problem
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class TrackedParameter:
    """Estimate of one parameter, in SI units; arrays for a vector."""

    path: str
    unit: str
    value: Float[np.ndarray, "..."]
    std: Float[np.ndarray, "..."]
    low: Float[np.ndarray, "..."]
    """Lower end of the 95 % interval."""
    high: Float[np.ndarray, "..."]
    """Upper end of the 95 % interval."""


@dataclasses.dataclass(frozen=True)
class ParameterChange:
    """A sudden change of parameters."""

    time: float
    """Estimated time of the change [s]."""
    detected: float
    """Time of detection [s]."""
    before: tuple[TrackedParameter, ...]
    """Estimates of all parameters before the change."""
    paths: tuple[str, ...]
    """Parameters that may have changed."""


@dataclasses.dataclass(frozen=True)
class Update:
    """Estimates after a chunk."""

    time: float
    """Time stamp at the end of the chunk [s]."""
    problem: Problem
    theta: Float[np.ndarray, " size"]
    """Coordinates of the parameters."""
    covariance: Float[np.ndarray, "size size"]
    """Covariance of the coordinates."""
    statistic: float
    """Statistic of change detection; 1 is an alarm."""
    change: ParameterChange | None = None
    """Change that was detected with this chunk."""

    @property
    def parameters(self) -> tuple[TrackedParameter, ...]:
        """Estimates of all parameters with intervals."""
        return tracked_parameters(self.problem, self.theta, self.covariance)

    def parameter(self, path: str) -> TrackedParameter:
        """Estimate of one parameter."""
        found = {k.path: k for k in self.parameters}
        if path not in found:
            raise unknown_name("free parameter", path, found)
        return found[path]

    @property
    def model(self) -> Model:
        """The robot with the current estimates."""
        return self.problem.model_at(self.theta, self.problem.simulator.model)


def tracked_parameters(
    problem: Problem, theta: Float[np.ndarray, " size"], covariance: Float[np.ndarray, "size size"]
) -> tuple[TrackedParameter, ...]:
    """Values and intervals of all parameters.

    Args:
        problem: The problem.
        theta: Coordinates of the parameters.
        covariance: Covariance of the coordinates.
    """
    values, jacobian = problem.values(theta)
    std = np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", jacobian, covariance, jacobian), 0.0))
    found = []
    for p, at in zip(problem.parameters, problem.parameters.number_slices(), strict=True):
        value, own = values[at].reshape(np.shape(p.start)), std[at].reshape(np.shape(p.start))
        found.append(TrackedParameter(p.name, p.unit, value, own, *map(np.asarray, interval(p, value, own))))
    return tuple(found)
