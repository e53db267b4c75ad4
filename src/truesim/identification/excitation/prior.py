"""Knowledge of an earlier fit: values, information on parameters, and measurement noise."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.parameters import ParameterSet

SINGULAR_CORRELATION = 1e-9
"""Eigenvalues of a correlation matrix below this fraction of the largest carry no information."""


class FittedCovariance(NamedTuple):
    """Covariance of fitted values, in SI units."""

    names: Sequence[str]
    """Path of each number; the numbers of a vector repeat its path."""
    matrix: Float[np.ndarray, "numbers numbers"]


def write_values(model: Model, values: Mapping[str, Any]) -> Model:
    """Model with fitted values by path; values of single logs (`path@log`) and of networks are ignored."""
    known = {str(path) for path in paths.paths(model)}
    for path, value in values.items():
        if path in known:
            model = paths.write(model, path, np.asarray(value, float))
    return model


def fitted_covariance(fit: Mapping[str, Any]) -> FittedCovariance:
    """Covariance of the values in a `fit.json`.

    Files without a covariance hold rounded correlations; the covariance is then built from them and from the standard
    deviations.
    """
    if "covariance" in fit:
        found = fit["covariance"]
        return FittedCovariance(list(found["names"]), np.array(found["matrix"], float))
    std = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(p["std"], float)) for p in fit["parameters"])])
    correlations = np.nan_to_num(np.array(fit["correlations"]["matrix"], float))
    return FittedCovariance(list(fit["correlations"]["names"]), correlations * np.outer(std, std))


def fitted_information(
    parameters: ParameterSet, covariance: FittedCovariance | Mapping[str, Any]
) -> Float[np.ndarray, "size size"]:
    """Information of a fit on the coordinates of parameters: the inverse of its covariance.

    Parameters that the fit did not estimate get no information; those that it estimated beyond these are marginalized.

    Args:
        parameters: The parameters.
        covariance: Covariance of the fitted values, or the document of a `fit.json`.
    """
    known = covariance if isinstance(covariance, FittedCovariance) else fitted_covariance(covariance)
    held = list(known.names)
    if np.shape(known.matrix) != (len(held), len(held)):
        raise TruesimError(f"The covariance has the shape {np.shape(known.matrix)} for {len(held)} numbers.")
    names = [p.name for p in parameters for _ in range(np.size(p.start))]
    own = [k for k, name in enumerate(names) if name in held]
    theirs = [_index(names, held, k) for k in own]
    if not own:
        return np.zeros((parameters.size, parameters.size))
    with jax.enable_x64(True):
        jacobian = np.asarray(jax.jacfwd(parameters.flat)(jnp.asarray(parameters.start)))
    C = known.matrix[np.ix_(theirs, theirs)]
    scale = np.sqrt(np.maximum(np.diag(C), 1e-300))
    correlations = C / np.outer(scale, scale)
    inverse = np.linalg.pinv(correlations, hermitian=True, rcond=SINGULAR_CORRELATION) / np.outer(scale, scale)
    return jacobian[own].T @ inverse @ jacobian[own]


def _index(names: list[str], held: list[str], k: int) -> int:
    """Index among the numbers of the fit of number `k` of some parameters."""
    return held.index(names[k]) + k - names.index(names[k])
