"""Rotations: group axioms, exponential and logarithm, matrices and quaternions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation import evaluate
from truesim.math.spatial.rotation import (
    matrix_quaternion,
    normalize,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    rotation_about,
    skew,
)

ROUNDING = 1e-14
"""A handful of operations on numbers of size one."""
many = settings(max_examples=50)


@st.composite
def quaternions(draw):
    """Unit quaternions, special ones among them."""
    special = [[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0], [0.5, 0.5, 0.5, 0.5]]
    drawn = np.random.default_rng(draw(st.integers(0, 10**6))).normal(size=4)
    return draw(st.sampled_from([np.array(x) for x in special] + [drawn] * 4)) / 1.0


def unit(q):
    """At length one."""
    return q / np.linalg.norm(q)


@many
@given(quaternions(), quaternions(), quaternions())
def test_quaternions_form_a_group(a, b, c):
    """Products are associative and of unit length, the identity is neutral, the conjugate is the inverse."""
    a, b, c = unit(a), unit(b), unit(c)
    one = np.array([1.0, 0, 0, 0])
    product = quaternion_product(a, b)
    np.testing.assert_allclose(
        quaternion_product(product, c), quaternion_product(a, quaternion_product(b, c)), atol=ROUNDING
    )
    np.testing.assert_allclose(product @ product, 1.0, atol=ROUNDING)
    np.testing.assert_allclose(quaternion_product(one, a), a, atol=0)
    np.testing.assert_allclose(quaternion_product(a, quaternion_conjugate(a)), one, atol=ROUNDING)


@many
@given(quaternions(), quaternions())
def test_matrices_represent_quaternions(a, b):
    """The matrix of a product is the product of matrices; it is a rotation; the way back gives the quaternion."""
    a, b = unit(a), unit(b)
    A, B = quaternion_matrix(a), quaternion_matrix(b)
    np.testing.assert_allclose(quaternion_matrix(quaternion_product(a, b)), A @ B, atol=ROUNDING)
    np.testing.assert_allclose(A @ A.T, np.eye(3), atol=ROUNDING)
    np.testing.assert_allclose(np.linalg.det(A), 1.0, atol=ROUNDING)
    back = np.asarray(matrix_quaternion(A))
    np.testing.assert_allclose(back, a * np.sign(a @ back), atol=10 * ROUNDING)
    assert back[0] >= 0


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 0.99e-4, 1.01e-4, 0.1, 1.5, 3.1])
def test_exponential_and_logarithm(angle):
    """The logarithm undoes the exponential, at the seam of the series too, and both agree with Rodrigues' formula."""
    axis = unit(np.array([0.3, -0.5, 0.8]))
    q = quaternion_exp(angle * axis)
    np.testing.assert_allclose(quaternion_log(q), angle * axis, rtol=1e-12, atol=1e-28)
    np.testing.assert_allclose(quaternion_log(-q), angle * axis, rtol=1e-12, atol=1e-28)
    np.testing.assert_allclose(quaternion_matrix(q), rotation_about(axis, jnp.asarray(angle)), atol=ROUNDING)


@pytest.mark.parametrize(
    "f", [quaternion_exp, lambda r: quaternion_log(quaternion_exp(r))], ids=["exponential", "logarithm"]
)
def test_derivatives_across_the_seam(f):
    """First and second derivatives are finite and continuous where the series takes over."""
    h = 1e-4

    def both(r):
        def central(g):
            return jax.vmap(lambda e: (g(r + e) - g(r - e)) / (2 * h), out_axes=-1)(h * jnp.eye(3))

        first, second = jax.jacfwd(f), jax.jacfwd(jax.jacrev(f))
        return first(r), central(f), second(r), central(first)

    sizes = np.array([0.0, 1e-9, 0.99e-4, 1.01e-4, 0.3])
    first, first_central, second, second_central = evaluate(
        jax.vmap(both), sizes[:, None] * unit(np.array([[0.3, -0.5, 0.8]]))
    )
    np.testing.assert_allclose(first, first_central, atol=1e-8)  # error of central differences: h^2
    np.testing.assert_allclose(second, second_central, atol=1e-7)


def test_skew_is_the_cross_product():
    """`skew(p) @ u = p x u`, and scalar-first quaternions turn x to y by a quarter turn about z."""
    p, u = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(skew(p) @ u, np.cross(p, u), atol=0)
    quarter = normalize(np.array([1.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(quaternion_matrix(quarter) @ np.array([1.0, 0, 0]), [0, 1, 0], atol=ROUNDING)
