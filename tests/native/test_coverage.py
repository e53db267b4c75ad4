"""Whole programs: networks, and kernels for other machines."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import assert_close, normal
from truesim import native
from truesim.native.codegen.target import host
from truesim.native.runtime.program import program


def _double(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64) if eqx.is_array(x) else x, tree)


@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize("closed", [True, False])
def test_mlp(width, closed):
    """An equinox MLP, its weights closed over or passed, agrees with its gradient."""
    mlp = _double(eqx.nn.MLP(3, 2, width, 2, jnp.tanh, key=jax.random.key(0)))
    x = normal(0, 9, 3)
    loss = lambda m, x: jnp.sum(m(x) ** 2)  # noqa: E731
    f = lambda m, x: (m(x), jax.grad(loss, argnums=1)(m, x))  # noqa: E731
    want = jax.vmap(lambda x: f(mlp, x))(x)
    if closed:
        assert_close(native.compile(lambda x: f(mlp, x), x[0])(x), want)
    else:
        assert_close(native.compile(f, mlp, x[0])(mlp, x), want)


def test_gradient_of_mlp_weights():
    """Gradients with respect to the weights of a network agree."""
    mlp = _double(eqx.nn.MLP(3, 2, 64, 1, jnp.tanh, key=jax.random.key(1)))
    arrays, rest = eqx.partition(mlp, eqx.is_array)
    f = jax.grad(lambda a, x: jnp.sum(eqx.combine(a, rest)(x) ** 2))
    x = normal(0, 2, 3)
    assert_close(native.compile(f, arrays, x[0])(arrays, x), jax.vmap(f, (None, 0))(arrays, x))


def test_gru_over_time():
    """A GRU cell scanned over a sequence agrees."""
    cell = _double(eqx.nn.GRUCell(2, 5, key=jax.random.key(0)))
    f = lambda xs: jax.lax.scan(lambda h, x: (cell(x, h),) * 2, jnp.zeros(5), xs)  # noqa: E731
    xs = normal(0, 4, 30, 2)
    assert_close(native.compile(f, xs[0])(xs), jax.vmap(f)(xs))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "dropped", [("avx512f", "avx2"), ("avx512f", "avx2", "fma", "avx", "f16c"), ("avx512f", "fma")]
)
def test_machines_without_some_instructions(dropped, dtype):
    """Code for lesser machines runs and agrees."""
    features = ",".join(f"-{f[1:]}" if f[1:] in dropped else f for f in host().features.split(","))
    cpu = "x86-64-v2" if "avx2" in dropped else host().cpu
    target = replace(host(), cpu=cpu, features=features)

    def f(x, n):
        y = jax.lax.fori_loop(0, 30, lambda i, y: jnp.cos(y) + x[0] * i, x)
        steps = jax.lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] // 2, s[1] + 1), (n, 0))[1]
        return jnp.exp(y) @ jnp.linalg.inv(jnp.eye(3) * 2 + jnp.outer(x, x)), jnp.sort(x), steps, x[n % 3]

    x, n = normal(0, 21, 3, dtype=dtype), np.arange(21, dtype=np.int32)
    compiled = program(jax.make_jaxpr(f)(x[0], n[0]), target)
    got = compiled.run([x, n], 1, str)
    assert_close(tuple(got), jax.vmap(f)(x, n))
