"""Random numbers: the same in kernels and XLA, with the right moments, and independent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim import native
from truesim.core.precision import float32
from truesim.policies.draws import Draws, make_keys


def numbers(key, counter):
    draw = Draws(key, counter)
    return draw.uniform(shape=(4,)), draw.normal(shape=(4,)), draw.integer(2, 4)


@pytest.fixture(scope="module")
def drawn():
    with float32():
        keys = make_keys(0, 4000)
        kernel = native.compile(numbers, jnp.zeros(2, jnp.uint32), jnp.uint32(0))
        by_xla = jax.vmap(numbers, (0, None))(keys, jnp.uint32(7))
        return kernel(keys, np.uint32(7)), by_xla, kernel(keys, np.uint32(8))


def test_kernels_and_xla_draw_alike(drawn):
    own, by_xla, _ = drawn
    np.testing.assert_array_equal(own[0], by_xla[0])
    np.testing.assert_allclose(own[1], by_xla[1], atol=2e-6)
    np.testing.assert_array_equal(own[2], by_xla[2])


def test_moments(drawn):
    uniform, normal, integer = drawn[0]
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs(uniform.std() - 12**-0.5) < 0.01
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1.0) < 0.02
    assert abs(np.mean(normal**4) - 3.0) < 0.25
    assert set(integer.tolist()) == {2, 3, 4}


def test_draws_counters_and_keys_are_independent(drawn):
    (uniform, _, _), _, (later, _, _) = drawn
    together = np.concatenate([uniform, later], axis=1)
    assert np.abs(np.corrcoef(together.T) - np.eye(8)).max() < 0.06
    neighbours = np.corrcoef(uniform[1:, 0], uniform[:-1, 0])[0, 1]
    assert abs(neighbours) < 0.06
