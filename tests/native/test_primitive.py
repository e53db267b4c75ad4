"""Kernels inside JAX: jit, vmap, derivatives, life time."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import assert_close, normal
from truesim import native


def _step(p, x):
    q, v = x
    a = -p["k"] * jnp.sin(q) - p["d"] * v**3
    return q + 0.1 * v, v + 0.1 * a


P = {"k": np.array([2.0, 3.0]), "d": np.float64(0.1)}
X = (normal(0, 7, 2), normal(1, 7, 2))


@pytest.fixture(scope="module")
def kernel():
    with jax.enable_x64(True):
        return native.compile(_step, P, (X[0][0], X[1][0]))


def _batched(p, x):
    return jax.vmap(_step, (None, 0))(p, x)


def test_jit_gives_the_same_bits(kernel):
    """A call from compiled XLA code equals a direct one exactly, denormals included."""
    tiny = jax.tree.map(lambda a: a * 1e-160, X)
    for x in (X, tiny, (X[0] * 5e-324, X[1])):
        for a, b in zip(jax.jit(kernel)(P, x), kernel(P, x), strict=True):
            np.testing.assert_array_equal(a, b)


def test_vmap_is_the_batch_axis(kernel):
    """Vmap over any axes agrees with plain JAX, nested and partial."""
    assert_close(jax.vmap(kernel, (None, 0))(P, X), _batched(P, X))
    moved = jax.tree.map(lambda a: a.T, X)
    assert_close(jax.jit(jax.vmap(kernel, (None, 1)))(P, moved), _batched(P, X))
    many = {"k": normal(3, 4, 2), "d": np.float64(0.2)}
    both = jax.vmap(jax.vmap(kernel, (None, 0)), ({"k": 0, "d": None}, None))
    want = jax.vmap(_batched, ({"k": 0, "d": None}, None))
    assert_close(both(many, X), want(many, X))


def _loss(f):
    return lambda p, x: sum(jnp.sum(jnp.sin(y)) for y in f(p, x))


@pytest.mark.parametrize("transform", ["grad", "jacfwd", "jacrev", "hessian"])
def test_derivatives(kernel, transform):
    """Derivatives of every mode agree, also for arguments shared by the batch."""
    derive = getattr(jax, transform)
    got = jax.jit(derive(_loss(kernel), argnums=(0, 1)))(P, X)
    assert_close(got, derive(_loss(_batched), argnums=(0, 1))(P, X), scale=10)


def test_jvp_and_vjp(kernel):
    """Tangents and cotangents agree, with some inputs held fixed."""
    f, g = (lambda q, h=h: h(P, (q, X[1]))[1] for h in (kernel, _batched))
    tangent = normal(5, 7, 2)
    assert_close(jax.jvp(f, (X[0],), (tangent,)), jax.jvp(g, (X[0],), (tangent,)))
    assert_close(jax.vjp(f, X[0])[1](tangent), jax.vjp(g, X[0])[1](tangent))


def test_programs_that_share_their_tangent():
    """Two kernels may have equal tangent programs; each is transposed by its own inputs."""
    two = native.compile(lambda x, y: y, np.zeros(2), np.zeros(2))
    three = native.compile(lambda x, y, z: z, np.zeros(2), np.zeros(2), np.zeros(2))
    x = normal(0, 2)
    linear = jax.linearize(two, x, x)[1]
    jax.linearize(lambda z: three(x, x, z), x)
    assert_close(jax.linear_transpose(linear, x, x)(x), (np.zeros(2), x))


def test_inside_scan(kernel):
    """A kernel as the body of a scan, differentiated."""

    def rollout(f):
        return lambda x: jax.lax.scan(lambda x, _: (f(P, x), x[0]), x, None, 20)[1].sum()

    got = jax.jit(jax.value_and_grad(rollout(kernel)))(X)
    assert_close(got, jax.value_and_grad(rollout(_batched))(X))


def test_integer_results_have_no_derivative():
    """Integer inputs and outputs pass through differentiation."""
    f = lambda x, n: (x * n, n + 1)  # noqa: E731
    kernel = native.compile(f, np.float64(0), np.int64(0))
    x, n = normal(0, 3), np.arange(3)
    got = jax.grad(lambda x: kernel(x, n)[0].sum())(x)
    np.testing.assert_array_equal(got, n)


def test_wrong_type_is_refused(kernel):
    """With 64-bit mode off, float64 arguments that JAX would truncate are an error, not wrong numbers."""
    with jax.enable_x64(False), pytest.raises(TypeError, match="must be float64, not float32"):
        jax.jit(kernel)(P, X)


def test_64_bit_scope_inside_32_bit_program():
    """A float64 kernel works in a jit while 64-bit mode is off globally."""
    kernel = native.compile(lambda x: x / 3, np.float64(0))
    with jax.enable_x64(False):

        @jax.jit
        def f(x):
            with jax.enable_x64(True):
                return kernel(x.astype(jnp.float64)).astype(jnp.float32)

        np.testing.assert_array_equal(f(np.ones(2, np.float32)), np.ones(2, np.float32) / 3)


def test_empty_batch_in_jit(kernel):
    """No instances, no work."""
    empty = jax.tree.map(lambda a: a[:0], X)
    assert [y.shape for y in jax.jit(kernel)(P, empty)] == [(0, 2), (0, 2)]


def test_dropped_kernel_stays_callable():
    """A compiled function keeps the kernels it uses alive."""
    f = jax.jit(native.compile(lambda x: x * 1.25, np.float64(0)))
    x = np.arange(3.0)
    first = f(x)
    gc.collect()
    for k in range(20):
        native.compile(lambda x, k=k: x * k + 0.5, np.float64(0))
    gc.collect()
    np.testing.assert_array_equal(f(x), first)


def test_threads_in_jit():
    """Threads are used from XLA too, with the same bits."""
    x = normal(0, 999, 3)
    one, two = (native.compile(lambda x: jnp.exp(x).sum(), x[0], threads=n) for n in (1, 2))
    np.testing.assert_array_equal(jax.jit(two)(x), one(x))
