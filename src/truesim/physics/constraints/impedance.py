"""Numbers of a soft constraint from MuJoCo's `solref` and `solimp`: impedance, reference acceleration, stiffness.

MuJoCo documentation, "Computation", section on constraint parameters: with the violation r, impedance d(r) and inverse
weight A, a constraint has the reference acceleration `-b velocity - k d r` and the stiffness `D = d / ((1 - d) A)`.
"""

import jax.numpy as jnp

from truesim.core.typing import Array, Float

MIN_IMPEDANCE, MAX_IMPEDANCE = 1e-4, 0.9999
"""MuJoCo's bounds of the impedance."""
MIN_IMPEDANCE_WIDTH = 1e-15
"""Width below which MuJoCo's impedance is constant: the mean of its ends."""
DEFAULT_SOLREF = (0.02, 1.0)
"""MuJoCo's replacement of a pair with only one positive number."""
MIN_REGULARIZATION = 1e-15
"""MuJoCo's lower bound of the inverse stiffness of a constraint."""


def spring(
    solref: Float[Array, "rows 2"], solimp: Float[Array, "rows 5"], shortest: Float[Array, ""]
) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    """Stiffness k and damping b of the reference acceleration, from time constant and damping ratio or as given."""
    mixed = (solref[:, 0] > 0) != (solref[:, 1] > 0)
    first, second = (jnp.where(mixed, default, solref[:, k]) for k, default in enumerate(DEFAULT_SOLREF))
    given = first <= 0
    time, ratio = jnp.where(given, 1.0, jnp.maximum(first, shortest)), jnp.where(given, 1.0, second)
    widest = jnp.clip(solimp[:, 1], MIN_IMPEDANCE, MAX_IMPEDANCE)
    k = jnp.where(given, -first / widest**2, 1 / (widest * time * ratio) ** 2)
    b = jnp.where(given, -second / widest, 2 / (widest * time))
    return k, b


def impedance(solimp: Float[Array, "rows 5"], violation: Float[Array, " rows"]) -> Float[Array, " rows"]:
    """MuJoCo's impedance d(r): from solimp[0] to solimp[1] over the distance solimp[2], a power sigmoid."""
    low, high, middle = (jnp.clip(solimp[:, k], MIN_IMPEDANCE, MAX_IMPEDANCE) for k in (0, 1, 3))
    flat, power = solimp[:, 2] <= MIN_IMPEDANCE_WIDTH, jnp.maximum(solimp[:, 4], 1.0)
    width = jnp.where(flat, 1.0, solimp[:, 2])
    x = jnp.minimum(jnp.abs(violation) / width, 1.0)
    inside, outside = jnp.where(x > 0, x, 1.0), jnp.where(x < 1, 1 - x, 1.0)
    rising = jnp.where(x > 0, inside**power / middle ** (power - 1), 0.0)
    settling = jnp.where(x < 1, 1 - outside**power / (1 - middle) ** (power - 1), 1.0)
    return low + jnp.where(flat, 0.5, jnp.where(x <= middle, rising, settling)) * (high - low)


def stiffness(impedance: Float[Array, " rows"], weight: Float[Array, " rows"]) -> Float[Array, " rows"]:
    """D = 1 / R with the regularization `R = (1 - d) / d A`, at least 1e-15."""
    return 1 / jnp.maximum((1 - impedance) / impedance * weight, MIN_REGULARIZATION)
