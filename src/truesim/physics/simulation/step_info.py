"""Diagnostics of a step, from the integrator and from contact."""

import jax.numpy as jnp

from truesim.core.results import RESULTS
from truesim.core.typing import Array
from truesim.physics.contact.base import Response
from truesim.physics.simulation.integrators import Increment
from truesim.physics.simulation.state import State, StepInfo


def step_info(
    state: State, increment: Increment, response: Response | None, q: Array, v: Array, timestep: Array
) -> StepInfo:
    """Diagnostics of the step from `state` to q and v."""
    constraint = increment.forces.constraint
    result = RESULTS.where(constraint.converged, RESULTS.ok, RESULTS.constraints_not_converged)
    touch = increment.forces.touch if response is None else response.report
    if touch is not None:
        result = RESULTS.where(touch.converged, result, RESULTS.contacts_not_converged)
        result = RESULTS.where(touch.overflow > 0, RESULTS.contacts_overflow, result)
    finite = jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
    contact_force = increment.forces.contact if response is None else response.impulse / timestep
    return StepInfo(
        acceleration=increment.acceleration if response is None else (v - state.v) / timestep,
        applied_force=increment.forces.applied,
        constraint_force=constraint.force if contact_force is None else constraint.force + contact_force,
        iterations=constraint.iterations,
        contact=touch,
        result=RESULTS.where(finite, result, RESULTS.not_finite),
    )
