"""Gaussian priors of the parameters: residuals and contribution to the cost."""

import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem


def prior_residuals(problem: Problem, theta: Float[np.ndarray, " size"]) -> tuple[np.ndarray, np.ndarray]:
    """Deviations of solved parameters from their priors in standard deviations, and derivatives by their coordinates.

    Every coordinate has the weak prior of `ProblemOptions.prior_width` around its start; values may have one of their
    own.
    """
    parameters, width = problem.solved, problem.prior_width
    size = parameters.size
    rows, derivatives = [(theta[:size] - parameters.start) / width], [np.eye(size) / width]
    if any(p.prior for p in parameters):
        values, jacobian = problem.values(theta)
        for parameter, at in zip(parameters, parameters.number_slices(), strict=True):
            if parameter.prior:
                std = np.ravel(parameter.prior.std)
                rows.append((values[at] - np.ravel(parameter.prior.mean)) / std)
                derivatives.append(jacobian[at] / std[:, None])
    return np.concatenate(rows), np.concatenate(derivatives)


def penalty(problem: Problem, theta: Float[np.ndarray, " size"]) -> tuple[float, Float[np.ndarray, " size"]]:
    """Half the sum of squares of all prior residuals, those of trained weights included, and its gradient."""
    b, B = prior_residuals(problem, theta)
    cost, gradient = float(b @ b) / 2, [B.T @ b]
    weights = theta[problem.solved.size :]
    for parameter, at in zip(problem.trained, problem.trained.slices(), strict=True):
        precision = problem.prior_width**-2 + (0.0 if parameter.prior is None else np.ravel(parameter.prior.std) ** -2)
        deviation = weights[at] - parameter.start
        cost, gradient = cost + float(deviation @ (precision * deviation)) / 2, [*gradient, precision * deviation]
    return cost, np.concatenate(gradient)
