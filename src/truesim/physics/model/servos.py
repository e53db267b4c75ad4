"""Gains of affine servos by name: `kp` and `kv` of MuJoCo's position and velocity actuators.

A position servo exerts `kp (control - length) - kv velocity`: its gain is kp and its bias (0, -kp, -kv). A velocity
servo exerts `kv (control - velocity)`: its gain is kv and its bias (0, 0, -kv). Reading and writing `kp` or `kv` keeps
these numbers consistent, so that one unknown stands for all of them.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.physics.model.actuators import AFFINE, Actuators

GAINS = ("kp", "kv")
UNITS = {"kp": "N m/rad|N/m", "kv": "N m s/rad|N s/m"}
LENGTH_TERM, VELOCITY_TERM = 1, 2
"""Elements of the bias that multiply length and velocity."""


def is_gain(actuators: Actuators, field: str, i: int | None) -> bool:
    """True if a field names a servo gain of an affine actuator; other actuator models have a `kp` of their own."""
    return field in GAINS and i is not None and actuators.models[i] == AFFINE


def gains(actuators: Actuators, i: int) -> tuple[str, ...]:
    """Servo gains that actuator `i` has: none for a motor."""
    if actuators.models[i] != AFFINE:
        return ()
    if not _is_zero(actuators.bias, i, LENGTH_TERM):
        return GAINS
    return () if _is_zero(actuators.bias, i, VELOCITY_TERM) else ("kv",)


def check(actuators: Actuators, field: str, i: int) -> None:
    """Refuse a gain that the actuator does not have."""
    if field not in (known := gains(actuators, i)):
        what = "velocity servo, which has only kv" if known else "motor: its control is a force"
        raise TruesimError(
            f"actuators/{actuators.names[i]} has no {field}: it is a {what}. "
            f"--servo 'actuators/{actuators.names[i]}:kp=50' makes it a position servo."
        )


def read(actuators: Actuators, field: str, i: int | None) -> Any:
    """Value of a gain [N m/rad, N/m, N m s/rad or N s/m]."""
    return actuators.gain[i] if field == "kp" else -actuators.bias[i][VELOCITY_TERM]


def written(actuators: Actuators, field: str, i: int | None, value: Any) -> dict[str, Any]:
    """Fields of the actuator that change with a gain, and their values."""
    if field == "kp":
        return {"gain": value, "bias": _with(actuators.bias[i], LENGTH_TERM, -value)}
    bias = {"bias": _with(actuators.bias[i], VELOCITY_TERM, -value)}
    return {"gain": value, **bias} if _is_zero(actuators.bias, i, LENGTH_TERM) else bias


def _is_zero(bias: Any, i: int | None, element: int) -> bool:
    return not is_traced(bias) and bool(np.asarray(bias)[i, element] == 0)


def _with(vector: Any, element: int, value: Any) -> Any:
    if is_traced(vector) or is_traced(value):
        return jnp.asarray(vector).at[element].set(value)
    new = np.array(vector, float)
    new[element] = value
    return new
