"""Default bounds that an estimate has reached, and the wider ones with which the fit goes on."""

from collections.abc import Iterable

import numpy as np

from truesim.core.typing import Float
from truesim.physics.model.targets import matches_pattern
from truesim.physics.parameters import Parameter, ParameterSet
from truesim.physics.parameters.transforms import Linear, Positive

WIDENED_FIELDS = frozenset(
    {"mass", "com", "armature", "damping", "frictionloss", "stiction", "stiffness", "offset", "gain", "kp", "kd", "kv"}
    | {"error_gain", "viscous", "torque_constant", "resistance"}
)
"""Fields whose default bounds are guesses; bounds of the others, such as that of restitution at one, are physical."""
BOUND_ROOM = 1e-3
"""Distance from a bound, in coordinates or as a fraction of the range, within which a value counts as at the bound.
Larger widens earlier."""


def sizes_at_bounds(
    parameters: ParameterSet, values: Float[np.ndarray, " numbers"], given: Iterable[str] = ()
) -> dict[str, float]:
    """Sizes of the estimates that lie at a default bound, by name [SI units].

    Args:
        parameters: The parameters.
        values: Their estimates, as one vector [SI units].
        given: Patterns of parameters whose bounds the user gave; they are kept.
    """
    patterns, out = list(given), {}
    for p, at in zip(parameters, parameters.number_slices(), strict=True):
        named = any(matches_pattern(p.name, pattern) for pattern in patterns)
        if not named and p.targets[0].path.field in WIDENED_FIELDS and _is_at_bound(p, values[at]):
            out[p.name] = float(np.abs(values[at]).max())
    return out


def _is_at_bound(parameter: Parameter, value: np.ndarray) -> bool:
    """True at a bound that is not zero."""
    if not isinstance(parameter.transform, Linear | Positive):
        return False
    x = parameter.transform.coordinates(value.reshape(np.shape(parameter.start)))
    low, high = parameter.bounds()
    room = BOUND_ROOM * np.minimum(1.0, high - low)
    below = (x - low < room) & (np.ravel(parameter.low) != 0)
    return bool(np.any(below | (high - x < room)))
