"""Laplace approximation: one Gaussian at the best fit, with the covariance of the estimates."""

import numpy as np

from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.diagnose.covariance import Uncertainty, uncertainty
from truesim.identification.diagnose.identifiability import coordinate_names
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.trajectories import Trajectories
from truesim.identification.solve.solution import Solution


def laplace(solution: Solution, found: Uncertainty | None = None) -> Posterior:
    """Laplace approximation of a solved problem; its covariance accounts for residuals correlated in time.

    Args:
        solution: The solved problem.
        found: Its covariance, if it is known already; then nothing is simulated.
    """
    return gaussian_posterior(solution, (uncertainty(solution) if found is None else found).coordinates)


def gaussian_posterior(solution: Solution, covariance: Float[np.ndarray, "size size"]) -> Posterior:
    """Gaussian posterior at the estimates of a solution, cut off at the bounds; nothing is simulated.

    Args:
        solution: The solved problem; only its coordinates and its problem are read.
        covariance: Covariance of the coordinates, such as `fit.uncertainty.coordinates`.
    """
    solved = solution.problem.solved
    return Posterior.of(
        np.ones(1),
        solution.theta[None, : solved.size],
        covariance[None],
        names=coordinate_names(solution),
        bounds=solved.bounds,
    )


def trajectory_laplace(
    trajectories: Trajectories, measured: np.ndarray, start: Float[np.ndarray, " size"], names: tuple[str, ...] = ()
) -> Posterior:
    """Laplace approximation for parameters of a measured trajectory.

    Args:
        trajectories: Trajectory function, noise and prior.
        measured: Measurements, in the shape of a trajectory; NaN where nothing was measured.
        start: Initial parameters of the least-squares solve.
        names: Names of the parameters.
    """
    start = np.asarray(start, float)
    scale = np.where(np.isfinite(trajectories.prior[1]), trajectories.prior[1], np.maximum(np.abs(start), 1e-3))
    found = libraries.scipy.optimize.least_squares(
        lambda z: trajectories.residual(scale * z, measured)[0],
        start / scale,
        lambda z: trajectories.residual(scale * z, measured)[1] * scale,
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    H = found.jac.T @ found.jac
    if np.linalg.cond(H) > 1e14:
        raise TruesimError(
            "The measurements do not determine all parameters, and neither does the prior: give a prior."
        )
    covariance = np.linalg.inv(H) * np.outer(scale, scale)
    return Posterior.of(np.ones(1), scale[None] * found.x[None], covariance[None], names=names)
