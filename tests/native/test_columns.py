"""`native.columns`: values and derivatives along several directions from one traced tangent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import assert_close, normal
from truesim import native
from truesim.native.codegen.compiler import listing
from truesim.native.codegen.target import host
from truesim.native.lowering import columns as lowering


def _reference(f, primals, tangents):
    """The same by `vmap` of `jvp`."""
    return f(*primals), jax.vmap(lambda *t: jax.jvp(f, primals, t)[1])(*tangents)


def _chain(x, y):
    """Each number depends on its neighbours only."""
    z = jnp.sin(x) * jnp.roll(y, 1) / (1 + x * x)
    return {"sum": jnp.sum(z), "each": jnp.where(x > 0, z, jnp.exp(y)), "power": jnp.maximum(x, y) ** 3}


def _matrix(x, y):
    a = jnp.outer(x, y) + 4 * jnp.eye(x.size)
    return jnp.linalg.solve(a, y), jnp.linalg.cholesky(a @ a.T)


def _scanned(x, y):
    """A loop that carries a tangent."""
    return jax.lax.scan(lambda c, _: (jnp.tanh(c) * y + x, c), x, length=40)


@jax.custom_jvp
def _shifted(x):
    return 2 * x


@_shifted.defjvp
def _shifted_jvp(primals, tangents):
    """A rule that is not linear: its tangent does not vanish with that of its argument."""
    return _shifted(*primals), jnp.abs(tangents[0]) + primals[0]


def _by_rule(x, y):
    return _shifted(x) * 3 + y


FUNCTIONS = [_chain, _matrix, _scanned, _by_rule]


@pytest.mark.parametrize("longest", [lowering.MAX_UNROLLED_COLUMNS, 0], ids=["unrolled", "looped"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_kernels_agree_with_vmap_of_jvp(f, longest, monkeypatch):
    """Dense and sparse directions, straight-line code and loops."""
    monkeypatch.setattr(lowering, "MAX_UNROLLED_COLUMNS", longest)
    x, y = normal(0, 9, 5), normal(1, 9, 5)
    directions = np.concatenate([np.eye(5), normal(2, 2, 5)]), np.concatenate([np.zeros((5, 5)), normal(3, 2, 5)])
    kernel = native.compile(lambda x, y: native.columns(f, (x, y), directions), x[0], y[0])
    assert_close(kernel(x, y), jax.jit(jax.vmap(lambda x, y: _reference(f, (x, y), directions)))(x, y), scale=10)


@pytest.mark.parametrize("f", [_chain, _matrix, _scanned])
def test_transformations_of_jax(f):
    """The primitive means the same under `jit`, `vmap`, `jvp` and `grad`, for directions that are traced too."""
    x, y, t, u = normal(0, 3, 4), normal(1, 3, 4), normal(2, 4, 4), normal(3, 4, 4)

    def transformed(of):
        def loss(x, t):
            return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(of(x, t)))

        along = (x[0], t), (x[1], u)
        return jax.vmap(of, (0, None))(x, t), jax.jvp(of, *along), jax.grad(loss, (0, 1))(x[0], t)

    ours = jax.jit(lambda: transformed(lambda x, t: native.columns(f, (x, y[0]), (t, u))))()
    theirs = jax.jit(lambda: transformed(lambda x, t: _reference(f, (x, y[0]), (t, u))))()
    assert_close(ours, theirs, scale=100)


def test_derivative_of_columns_in_a_kernel():
    """Kernels differentiate functions that use columns, and columns of columns."""
    x = normal(0, 7, 4)
    hessian = lambda x: native.columns(  # noqa: E731
        lambda x: native.columns(lambda x: jnp.sum(jnp.sin(x) ** 3), (x,), (jnp.eye(4),))[1], (x,), (jnp.eye(4),)
    )[1]
    want = jax.jit(jax.vmap(jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3))))(x)
    assert_close(native.compile(hessian, x[0])(x), want)


def test_leaves_that_do_not_move_have_none():
    """Arguments without a direction are constants; results that do not depend on the others have no derivative."""
    example = {"a": np.ones(2), "b": np.ones(3), "k": np.int32(2)}

    def f(tree):
        return {"moves": tree["a"] * tree["b"][0], "rests": tree["b"] + 1, "whole": tree["k"] + 1}

    value, changes = native.columns(f, (example,), ({"a": np.eye(2), "b": None, "k": None},))
    assert changes["rests"] is None
    assert changes["whole"] is None
    np.testing.assert_array_equal(changes["moves"], np.eye(2))
    assert int(value["whole"]) == 3


def test_no_columns():
    """Zero directions give empty derivatives."""
    f = lambda x: native.columns(jnp.sin, (x,), (np.zeros((0, 3)),))  # noqa: E731
    assert_close(native.compile(f, np.ones(3))(np.ones(3)), (np.sin(np.ones(3)), np.zeros((0, 3))))


def test_different_numbers_of_directions_are_refused():
    """All trees of directions have one leading axis."""
    with pytest.raises(ValueError, match=r"one number of columns, not \[2, 3\]"):
        native.columns(lambda x, y: x + y, (1.0, 2.0), (np.zeros(2), np.zeros(3)))


def test_columns_that_are_zero_cost_nothing():
    """The Jacobian of an elementwise function has as many operations as its diagonal."""

    def operations(n):
        f = lambda x: native.columns(lambda x: jnp.sqrt(x) * x, (x,), (jnp.eye(n),))[1]  # noqa: E731
        return listing(jax.make_jaxpr(f)(np.ones(n)), host()).operations

    assert operations(24) == 2 * operations(12)


@pytest.mark.parametrize("n", [40, 140])
def test_many_columns(n):
    """Directions that are arrays in memory agree, whether their columns are unrolled or a loop."""
    f = lambda x: jnp.sin(x) * jnp.roll(x, 1)  # noqa: E731
    kernel = native.compile(lambda x: native.columns(f, (x,), (jnp.eye(n),)), np.zeros(n))
    x = normal(0, 3, n)
    assert_close(kernel(x), (np.sin(x) * np.roll(x, 1, axis=1), jax.vmap(jax.jacfwd(f))(x).transpose(0, 2, 1)))
