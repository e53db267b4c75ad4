"""The equation of motion at a held command: what integrators integrate."""

from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.actuators.forces import actuator_forces
from truesim.contact import AbstractContact, ContactReport
from truesim.contact.base import Weights
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.dynamics import (
    bias_forces,
    external_forces,
    forward_dynamics,
    gravity_forces,
    integrate,
    joint_coordinates,
    own_velocities,
)
from truesim.model.model import Model
from truesim.simulate.augment.learned import Learned
from truesim.simulate.augment.memory import Memory, Seen
from truesim.simulate.joint_laws import AbstractJointLaw, ConstraintForce, JointConstants
from truesim.simulate.passive import DAMPING, SPRING, damping_forces, spring_forces

Listening = TypeVar("Listening", bound=Tap)
"""Any kind of tap."""
POSITION = Port(
    "joint.position",
    "dofs",
    "rad|m",
    "Coordinate of each degree of freedom; orientations as rotation vectors.",
    writable=False,
)
VELOCITY = Port("joint.velocity", "dofs", "rad/s|m/s", "Velocity of each degree of freedom.", writable=False)
BODY_VELOCITY = Port(
    "body.velocity",
    "bodies",
    "rad/s, m/s",
    "Angular velocity and velocity of the origin of each body's frame, in its own axes.",
    ("wx", "wy", "wz", "vx", "vy", "vz"),
    writable=False,
)
GRAVITY = Port("joint.gravity_torque", "dofs", "N m|N", "Torque of gravity.", velocity=VELOCITY.name)
CORIOLIS = Port(
    "joint.coriolis_torque", "dofs", "N m|N", "Torque of Coriolis and centrifugal forces.", velocity=VELOCITY.name
)
WRENCH = Port(
    "body.wrench",
    "bodies",
    "N m, N",
    "Torque and force on each body at the origin of its frame, in its own axes: drag, wind. Zero in the model.",
    ("tx", "ty", "tz", "fx", "fy", "fz"),
    velocity=BODY_VELOCITY.name,
)
TORQUE = Port(
    "joint.torque",
    "dofs",
    "N m|N",
    "Sum of all torques of the state alone: everything above, without constraints and contact.",
    velocity=VELOCITY.name,
)


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
    seen: Seen | None = None
    """What passed the ports, where networks read it."""

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
    learned: Learned | None = None
    memory: Memory | None = None

    def tap(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Tap:
        """Who listens at this state."""
        if self.learned is None:
            return NO_TAP
        return self.shown(self.learned.listen(self.model, q, self.memory), q, v)

    def shown(self, tap: Listening, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Listening:
        """A tap that has been shown this state."""
        tap(POSITION, joint_coordinates(self.model, q))
        tap(VELOCITY, v)
        if tap.wants(BODY_VELOCITY):
            tap(BODY_VELOCITY, own_velocities(self.model, q, v))
        return tap

    def applied(self, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap | None = None) -> Float[Array, "nv"]:
        """Forces that depend on the state alone [N m or N]."""
        tap = self.tap(q, v) if tap is None else tap
        actuators = actuator_forces(self.model, q, v, self.command, tap).generalised
        passive = tap(SPRING, spring_forces(self.model, q)) + tap(DAMPING, damping_forces(self.model, v))
        total = actuators + passive + self.joint_law.force(self.model, q, v, tap)
        return tap(TORQUE, self._doubted(q, v, total, tap))

    def _doubted(self, q: Array, v: Array, total: Array, tap: Tap) -> Float[Array, "nv"]:
        """The forces with what a tap makes of terms that are elsewhere part of the dynamics."""
        if tap.wants(GRAVITY):
            gravity = -gravity_forces(self.model, q)
            total = total + (tap(GRAVITY, gravity) - gravity)
        if tap.wants(CORIOLIS):
            coriolis = gravity_forces(self.model, q) - bias_forces(self.model, q, v)
            total = total + (tap(CORIOLIS, coriolis) - coriolis)
        if tap.wants(WRENCH):
            none = jnp.zeros((len(self.model.bodies.names), 6))
            total = total + external_forces(self.model, q, tap(WRENCH, none))
        return total

    def forces(self, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Forces:
        """All forces, constraints solved."""
        tap = self.tap(q, v)
        applied = self.applied(q, v, tap)
        touching = None if self.contact is None else self.contact.force(self.model, q, v, tap)
        contact, report = (None, None) if touching is None else touching
        smooth = applied if contact is None else applied + contact
        constraint = self.joint_law.constraint(self.model, self.constants.joints, (q, v), smooth, self.timestep, tap)
        return Forces(applied, constraint, contact, report, tap.seen)

    def damps(self) -> bool:
        """Whether the joint dampers act as the model has them."""
        return self.learned is None or not self.learned.takes_over(DAMPING)

    def accelerate(
        self, q: Float[Array, "nq"], v: Float[Array, "nv"], tau: Float[Array, "nv"], added: Array | None = None
    ) -> Float[Array, "nv"]:
        """Acceleration under the generalised forces `tau`, with inertia added to each degree of freedom."""
        constrained = any(part is not None for part in self.constants)  # then the mass matrix is at hand
        extra = None if self.learned is None else self.learned.kinetic(self.model, q, v)
        if extra is not None:
            matrix = extra.inertia if added is None else extra.inertia + jnp.diag(added)
            return forward_dynamics(self.model, q, v, tau - extra.bias, added_inertia=matrix, through_mass_matrix=True)
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
