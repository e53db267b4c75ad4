"""What an earlier fit knows: values, information on parameters, and noise of readings."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Float
from truesim.model import paths
from truesim.model.model import Model
from truesim.parameters import ParameterSet


def fitted_values(model: Model, fit: Mapping[str, Any]) -> Model:
    """The robot with the values of a fit, as `fit.json` holds them; values of single logs are left out."""
    known = {str(path) for path in paths.paths(model)}
    for parameter in fit["parameters"]:
        if parameter["path"] in known:
            model = paths.write(model, parameter["path"], np.asarray(parameter["value"], float))
    return model


def fitted_information(parameters: ParameterSet, fit: Mapping[str, Any]) -> Float[np.ndarray, "size size"]:
    """Information that a fit has on the coordinates of parameters: the inverse of its covariance where it has one."""
    names = [p.name for p in parameters for _ in range(np.size(p.start))]
    held = list(fit["correlations"]["names"])
    std = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(p["std"], float)) for p in fit["parameters"])])
    covariance = np.nan_to_num(np.array(fit["correlations"]["matrix"], float)) * np.outer(std, std)
    with jax.enable_x64(True):
        jacobian = np.asarray(jax.jacfwd(parameters.flat)(jnp.asarray(parameters.start)))
    own = [k for k, name in enumerate(names) if name in held]
    theirs = [_place(names, held, k) for k in own]
    if not own:
        return np.zeros((parameters.size, parameters.size))
    C = covariance[np.ix_(theirs, theirs)]
    scale = np.sqrt(np.maximum(np.diag(C), 1e-300))
    inverse = np.linalg.pinv(C / np.outer(scale, scale), hermitian=True, rcond=1e-9) / np.outer(scale, scale)
    return jacobian[own].T @ inverse @ jacobian[own]


def fitted_noise(fit: Mapping[str, Any]) -> dict[str, float]:
    """Standard deviation of the residuals of a fit, by channel [SI units]."""
    return {row: float(noise["residual"]) for row, noise in fit["noise"].items()}


def _place(names: list[str], held: list[str], k: int) -> int:
    """Where the number at `k` of some parameter is among those of the fit."""
    return held.index(names[k]) + k - names.index(names[k])
