"""Random rigid-contact problems for the interior-point solver."""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.math.interior_point.central_path import ConeProblem

N, CONTACTS, LIMITS, JOINTS, EQUALITIES = 6, 3, 2, 2, 1
BARRIER = 2e-9
"""Smoothing of rigid contact by default."""


def problem(seed: int, barrier: float = BARRIER) -> ConeProblem:
    """Contacts with friction, limits, joint friction and an equality; some gaps are open, some friction is zero."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(N, N))
    inertia = A @ A.T + N * np.eye(N)
    inverse = np.linalg.inv(inertia)
    unilateral = CONTACTS + LIMITS
    normal = rng.normal(size=(unilateral, N))
    coefficients = rng.uniform(0, 1, CONTACTS) * (rng.random(CONTACTS) > 0.2)
    tangent = coefficients[:, None, None] * rng.normal(size=(CONTACTS, 2, N))
    joints = rng.uniform(0.1, 3, JOINTS)[:, None] * np.eye(N)[:JOINTS]
    equality = rng.normal(size=(EQUALITIES, N))
    free = 2 * rng.normal(size=N)
    speed2 = 1e-4 + np.full(unilateral, np.mean((normal @ free) ** 2))
    mass = 1 / np.einsum("ki,ij,kj->k", normal, inverse, normal)
    return ConeProblem(
        inertia=inertia,
        free=free,
        normal=normal,
        offset=np.maximum(rng.normal(size=unilateral), 0.0),
        tangent=tangent,
        joint_friction=joints,
        equality=equality,
        target=np.zeros(EQUALITIES),
        mass=mass,
        speed2=speed2,
        joint_friction_energy=np.diagonal(inertia)[:JOINTS] * np.mean(free**2),
        equality_mass=1 / np.einsum("ki,ij,kj->k", equality, inverse, equality),
        equality_speed=np.full(EQUALITIES, np.sqrt(np.mean(free**2))),
        barrier=np.asarray(barrier),
    )


def stack(problems: list[ConeProblem]) -> ConeProblem:
    """One batch of several problems."""
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *problems)


def without_equalities(problem: ConeProblem) -> ConeProblem:
    """The problem without its equality constraints."""
    none = np.zeros(0)
    return problem._replace(equality=np.zeros((0, N)), target=none, equality_mass=none, equality_speed=none)
