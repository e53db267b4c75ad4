"""How good an experiment is: one number from Fisher's information, and its derivative.

With the covariance C = F^-1 the criterion is the mean logarithm of the standard deviations: of the parameters
themselves (`intervals`), or of the axes of their joint region (`volume`, D-optimality: log det C / 2 over the number of
parameters). One less means intervals that are smaller by a factor of 2.7.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float


class Score(NamedTuple):
    """A criterion at one information."""

    value: float
    slope: Float[np.ndarray, "size size"]
    """Derivative by the information; symmetric."""


def intervals(F: Float[np.ndarray, "size size"]) -> Score:
    """Mean logarithm of the parameters' standard deviations: `d log C_ii = -(C dF C)_ii / C_ii`."""
    C = np.linalg.inv(F)
    variances = np.maximum(C.diagonal(), 1e-300)
    return Score(float(np.mean(np.log(variances)) / 2), -(C / variances) @ C / (2 * len(F)))


def volume(F: Float[np.ndarray, "size size"]) -> Score:
    """Mean logarithm of the axes of the parameters' joint region: `d log det F = tr(C dF)`."""
    return Score(-float(np.linalg.slogdet(F)[1]) / (2 * len(F)), -np.linalg.inv(F) / (2 * len(F)))


CRITERIA: dict[str, Callable[[np.ndarray], Score]] = {"intervals": intervals, "volume": volume}
"""Criteria by name."""
