"""Nielsen's damping rule for Levenberg-Marquardt, for NumPy scalars and for arrays traced by JAX."""

from types import ModuleType
from typing import Any

import numpy as np

LOWEST_DAMPING = 1e-12
"""Damping never falls below this: with a larger value, steps near a minimum stay shorter."""
HIGHEST_DAMPING = 1e8
"""A solve stalls when its damping exceeds this: with a larger value, it tries shorter steps before it gives up."""
FIRST_DAMPING = 1e-3
"""Damping of the first step: with a larger value, the first steps are shorter."""


def update_damping(damping: Any, growth: Any, ratio: Any, accepted: Any, *, xp: ModuleType = np) -> tuple[Any, Any]:
    """Damping and growth factor after a trial step (Nielsen 1999).

    An accepted step multiplies the damping by max(1/10, 1 - (2 ratio - 1)^3) and resets the growth factor to 2. A
    rejected step multiplies the damping by the growth factor and doubles that factor.

    Args:
        damping: Damping of the trial step.
        growth: Factor by which a rejected step increases the damping.
        ratio: Actual over predicted decrease of the cost; not used where the step is rejected.
        accepted: Whether the cost decreased.
        xp: `numpy` or `jax.numpy`.
    """
    eased = damping * xp.maximum(1 / 10, 1 - (2 * xp.clip(ratio, 0.0, 1.0) - 1) ** 3)
    after = xp.where(accepted, xp.maximum(eased, LOWEST_DAMPING), damping * growth)
    return after, xp.where(accepted, 2.0, 2 * growth)
