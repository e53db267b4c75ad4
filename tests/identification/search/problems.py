"""Small objectives with several minima."""

import jax.numpy as jnp
import numpy as np

from truesim.optimize import Residuals


def waves(theta):
    """Zero at (1, -2) only, with a ripple that makes many other minima."""
    x = theta - jnp.array([1.0, -2.0])
    return jnp.concatenate([x, 1.5 * jnp.sin(3.0 * x)])


def rippled(threads: int = 1) -> Residuals:
    """Half the sum of squares of `waves` between -5 and 5."""
    return Residuals(waves, np.full(2, -5.0), np.full(2, 5.0), np.array([4.0, 4.0]), threads=threads)
