"""What is believed of parameters before any log is seen, and what departures from it cost."""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.problem import Problem

VAGUE = 2.0
"""Standard deviation of every coordinate before any log is seen: keeps what no log shows at its start."""


def beliefs(problem: Problem, theta: Float[np.ndarray, "size"]) -> tuple[np.ndarray, np.ndarray]:
    """Departures of solved parameters from priors in standard deviations, and derivatives by their coordinates."""
    parameters = problem.solved
    size = parameters.size
    rows, derivatives = [(theta[:size] - parameters.start) / VAGUE], [np.eye(size) / VAGUE]
    if any(p.prior for p in parameters):
        values, jacobian = problem.values(theta)
        for parameter, at in zip(parameters, parameters.number_slices(), strict=True):
            if parameter.prior:
                std = np.ravel(parameter.prior.std)
                rows.append((values[at] - np.ravel(parameter.prior.mean)) / std)
                derivatives.append(jacobian[at] / std[:, None])
    return np.concatenate(rows), np.concatenate(derivatives)


def penalty(problem: Problem, theta: Float[np.ndarray, "size"]) -> tuple[float, Float[np.ndarray, "size"]]:
    """Half the sum of squares of all departures from priors, those of many weights among them, and its gradient."""
    b, B = beliefs(problem, theta)
    cost, gradient = float(b @ b) / 2, [B.T @ b]
    weights = theta[problem.solved.size :]
    for parameter, at in zip(problem.trained, problem.trained.slices(), strict=True):
        precision = VAGUE**-2 + (0.0 if parameter.prior is None else np.ravel(parameter.prior.std) ** -2)
        away = weights[at] - parameter.start
        cost, gradient = cost + float(away @ (precision * away)) / 2, [*gradient, precision * away]
    return cost, np.concatenate(gradient)
