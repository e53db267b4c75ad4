"""Forward dynamics: articulated-body algorithm (Featherstone, table 7.1) with its exact derivative."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.math.spatial.transform import cross_force
from truesim.physics.dynamics.inverse import inverse_dynamics
from truesim.physics.dynamics.kinematics import link_velocities
from truesim.physics.dynamics.links import JointFrames, joined, joint_frames, link_inertias, per_dof, per_link
from truesim.physics.dynamics.mass_matrix import mass_matrix
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import coupled_tendons


class ArticulatedFactors(NamedTuple):
    """Articulated-body factorization of the mass matrix at one configuration, one entry per link."""

    frames: JointFrames
    U: list[Float[Array, "6 _"]]
    """Articulated inertia times motion subspace."""
    D: list[Float[Array, "_ _"]]
    """Articulated inertia along the joint's motion subspace."""


def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    external: Float[Array, "bodies 6"] | None = None,
    added_inertia: Float[Array, " nv"] | Float[Array, "nv nv"] | None = None,
    through_mass_matrix: bool = False,
) -> Float[Array, " nv"]:
    """Acceleration under the generalized forces `tau`: `a = (M + diag(added_inertia))^-1 (tau - c(q, v))`.

    Args:
        model: The robot.
        q: Configuration.
        v: Velocity.
        tau: Generalized forces [N m or N].
        external: Force on each body: torque [N m] and force [N] at the origin of its frame, in its own axes.
        added_inertia: Inertia added to each degree of freedom, as implicit integrators do [kg m^2 or kg]; a full
            matrix only with `through_mass_matrix`.
        through_mass_matrix: Solve with M instead of the articulated-body recursion, cheaper if M is needed anyway.
    """
    through = through_mass_matrix or bool(len(coupled_tendons(model)))
    return _acceleration((model, q, v, tau, external, added_inertia), through)


@eqx.filter_custom_jvp
def _acceleration(inputs: tuple, through_mass_matrix: bool) -> Float[Array, " nv"]:
    return (_by_mass_matrix if through_mass_matrix else _articulated_body)(*inputs)[0]


@_acceleration.def_jvp
def _acceleration_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Differentiate `M(q) a + c(q, v) = tau` at fixed a: `da = M^-1 (dtau - d inverse_dynamics)`."""
    (inputs, through_mass_matrix), (perturbations, _) = primals, tangents
    a, inverse = (_by_mass_matrix if through_mass_matrix else _articulated_body)(*inputs)

    def residual(inputs: tuple) -> Array:
        model, q, v, tau, external, added_inertia = inputs
        balance = tau - inverse_dynamics(model, q, v, a, external=external)
        if added_inertia is None:
            return balance
        return balance - (added_inertia * a if added_inertia.ndim == 1 else added_inertia @ a)

    _, tangent = eqx.filter_jvp(residual, (inputs,), (perturbations,))
    return a, jnp.zeros_like(a) if tangent is None else inverse(tangent)


Inverse = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]
"""Multiplication by `(M + diag(added_inertia))^-1`."""


def _by_mass_matrix(
    model: Model, q: Array, v: Array, tau: Array, external: Array | None, added_inertia: Array | None
) -> tuple[Array, Inverse]:
    M = mass_matrix(model, q)
    if added_inertia is not None:
        M = M + (jnp.diag(added_inertia) if added_inertia.ndim == 1 else added_inertia)
    bias = inverse_dynamics(model, q, v, jnp.zeros_like(v), external=external)
    inverse = functools.partial(dense.solve, M)
    return inverse(tau - bias), inverse


def _articulated_body(
    model: Model, q: Array, v: Array, tau: Array, external: Array | None, added_inertia: Array | None
) -> tuple[Array, Inverse]:
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    inertias = link_inertias(model)
    rotor = per_dof(model, model.joints.armature)
    if added_inertia is not None:
        rotor = rotor + added_inertia
    pA = jax.vmap(cross_force)(V, jnp.einsum("lij,lj->li", jnp.stack(inertias), V))
    if external is not None:
        pA = jnp.asarray(pA).at[np.array(model.topology.body_link)].add(-external)

    def inward(total: tuple, X: Array, S: Array, c: Array, tau: Array, rotor: Array) -> tuple[tuple, tuple]:
        IA, pA = total
        U = IA @ S
        D = S.T @ U + jnp.diag(rotor)
        u = tau - S.T @ pA
        K = dense.solve(D, U.T).T
        Ia = IA - K @ U.T
        pa = pA + Ia @ c + K @ u
        return (U, D, u), (X.T @ Ia @ X, X.T @ pa)

    start = list(zip(inertias, pA, strict=True))
    swept = model.topology.up(inward, start, *frames, list(c), per_link(model, tau), per_link(model, rotor))

    def outward(parent: tuple, X: Array, S: Array, c: Array, swept: tuple) -> tuple[Array, Array]:
        U, D, u = swept
        A = X @ parent[0] + c
        a = dense.solve(D, u - U.T @ A)
        return A + S @ a, a

    world: tuple[Array, Array] = (jnp.concatenate([jnp.zeros(3), -jnp.asarray(model.gravity)]), jnp.zeros(0))
    a = joined([a for _, a in model.topology.down(outward, world, *frames, list(c), swept)])
    factors = ArticulatedFactors(frames, U=[U for U, _, _ in swept], D=[D for _, D, _ in swept])
    return a, functools.partial(solve, model, factors)


def solve(model: Model, factors: ArticulatedFactors, tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """`M^-1 tau` in two sweeps over the articulated-body factors."""

    def inward(p: Array, X: Array, S: Array, U: Array, D: Array, tau: Array) -> tuple[Array, Array]:
        u = tau - S.T @ p
        return u, X.T @ (p + U @ dense.solve(D, u))

    def outward(parent: tuple, X: Array, S: Array, U: Array, D: Array, u: Array) -> tuple[Array, Array]:
        A = X @ parent[0]
        a = dense.solve(D, u - U.T @ A)
        return A + S @ a, a

    frames, U, D = factors
    start: list[Array] = [jnp.zeros(6)] * len(model.topology.links)
    world: tuple[Array, Array] = (jnp.zeros(6), jnp.zeros(0))
    u = model.topology.up(inward, start, *frames, U, D, per_link(model, tau))
    down = model.topology.down(outward, world, *frames, U, D, u)
    return joined([a for _, a in down])
