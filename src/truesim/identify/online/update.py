"""What is known at some time of a stream, and what has changed."""

import dataclasses

import numpy as np

from truesim.core.errors import unknown_name
from truesim.core.typing import Float
from truesim.identify.problem import Problem
from truesim.identify.result import interval
from truesim.model.model import Model


@dataclasses.dataclass(frozen=True)
class Known:
    """One parameter, in SI units; a vector's fields are arrays."""

    path: str
    unit: str
    value: Float[np.ndarray, "..."]
    std: Float[np.ndarray, "..."]
    low: Float[np.ndarray, "..."]
    """Lower end of the 95 % interval."""
    high: Float[np.ndarray, "..."]
    """Upper end of the 95 % interval."""


@dataclasses.dataclass(frozen=True)
class Change:
    """Parameters that changed suddenly."""

    time: float
    """When, about [s]."""
    detected: float
    """When that was certain enough [s]."""
    before: tuple[Known, ...]
    """What was known of all parameters until then."""
    paths: tuple[str, ...]
    """Parameters that could change."""


@dataclasses.dataclass(frozen=True)
class Update:
    """What is known after a chunk."""

    time: float
    """Stamp of the last sample that counts [s]."""
    problem: Problem
    theta: Float[np.ndarray, "size"]
    """Coordinates of the parameters."""
    covariance: Float[np.ndarray, "size size"]
    """Of the coordinates."""
    statistic: float
    """How much speaks for a change; 1 is an alarm."""
    change: Change | None = None
    """The change that this chunk made certain."""

    @property
    def parameters(self) -> tuple[Known, ...]:
        """The parameters with their intervals."""
        return known(self.problem, self.theta, self.covariance)

    def parameter(self, path: str) -> Known:
        """One of them."""
        found = {k.path: k for k in self.parameters}
        if path not in found:
            raise unknown_name("free parameter", path, found)
        return found[path]

    @property
    def model(self) -> Model:
        """The robot with these values."""
        return self.problem.model_at(self.theta, self.problem.simulator.model)


def known(
    problem: Problem, theta: Float[np.ndarray, "size"], covariance: Float[np.ndarray, "size size"]
) -> tuple[Known, ...]:
    """Values and intervals of all parameters at some coordinates.

    Args:
        problem: Names the parameters.
        theta: Their coordinates.
        covariance: Of the coordinates.
    """
    values, jacobian = problem.values(theta)
    std = np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", jacobian, covariance, jacobian), 0.0))
    found = []
    for p, at in zip(problem.parameters, problem.parameters.number_slices(), strict=True):
        value, spread = values[at].reshape(np.shape(p.start)), std[at].reshape(np.shape(p.start))
        found.append(Known(p.name, p.unit, value, spread, *interval(p, value, spread)))
    return tuple(found)
