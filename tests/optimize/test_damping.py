"""Nielsen's damping rule: one function for the batched solver and for the fit."""

import jax.numpy as jnp
import numpy as np
import pytest

from truesim.optimize.damping import LOWEST_DAMPING, update_damping


def reference(damping, growth, ratio):
    """The rule as Nielsen (1999) writes it, with a lower bound."""
    if ratio > 0:
        return max(damping * max(1 / 10, 1 - (2 * ratio - 1) ** 3), LOWEST_DAMPING), 2.0
    return damping * growth, 2 * growth


@pytest.mark.parametrize("ratio", [-5.0, -1e-9, 1e-9, 0.1, 0.5, 0.9, 1.0, 30.0])
def test_it_is_the_published_rule(ratio):
    """To the last bit with NumPy, and traced by JAX."""
    for damping, growth in ((1e-3, 2.0), (2e-12, 8.0), (1e5, 4.0)):
        want = reference(damping, growth, ratio)
        for xp in (np, jnp):
            found = update_damping(damping, growth, xp.asarray(ratio), ratio > 0, xp=xp)
            np.testing.assert_array_equal(np.asarray(found), want)


def test_rejected_steps_of_infinite_cost_raise_no_warning():
    """A simulation that diverges gives a ratio of minus infinity or NaN: the damping grows."""
    for ratio in (-np.inf, np.nan, -1e300):
        damping, growth = update_damping(1e-3, 2.0, ratio, False)
        assert (float(damping), float(growth)) == (2e-3, 4.0)
