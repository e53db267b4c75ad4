"""The equation of motion at a held command: what integrators integrate."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.actuators.forces import actuator_forces
from truesim.contact import AbstractContact, ContactReport
from truesim.contact.base import Weights
from truesim.core.typing import Array, Float
from truesim.dynamics import forward_dynamics, integrate
from truesim.model.model import Model
from truesim.simulate.joint_laws import AbstractJointLaw, ConstraintForce, JointConstants
from truesim.simulate.passive import damping_forces, spring_forces


class Constants(NamedTuple):
    """What follows from the parameters alone; computed once per rollout, not once per step."""

    joints: JointConstants | None
    contact: Weights | None


class Forces(NamedTuple):
    """Generalised forces at one state."""

    applied: Float[Array, "nv"]
    """Actuators, springs, dampers and smooth friction [N m or N]."""
    constraint: ConstraintForce
    """Dry friction and limits that were solved as constraints."""
    contact: Float[Array, "nv"] | None = None
    """Contact that depends on the state alone [N m or N]."""
    touch: ContactReport | None = None

    @property
    def total(self) -> Float[Array, "nv"]:
        """All of them [N m or N]."""
        smooth = self.applied if self.contact is None else self.applied + self.contact
        return smooth + self.constraint.force


class EquationOfMotion(eqx.Module):
    """`M(q) a + c(q, v) = forces(q, v)` with the command held."""

    model: Model
    joint_law: AbstractJointLaw
    contact: AbstractContact | None
    constants: Constants
    command: Float[Array, "nu"]
    timestep: Float[Array, ""]

    def applied(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv"]:
        """Forces that depend on the state alone [N m or N]."""
        actuators = actuator_forces(self.model, q, v, self.command).generalised
        passive = spring_forces(self.model, q) + damping_forces(self.model, v)
        return actuators + passive + self.joint_law.force(self.model, q, v)

    def forces(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Forces:
        """All forces, constraints solved."""
        applied = self.applied(q, v)
        touching = None if self.contact is None else self.contact.force(self.model, q, v)
        contact, report = (None, None) if touching is None else touching
        smooth = applied if contact is None else applied + contact
        constraint = self.joint_law.constraint(self.model, self.constants.joints, (q, v), smooth, self.timestep)
        return Forces(applied, constraint, contact, report)

    def accelerate(
        self, q: Float[Array, "nq"], v: Float[Array, "nv"], tau: Float[Array, "nv"], added: Array | None = None
    ) -> Float[Array, "nv"]:
        """Acceleration under the generalised forces `tau`, with inertia added to each degree of freedom."""
        constrained = any(part is not None for part in self.constants)  # then the mass matrix is at hand
        return forward_dynamics(self.model, q, v, tau, added_inertia=added, through_mass_matrix=constrained)

    def acceleration(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv"]:
        """Acceleration at a state [rad/s^2 or m/s^2]."""
        return self.accelerate(q, v, self.forces(q, v).total)

    def damping(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv"]:
        """`-d applied / d v`; each force depends on its own joint's velocity alone, so this is the whole matrix."""
        return -jax.jvp(lambda v: self.applied(q, v), (v,), (jnp.ones_like(v),))[1]

    def stiffness(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv"]:
        """`-d applied / d q`, along each degree of freedom."""
        zero = jnp.zeros_like(v)
        return -jax.jvp(lambda dq: self.applied(integrate(self.model, q, dq), v), (zero,), (jnp.ones_like(v),))[1]
