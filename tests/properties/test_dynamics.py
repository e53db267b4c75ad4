"""Laws of rigid-body dynamics, on random trees in random states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings

from tests.comparison import relative_error
from tests.evaluation import evaluate
from tests.random_trees import random_configuration, seeds, skeletons, tree
from truesim.math.spatial.rotation import quaternion_matrix, quaternion_product
from truesim.physics.dynamics import (
    base_parameters,
    bias_forces,
    body_velocities,
    center_of_mass,
    forward_dynamics,
    gravity_forces,
    integrate,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    momentum,
    potential_energy,
    regressor,
)
from truesim.physics.dynamics.forward import _articulated_body
from truesim.physics.dynamics.regressor import inertial_parameters
from truesim.physics.model.kinds import FREE

ROUNDING = 1e-10
"""Both sides of a law are sums of some hundred products; condition numbers of these trees stay below 1e5."""
few = settings(max_examples=8)


def drawn(skeleton, seed, **options):
    """A tree, and a random state with forces."""
    m, model = tree(skeleton, seed, **options)
    rng = np.random.default_rng(seed)
    return model, random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nv) * 5


@few
@given(skeletons(largest=4), seeds)
def test_inverse_dynamics_undoes_forward_dynamics(skeleton, seed):
    """`rnea(aba(tau)) = tau`, with forces on bodies and added inertia too."""
    model, q, v, tau = drawn(skeleton, seed)
    external = np.random.default_rng(seed).normal(size=(len(model.bodies.names), 6))
    added = np.linspace(0.1, 0.5, model.nv)

    def there_and_back(model, q, v, tau, external, added):
        a = forward_dynamics(model, q, v, tau, external=external, added_inertia=added)
        return inverse_dynamics(model, q, v, a, external=external) + added * a

    assert relative_error(evaluate(there_and_back, model, q, v, tau, external, added), tau) < ROUNDING


@few
@given(skeletons(largest=4), seeds)
def test_mass_matrix(skeleton, seed):
    """M is symmetric positive definite, equals the columns of RNEA, gives kinetic energy and accelerations."""
    model, q, v, tau = drawn(skeleton, seed)

    def both(model, q, v, tau):
        zero = jnp.zeros(model.nv)
        at_rest = inverse_dynamics(model, q, zero, zero)
        columns = jax.vmap(lambda a: inverse_dynamics(model, q, zero, a) - at_rest, out_axes=1)(jnp.eye(model.nv))
        M = mass_matrix(model, q)
        a, inverse = _articulated_body(model, q, v, tau, None, None)
        dense = forward_dynamics(model, q, v, tau, through_mass_matrix=True)
        return M, columns, kinetic_energy(model, q, v), inverse(tau), a - dense

    M, columns, kinetic, solved, apart = evaluate(both, model, q, v, tau)
    assert relative_error(M, M.T) < 1e-15
    assert np.linalg.eigvalsh(M)[0] > 0
    assert relative_error(M, columns) < ROUNDING
    assert relative_error(kinetic, 0.5 * v @ np.asarray(M) @ v) < ROUNDING
    assert relative_error(M @ solved, tau) < ROUNDING
    assert np.max(np.abs(np.asarray(M) @ apart)) < ROUNDING * np.max(np.abs(tau))


@few
@given(skeletons(largest=4), seeds)
def test_power_balance(skeleton, seed):
    """Energy grows by the power of the forces: `d/dt (kinetic + potential) = v . tau`, along the flow."""
    model, q, v, tau = drawn(skeleton, seed)

    def rate(model, q, v, tau):
        def energy(t):
            a = forward_dynamics(model, q, v, tau)
            there = integrate(model, q, t * v)
            return kinetic_energy(model, there, v + t * a) + potential_energy(model, there)

        return jax.jvp(energy, (0.0,), (1.0,))[1]

    power = v @ tau
    assert abs(evaluate(rate, model, q, v, tau) - power) < ROUNDING * np.abs(v) @ np.abs(tau) * 10


@few
@given(skeletons(largest=4), seeds)
def test_gravity_forces_are_the_slope_of_potential_energy(skeleton, seed):
    """`gravity_forces = d potential / d q`, and what is left of the bias at rest is nothing."""
    model, q, v, _ = drawn(skeleton, seed)

    def both(model, q, v):
        slope = jax.grad(lambda dq: potential_energy(model, integrate(model, q, dq)))(jnp.zeros_like(v))
        return gravity_forces(model, q), slope, bias_forces(model, q, jnp.zeros_like(v))

    forces, slope, bias = evaluate(both, model, q, v)
    assert relative_error(forces, slope) < ROUNDING
    np.testing.assert_array_equal(forces, bias)


@few
@given(skeletons(largest=3, floating=True), seeds)
def test_momentum_is_conserved_without_external_forces(skeleton, seed):
    """Inner forces do not change the momentum of a floating tree, and its center moves with `p / m`."""
    model, q, v, tau = drawn(skeleton, seed, gravity=False, armature=False)
    tau = np.where(np.arange(model.nv) < 6, 0.0, tau)  # the first joint is free: a force on it comes from outside

    def rates(model, q, v, tau):
        a = forward_dynamics(model, q, v, tau)

        def along(t):
            there = integrate(model, q, t * v)
            return momentum(model, there, v + t * a), center_of_mass(model, there)

        return momentum(model, q, v), *jax.jvp(along, (0.0,), (1.0,))[1], body_velocities(model, q, v)

    now, rate, centre_rate, _ = evaluate(rates, model, q, v, tau)
    scale = max(np.abs(now).max(), np.abs(tau).max(), 1.0)
    assert np.abs(rate).max() < 10 * ROUNDING * scale * max(1.0, np.abs(q).max())
    assert relative_error(np.asarray(centre_rate) * np.sum(model.bodies.mass), now[3:]) < ROUNDING


@few
@given(skeletons(largest=4), seeds)
def test_moving_the_world_frame_changes_nothing(skeleton, seed):
    """A robot carried elsewhere, gravity turned with it, has the same mass matrix, bias and acceleration.

    Free joints measure their linear velocity in the world, so that part turns with it.
    """
    model, q, v, tau = drawn(skeleton, seed)
    rng = np.random.default_rng(seed + 1)
    turn, shift = rng.normal(size=4), rng.normal(size=3)
    turn /= np.linalg.norm(turn)
    R = np.asarray(quaternion_matrix(turn))
    T = np.eye(model.nv)
    moved_q = np.array(q)
    for link in model.topology.links:
        if link.kind == FREE:
            linear = slice(link.v.start, link.v.start + 3)
            T[linear, linear] = R
            position = slice(link.q.start, link.q.start + 3)
            moved_q[position] = R @ q[position] + shift
            orientation = slice(link.q.start + 3, link.q.stop)
            moved_q[orientation] = quaternion_product(turn, q[orientation])
    roots = np.array([parent < 0 for parent in model.bodies.parents])[:, None]
    bodies = model.bodies
    moved = eqx.tree_at(
        lambda m: (m.bodies.position, m.bodies.orientation, m.gravity),
        model,
        (
            np.where(roots, bodies.position @ R.T + shift, bodies.position),
            np.where(roots, [quaternion_product(turn, o) for o in bodies.orientation], bodies.orientation),
            R @ model.gravity,
        ),
    )

    def fields(model, q, v, tau):
        return mass_matrix(model, q), bias_forces(model, q, v), forward_dynamics(model, q, v, tau)

    M, bias, a = evaluate(fields, model, q, v, tau)
    M_moved, bias_moved, a_moved = evaluate(fields, moved, moved_q, T @ v, T @ tau)
    assert relative_error(T.T @ M_moved @ T, M) < ROUNDING
    assert relative_error(T.T @ bias_moved, bias) < ROUNDING
    assert relative_error(T.T @ a_moved, a) < ROUNDING


@settings(max_examples=4)
@given(skeletons(largest=3), seeds)
def test_regressor_is_linear_in_the_inertial_parameters(skeleton, seed):
    """`Y pi + armature a` is inverse dynamics, and fewer base parameters give the same forces."""
    model, q, v, a = drawn(skeleton, seed)
    rng = np.random.default_rng(seed)

    def both(model, q, v, a):
        rotors = inverse_dynamics(model, q, v, a) - inverse_dynamics(_without_rotors(model), q, v, a)
        return regressor(model, q, v, a), inertial_parameters(model), inverse_dynamics(model, q, v, a) - rotors

    def many(model, q, v, a):
        return jax.vmap(lambda dq, v, a: regressor(model, integrate(model, q, dq), v, a))(*a_and_v)

    a_and_v = tuple(rng.normal(size=(20, model.nv)) for _ in range(3))
    Y, parameters, forces = evaluate(both, model, q, v, a)
    assert relative_error(Y @ jnp.ravel(parameters), forces) < ROUNDING

    stacked = np.concatenate(evaluate(many, model, q, v, a))
    base = base_parameters(stacked)
    reduced = Y[:, np.array(base.independent)] @ (base.combination @ np.ravel(parameters))
    assert len(base.independent) == np.linalg.matrix_rank(stacked, tol=1e-8 * np.linalg.norm(stacked))
    assert relative_error(reduced, forces) < 1e-7  # dependent columns are dropped at 1e-8 of the largest


def _without_rotors(model):
    return eqx.tree_at(lambda m: m.joints.armature, model, jnp.zeros_like(model.joints.armature))
