"""State: everything the next step needs. StepInfo: diagnostics of one step."""

import equinox as eqx

from truesim.core.results import RESULTS
from truesim.core.typing import Array, Float, Int
from truesim.math.interior_point.central_path import Impulses
from truesim.physics.augmentation.memory import NetworkMemory
from truesim.physics.contact import ContactReport
from truesim.physics.simulation.history import History


class State(eqx.Module):
    """State of a simulation; `Simulator.initial_state` makes it.

    A simulator gives all its states one tree structure: optional parts are present wherever the simulator uses them,
    so that states can be stacked, selected with `jnp.where` and reset under `jax.vmap`.
    """

    q: Float[Array, " nq"]
    """Configuration [rad, m, unit quaternions]."""
    v: Float[Array, " nv"]
    """Velocity [rad/s, m/s]."""
    time: Float[Array, ""]
    """[s]"""
    history: History | None = None
    """Past commands, if the simulator delays commands. If None, a rollout fills it with its first command."""
    impulses: Impulses | None = None
    """Constraint impulses of the last step, if contact is rigid: a warm start that does not change the result."""
    memory: NetworkMemory | None = None
    """Memory of networks that have one. If None, a rollout initializes it."""
    acceleration: Float[Array, " nv"] | None = None
    """Acceleration of the last step, if contact is constraint-level: its solver starts there [rad/s^2, m/s^2]."""


class StepInfo(eqx.Module):
    """Diagnostics of one step, at the state from which it started."""

    acceleration: Float[Array, " nv"]
    """Acceleration that the integrator used [rad/s^2, m/s^2]."""
    applied_force: Float[Array, " nv"]
    """Force of actuators, springs, dampers and smooth friction [N m, N]."""
    constraint_force: Float[Array, " nv"]
    """Force of contact, and of dry friction and limits that were solved as constraints [N m, N]."""
    iterations: Int[Array, ""]
    """Newton iterations of the joint-constraint solver."""
    contact: ContactReport | None
    """Forces and distances of each contact point; None without contact."""
    result: RESULTS
    """Status code of the step."""
