"""Symmetric block-tridiagonal systems with a shared border.

Unknowns are x (w chains of m blocks with n numbers each) and y (p shared numbers). Blocks couple to their neighbors
along a chain and to y:

    D_i x_i + E_i x_(i+1) + E_(i-1)^T x_(i-1) + F_i y = -g_i,     sum_i F_i^T x_i + C y = -h.

Eliminating the chains from their first to their last block costs O(w m (n + p) n^2).
"""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Float

ZERO_EIGENVALUE = 1e-13
"""Eigenvalues of a singular block, relative to its largest, that count as zero. Larger leaves out more."""


class Chains(NamedTuple):
    """Blocks of a bordered system; blocks beyond the end of a chain have D = 1 and zeros elsewhere."""

    diagonal: Float[np.ndarray, "w m n n"]
    """D"""
    coupling: Float[np.ndarray, "w m n n"]
    """E, to the next place; zero at the last."""
    border: Float[np.ndarray, "w m n p"]
    """F"""
    gradient: Float[np.ndarray, "w m n"]
    """g"""


class Eliminated(NamedTuple):
    """Bordered system after elimination of the chains."""

    corner: Float[np.ndarray, "p p"]
    """Schur complement of the chains in C."""
    gradient: Float[np.ndarray, " p"]
    """h with the chains eliminated."""
    coupling: Float[np.ndarray, "w m n n"]
    border: Float[np.ndarray, "w m n p"]
    offset: Float[np.ndarray, "w m n"]

    def chains(self, y: Float[np.ndarray, " p"]) -> Float[np.ndarray, "w m n"]:
        """Chains x for given y."""
        x = -(self.offset + self.border @ y)
        for i in range(x.shape[1] - 2, -1, -1):
            x[:, i] -= np.einsum("wab,wb->wa", self.coupling[:, i], x[:, i + 1])
        return x

    def sensitivity(self) -> Float[np.ndarray, "w m n p"]:
        """Derivative of the chains x by y."""
        X = -self.border
        for i in range(X.shape[1] - 2, -1, -1):
            X[:, i] -= self.coupling[:, i] @ X[:, i + 1]
        return X


def eliminate(chains: Chains, corner: Float[np.ndarray, "p p"], gradient: Float[np.ndarray, " p"]) -> Eliminated:
    """Eliminate the chains from a bordered system."""
    D, E, F, g = chains
    n, p = F.shape[2:]
    solved = np.empty((*g.shape, n + p + 1))
    right = np.concatenate([E, F, g[..., None]], axis=-1)
    diagonal = D[:, 0]
    for i in range(D.shape[1]):
        solved[:, i] = _solve(diagonal, right[:, i])
        if i + 1 < D.shape[1]:
            carried = E[:, i].transpose(0, 2, 1) @ solved[:, i]
            diagonal = D[:, i + 1] - carried[..., :n]
            right[:, i + 1, :, n:] -= carried[..., n:]
    border, offset = solved[..., n : n + p], solved[..., -1]
    left = right[..., n : n + p].reshape(g.size, p)
    return Eliminated(
        corner=corner - left.T @ border.reshape(g.size, p),
        gradient=gradient - left.T @ offset.ravel(),
        coupling=solved[..., :n],
        border=border,
        offset=offset,
    )


def _solve(a: Float[np.ndarray, "w n n"], b: Float[np.ndarray, "w n k"]) -> Float[np.ndarray, "w n k"]:
    """Solve symmetric systems; directions that are singular to rounding stay zero."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(a, rcond=ZERO_EIGENVALUE, hermitian=True) @ b
