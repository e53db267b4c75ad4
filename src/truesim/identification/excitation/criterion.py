"""Optimality criteria of an experiment: scalar functions of the Fisher information, with derivatives.

With the covariance C = F^-1 a criterion is the mean logarithm of standard deviations: of the parameters themselves
(`intervals`), or of the principal axes of their joint distribution (`volume`, D-optimality: log det C / 2 over the
number of parameters). A decrease by one shrinks intervals by a factor of 2.7.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float


class CriterionValue(NamedTuple):
    """Value and derivative of a criterion."""

    value: float
    gradient: Float[np.ndarray, "size size"]
    """Derivative by the information matrix; symmetric."""


def interval_criterion(F: Float[np.ndarray, "size size"]) -> CriterionValue:
    """Mean logarithm of the parameters' standard deviations: `d log C_ii = -(C dF C)_ii / C_ii`."""
    C = np.linalg.inv(F)
    variances = np.maximum(C.diagonal(), 1e-300)
    return CriterionValue(float(np.mean(np.log(variances)) / 2), -(C / variances) @ C / (2 * len(F)))


def volume_criterion(F: Float[np.ndarray, "size size"]) -> CriterionValue:
    """Mean logarithm of the principal standard deviations: `d log det F = tr(C dF)`."""
    return CriterionValue(-float(np.linalg.slogdet(F)[1]) / (2 * len(F)), -np.linalg.inv(F) / (2 * len(F)))


CRITERIA: dict[str, Callable[[np.ndarray], CriterionValue]] = {
    "intervals": interval_criterion,
    "volume": volume_criterion,
}
"""Criteria by name."""
