"""The convex problem of physically consistent regression: least squares with a log-determinant prior.

Minimize over inertial parameters theta and positive numbers x

    |A (theta, x) - b|^2 + 2 g sum_i [tr(P_i0^-1 P_i) - log det P_i] + g s sum_k [x_k / x_k0 - log(x_k / x_k0)]

P_i = [[tr(J)/2 1 - J, h], [h^T, m]] is the pseudo-inertia of body i, linear in theta, and P_i0 that of the robot file.
The logarithm keeps every P_i positive definite, so that each body is physical (Wensing, Kim, Slotine 2018; Lee and
Park 2018). Newton's method with backtracking solves it.
"""

import dataclasses
import functools

import numpy as np

from truesim.core.typing import Bool, Float
from truesim.math.spatial.inertia import INERTIA_ENTRIES

POSITIVE_WEIGHT = 0.01
"""Weight of the prior of positive numbers relative to that of bodies. Larger holds them closer to their typical
size."""
NEWTON_STEPS = 300
"""Maximum number of Newton steps."""
DECREMENT = 1e-5
"""Converged when the objective is predicted to fall by less than this many times the prior weight."""
MIN_MASS = 0.01
"""Least mass of a body of the prior [kg]."""
MIN_MOMENT = 0.01
"""Least principal second moment of the prior, relative to the largest. Larger keeps bodies of the prior rounder."""
MIN_RADIUS = 0.02
"""Radius of gyration that a body without extent has in the prior [m]."""


def pseudo_inertia_basis() -> Float[np.ndarray, "10 4 4"]:
    """Pseudo-inertia per unit of each inertial parameter: mass, first moments, inertia about the origin."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for k in range(3):
        basis[1 + k, k, 3] = basis[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate(INERTIA_ENTRIES):
        if i == j:
            basis[4 + k, :3, :3] = np.eye(3) / 2
            basis[4 + k, i, i] -= 1.0
        else:
            basis[4 + k, i, j] = basis[4 + k, j, i] = -1.0
    return basis


BASIS = pseudo_inertia_basis()


def physical_prior(theta: Float[np.ndarray, "bodies 10"]) -> Float[np.ndarray, "bodies 10"]:
    """Inertial parameters made physical: masses, and second moments about centers of mass, have a least size."""
    out = theta.copy()
    for body in out:
        com = body[1:4] / body[0] if body[0] > 0 else np.zeros(3)
        second = np.tensordot(body, BASIS, axes=1)[:3, :3] - body[0] * np.outer(com, com)
        body[0] = max(body[0], MIN_MASS)
        values, vectors = np.linalg.eigh(second)
        point = body[0] * MIN_RADIUS**2
        values = np.maximum(values, MIN_MOMENT * values[-1] if values[-1] > MIN_MOMENT * point else point)
        S = vectors @ np.diag(values) @ vectors.T + body[0] * np.outer(com, com)
        J = np.trace(S) * np.eye(3) - S
        body[1:4], body[4:] = body[0] * com, [J[i, j] for i, j in INERTIA_ENTRIES]
    return out


@dataclasses.dataclass(frozen=True)
class EntropicProblem:
    """A regression problem with its prior."""

    H: Float[np.ndarray, "size size"]
    """`A^T A`, in units of the residuals' variance."""
    g: Float[np.ndarray, " size"]
    """`A^T b`."""
    prior: Float[np.ndarray, "bodies 10"]
    """Physical inertial parameters of the robot file; the first unknowns."""
    positive: Bool[np.ndarray, " size"]
    """Unknowns that must be positive."""
    typical: Float[np.ndarray, " size"]
    """Typical size of the positive unknowns."""
    weight: float
    """Weight of the prior, in units of the residuals' variance."""

    def start(self) -> Float[np.ndarray, " size"]:
        """The file's bodies, typical sizes, and zeros."""
        x = np.where(self.positive, self.typical, 0.0)
        x[: self.prior.size] = self.prior.ravel()
        return x

    def least_prior(self) -> float:
        """Least value of the prior: at the file's bodies and the typical sizes."""
        bodies = 4 * len(self.prior) - np.linalg.slogdet(np.tensordot(self.prior, BASIS, axes=1))[1].sum()
        return self.weight * float(2 * bodies + POSITIVE_WEIGHT * self.positive.sum())

    def value(self, x: Float[np.ndarray, " size"]) -> float:
        """Objective without its constant; infinite outside of the domain."""
        scaled = x[self.positive] / self.typical[self.positive]
        if np.any(scaled <= 0):
            return np.inf
        try:
            factors = np.linalg.cholesky(self._pseudo_inertias(x))
        except np.linalg.LinAlgError:
            return np.inf
        logs = 2 * np.log(np.einsum("bii->bi", factors))
        bodies = float((self._traces * x[: self.prior.size]).sum() - logs.sum())
        numbers = float((scaled - np.log(scaled)).sum())
        return float(x @ self.H @ x - 2 * self.g @ x) + self.weight * (2 * bodies + POSITIVE_WEIGHT * numbers)

    def derivatives(self, x: Float[np.ndarray, " size"]) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the objective."""
        gradient, hessian = 2 * (self.H @ x - self.g), 2 * self.H.copy()
        inverse = np.linalg.inv(self._pseudo_inertias(x))
        products = np.einsum("bij,kjl->bkil", inverse, BASIS)
        size = self.prior.size
        gradient[:size] += 2 * self.weight * (self._traces - np.einsum("bkii->bk", products).ravel())
        blocks = 2 * self.weight * np.einsum("bkij,blji->bkl", products, products)
        for b, block in enumerate(blocks):
            own = slice(10 * b, 10 * b + 10)
            hessian[own, own] += block
        at, unit = np.flatnonzero(self.positive), POSITIVE_WEIGHT * self.weight
        gradient[at] += unit * (1 / self.typical[at] - 1 / x[at])
        hessian[at, at] += unit / x[at] ** 2
        return gradient, hessian

    @functools.cached_property
    def _traces(self) -> Float[np.ndarray, " ten_bodies"]:
        inverse = np.linalg.inv(np.tensordot(self.prior, BASIS, axes=1))
        return np.einsum("bij,kji->bk", inverse, BASIS).ravel()

    def _pseudo_inertias(self, x: np.ndarray) -> Float[np.ndarray, "bodies 4 4"]:
        return np.tensordot(x[: self.prior.size].reshape(-1, 10), BASIS, axes=1)


def minimize(
    problem: EntropicProblem, start: Float[np.ndarray, " size"] | None = None
) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, "size size"]]:
    """Minimum of the convex problem and the Hessian there, by Newton's method with backtracking.

    Args:
        problem: The problem.
        start: A point of the domain; the prior by default.
    """
    x = problem.start() if start is None else start
    value = problem.value(x)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = problem.derivatives(x)
        scale = 1 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        matrix = hessian * np.outer(scale, scale) + 1e-13 * np.eye(len(x))
        step = -scale * np.linalg.solve(matrix, scale * gradient)
        decrement = -float(gradient @ step)
        length, trial = 1.0, np.inf
        while length > 1e-10 and not trial <= value - 0.1 * length * decrement + 1e-12 * abs(value):
            trial = problem.value(x + length * step)
            length /= 2
        if not np.isfinite(trial) or trial > value + 1e-9 * abs(value):
            break
        x, value = x + 2 * length * step, trial
        if decrement < DECREMENT * max(problem.weight, 1.0):
            break
    return x, hessian
