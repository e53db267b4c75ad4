"""Identifiability: parameters and combinations of them that the logs do not determine."""

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.identification.diagnose.covariance import Uncertainty
from truesim.identification.problem.network_weights import NETWORKS, is_network
from truesim.identification.solve.solution import Solution
from truesim.physics.parameters.transforms import Linear

COUPLING = 0.1
"""Coupling by undetermined directions from which on parameters belong to one group. Larger gives smaller groups."""


def undetermined(solution: Solution, found: Uncertainty, threshold: float) -> Bool[np.ndarray, " size"]:
    """Coordinates with a standard deviation above the threshold.

    Args:
        solution: The solved problem.
        found: Covariance of its coordinates.
        threshold: `DiagnoseOptions.identifiable_std`.
    """
    variance = np.diag(found.coordinates)  # negative by rounding where nothing is known
    return np.sqrt(np.where(variance >= 0, variance, np.inf)) > threshold * _scale(solution)


def undetermined_groups(solution: Solution, found: Uncertainty, threshold: float) -> list[tuple[str, ...]]:
    """Groups of parameters of which at most a combination is identifiable; a group of one is not identifiable at all.

    Eigenvectors of the covariance with a standard deviation above the threshold span a subspace; parameters that it
    couples form a group.

    Args:
        solution: The solved problem.
        found: Covariance of its coordinates.
        threshold: `DiagnoseOptions.identifiable_std`.
    """
    names = coordinate_names(solution)
    scale = _scale(solution)
    values, vectors = np.linalg.eigh(found.coordinates / np.outer(scale, scale))
    directions = vectors[:, values > threshold**2]
    coupled = np.abs(directions @ directions.T) > COUPLING
    left = [k for k in range(len(names)) if coupled[k, k]]
    groups: list[tuple[str, ...]] = []
    while left:
        group = [left.pop(0)]
        for k in group:
            group += (more := [j for j in left if coupled[k, j]])
            left = [j for j in left if j not in more]
        labels = tuple(dict.fromkeys(names[k] for k in sorted(group)))
        if not all(label.startswith(NETWORKS + "/") for label in labels):
            groups.append(labels)
    return list(dict.fromkeys(groups))


def _scale(solution: Solution) -> Float[np.ndarray, " size"]:
    """Size of each coordinate: one for logarithms, else the estimate where it exceeds the start."""
    parameters = solution.problem.solved
    sizes = [
        np.maximum(1.0, np.abs(solution.theta[s])) if isinstance(p.transform, Linear) else np.ones(p.size)
        for p, s in zip(parameters, parameters.slices(), strict=True)
    ]
    return np.concatenate([np.zeros(0), *sizes])


def coordinate_names(solution: Solution) -> list[str]:
    """Name of the parameter of each coordinate, with the element if it has several."""
    names = []
    for parameter in solution.problem.solved:
        several = isinstance(parameter.transform, Linear) and parameter.size > 1 and not is_network(parameter)
        names += [f"{parameter.name}[{k}]" if several else parameter.name for k in range(parameter.size)]
    return names
