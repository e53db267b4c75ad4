"""Matrix products against XLA, unrolled and in loops."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.agreement import assert_agrees, normal
from truesim import native

PRODUCTS = {
    "vector": ("k,k->", (4,), (4,)),
    "matrix_vector": ("mk,k->m", (3, 4), (4,)),
    "matrix": ("mk,kn->mn", (3, 4), (4, 2)),
    "outer": ("m,n->mn", (3,), (4,)),
    "batched": ("bmk,bkn->bmn", (2, 3, 4), (2, 4, 2)),
    "two_axes": ("ijk,jkn->in", (2, 3, 4), (3, 4, 5)),
    "large_matrix_vector": ("mk,k->m", (70, 90), (90,)),
    "large_vector_matrix": ("k,kn->n", (90,), (90, 70)),
    "large_matrix": ("mk,kn->mn", (33, 17), (17, 29)),
    "large_transposed": ("km,nk->mn", (33, 17), (29, 33)),
    "large_outer": ("m,n->mn", (70,), (60,)),
    "large_two_axes": ("ijk,jkn->in", (9, 8, 7), (8, 7, 11)),
    "large_awkward": ("jik,jnk->in", (9, 8, 7), (9, 11, 7)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(name, dtype):
    """Products of all shapes agree."""
    formula, a, b = PRODUCTS[name]
    f = lambda x, y: jnp.einsum(formula, x, y, precision="highest")  # noqa: E731
    assert_agrees(f, normal(0, 3, *a, dtype=dtype), normal(1, 3, *b, dtype=dtype), scale=2)


def test_constant_matrix():
    """A large constant matrix, as in a network, is read from memory."""
    weights = normal(1, 80, 80)
    assert_agrees(lambda x: jnp.tanh(weights @ jnp.tanh(weights @ x)), normal(0, 3, 80), scale=10)


def test_large_products_stay_small_code():
    """The code of a large product does not grow with its size."""
    import jax

    from truesim.native.codegen import compiler as backend
    from truesim.native.codegen import target

    def operations(n):
        w = jax.ShapeDtypeStruct((n, n), np.float64)
        x = jax.ShapeDtypeStruct((n,), np.float64)
        return backend.listing(jax.make_jaxpr(lambda w, x: w @ x)(w, x), target.host()).operations

    assert operations(256) == operations(128) < 100


def test_integer_products():
    """Integer products wrap around as in XLA."""
    x = np.arange(12, dtype=np.int32).reshape(1, 3, 4) * 100_000
    kernel = native.compile(lambda x: x @ x.T, x[0])
    np.testing.assert_array_equal(kernel(x)[0], x[0] @ x[0].T)
