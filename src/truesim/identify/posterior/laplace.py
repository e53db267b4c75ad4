"""Laplace's posterior: one Gaussian at the best fit, as wide as the curvature of the cost says."""

import numpy as np
from scipy.optimize import least_squares

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identify.fit import Solution
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.trajectories import Trajectories
from truesim.identify.uncertainty import coordinate_names, uncertainty


def laplace(solution: Solution) -> Posterior:
    """The posterior of a solved problem; its covariance knows that residuals are correlated in time."""
    covariance = uncertainty(solution).coordinates
    return Posterior.of(
        np.ones(1),
        solution.theta[None],
        covariance[None],
        names=coordinate_names(solution),
        bounds=solution.problem.parameters.bounds,
    )


def laplace_of(
    trajectories: Trajectories, measured: np.ndarray, start: Float[np.ndarray, "size"], names: tuple[str, ...] = ()
) -> Posterior:
    """The posterior of parameters whose trajectory was measured.

    Args:
        trajectories: The trajectory as a function of the parameters, its noise and the prior.
        measured: Like a trajectory; NaN where nothing was measured.
        start: Where the search for the best parameters begins.
        names: Of the parameters.
    """
    start = np.asarray(start, float)
    scale = np.where(np.isfinite(trajectories.prior[1]), trajectories.prior[1], np.maximum(np.abs(start), 1e-3))
    found = least_squares(
        lambda z: trajectories.residual(scale * z, measured)[0],
        start / scale,
        lambda z: trajectories.residual(scale * z, measured)[1] * scale,
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    H = found.jac.T @ found.jac
    if np.linalg.cond(H) > 1e14:
        raise TruesimError("The measurement does not determine all parameters, and no prior does: give a prior.")
    covariance = np.linalg.inv(H) * np.outer(scale, scale)
    return Posterior.of(np.ones(1), scale[None] * found.x[None], covariance[None], names=names)
