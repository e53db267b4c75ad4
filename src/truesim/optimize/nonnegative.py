"""Least squares without negative unknowns, by the active-set method of Lawson and Hanson (1974)."""

import numpy as np

from truesim.core.typing import Float


def nonnegative_least_squares(
    A: Float[np.ndarray, "rows unknowns"], b: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " unknowns"]:
    """The x without negative entries that minimizes |A x - b|.

    Unknowns become positive one after the other, the one along which the cost falls most steeply first; those that
    would become negative on the way to the solution of the positive ones go back to zero.
    """
    x, positive = np.zeros(A.shape[1]), np.zeros(A.shape[1], bool)
    smallest = (
        10 * max(A.shape) * np.finfo(float).eps * np.abs(A).sum(axis=0).max(initial=0.0) * np.abs(b).max(initial=0.0)
    )
    for _ in range(3 * len(x)):
        descent = np.where(positive, -np.inf, A.T @ (b - A @ x))
        if descent.max(initial=-np.inf) <= smallest:
            break
        positive[np.argmax(descent)] = True
        while True:
            end = np.zeros_like(x)
            end[positive] = np.linalg.lstsq(A[:, positive], b)[0]
            blocking = positive & (end <= 0)
            if not blocking.any():
                break
            reach = np.full_like(x, np.inf)
            reach[blocking] = x[blocking] / np.maximum(x[blocking] - end[blocking], np.finfo(float).tiny)
            x += reach.min() * (end - x)
            positive &= reach > reach.min()
            x[~positive] = 0.0
        x = end
    return x
