"""What every kind of joint must provide, checked on every member of the table of kinds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from truesim.physics.model.kinds import KINDS, AbstractJointKind

ROUNDING = 1e-12


def coordinates(kind: AbstractJointKind, rng: np.random.Generator) -> np.ndarray:
    """A random coordinate on the joint's manifold."""
    q = rng.normal(size=kind.nq)
    if kind.nq > kind.nv:
        q[-4:] /= np.linalg.norm(q[-4:])
    return q


def drawn(kind: AbstractJointKind, seed: int):
    """Axis, anchor, coordinate and velocity."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis), rng.normal(size=3), coordinates(kind, rng), rng.normal(size=kind.nv)


def test_the_table_holds_every_member():
    """A kind is found under its own name, and none is missing."""
    assert {type(kind) for kind in KINDS.values()} == set(AbstractJointKind.__subclasses__())
    assert all(name == kind.name for name, kind in KINDS.items())


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_subspace_is_the_rate_of_the_pose(kind):
    """S v is the spatial velocity of the moved body, in its own frame, as it moves along v; the bias is dS/dt v."""
    axis, anchor, q, v = drawn(kind, 0)

    def rates(axis, anchor, q, v):
        def pose(t):
            X = kind.pose(axis, anchor, kind.integrate(q, t * v))
            return X.rotation, X.translation

        (R, _), (dR, dp) = jax.jvp(pose, (0.0,), (1.0,))
        W = R.T @ dR
        along = jax.jvp(lambda t: kind.subspace(axis, anchor, kind.integrate(q, t * v)) @ v, (0.0,), (1.0,))[1]
        S = kind.subspace(axis, anchor, q)
        return S @ v, jnp.stack([W[2, 1], W[0, 2], W[1, 0], *(R.T @ dp)]), kind.bias(q, v), along

    given, measured, bias, rate = evaluate(rates, axis, anchor, q, v)
    np.testing.assert_allclose(given, measured, atol=ROUNDING)
    np.testing.assert_allclose(bias, rate, atol=ROUNDING)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_difference_undoes_integrate(kind, seed):
    """`difference(integrate(q, dq), q) = dq`, and zero goes nowhere; coordinates stay on the manifold."""
    _, _, q, v = drawn(kind, seed)
    dq = v / max(1.0, np.abs(v).max(initial=0))  # less than half a turn
    reached = kind.integrate(q, dq)
    np.testing.assert_allclose(kind.difference(reached, q), dq, atol=ROUNDING)
    np.testing.assert_allclose(kind.integrate(q, 0 * dq), q, atol=ROUNDING)
    np.testing.assert_allclose(kind.integrate(reached, -dq), q, atol=ROUNDING)
    if kind.nq > kind.nv:
        np.testing.assert_allclose(np.linalg.norm(reached[-4:]), 1.0, atol=ROUNDING)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_length_of_a_quaternion_does_not_matter(kind):
    """Drift off the manifold does not change pose or subspace."""
    axis, anchor, q, _ = drawn(kind, 1)
    longer = q.copy()
    if kind.nq > kind.nv:
        longer[-4:] *= 1.7
    for method in (kind.pose, kind.subspace):
        unit, scaled = (jax.tree.leaves(method(axis, anchor, x)) for x in (q, longer))
        for a, b in zip(unit, scaled, strict=True):
            np.testing.assert_allclose(a, b, atol=ROUNDING)


def test_kinds_compare_by_class():
    """Two instances of a kind are the same kind, for JAX's caches."""
    for kind in KINDS.values():
        assert kind == type(kind)()
        assert hash(kind) == hash(type(kind)())
    assert len(set(KINDS.values())) == len(KINDS)
