"""State: what the next step needs. StepInfo: what a step found out."""

import equinox as eqx
import jax.numpy as jnp

from truesim.contact import ContactReport
from truesim.core.results import RESULTS
from truesim.core.typing import Array, Float, Int
from truesim.dynamics import reference_configuration
from truesim.model.model import Model
from truesim.numerics.central_path import Impulses
from truesim.simulate.augment.memory import Memory
from truesim.simulate.history import History


class State(eqx.Module):
    """State of the machine; nothing that can be derived."""

    q: Float[Array, "nq"]
    """Configuration [rad, m, unit quaternions]."""
    v: Float[Array, "nv"]
    """Velocity [rad/s, m/s]."""
    time: Float[Array, ""]
    """[s]"""
    history: History | None = None
    """Past commands, if the simulator delays them; without any, the first command has always been held."""
    impulses: Impulses | None = None
    """Impulses of the last step's constraints; they make the search for the next ones shorter and change no result."""
    memory: Memory | None = None
    """What networks remember; without any, they have seen nothing."""

    @classmethod
    def at_rest(cls, model: Model, q: Float[Array, "nq"] | None = None) -> "State":
        """The robot at rest at time zero, as its file draws it unless `q` says otherwise."""
        q = reference_configuration(model) if q is None else jnp.asarray(q)
        return cls(q, jnp.zeros(model.nv), jnp.zeros(()))


class StepInfo(eqx.Module):
    """Diagnostics of one step, at the state from which it started."""

    acceleration: Float[Array, "nv"]
    """Acceleration that the integrator used [rad/s^2, m/s^2]."""
    applied_force: Float[Array, "nv"]
    """Actuators, springs, dampers and smooth friction [N m, N]."""
    constraint_force: Float[Array, "nv"]
    """Dry friction and limits that were solved as constraints, and contact [N m, N]."""
    iterations: Int[Array, ""]
    """Newton iterations of the constraint solver."""
    contact: ContactReport | None
    """What each contact did; None without contact."""
    result: RESULTS
    """Whether the step can be trusted."""
