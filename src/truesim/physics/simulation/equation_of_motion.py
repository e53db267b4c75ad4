"""Equation of motion at a constant command, which integrators integrate."""

from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Bool, Float
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.augmentation.learned import LearnedPhysics
from truesim.physics.augmentation.memory import NetworkMemory, TapRecord
from truesim.physics.constraints.weights import InverseWeights
from truesim.physics.contact import AbstractConstraintContact, AbstractForceContact, ContactReport
from truesim.physics.contact.base import ConstrainedStep, EffectiveMass
from truesim.physics.dynamics import (
    bias_forces,
    external_forces,
    forward_dynamics,
    gravity_forces,
    integrate,
    joint_coordinates,
    own_velocities,
)
from truesim.physics.model.model import Model
from truesim.physics.simulation.joint_models import AbstractJointModel, ConstraintForce, JointConstants
from truesim.physics.simulation.passive import (
    DAMPING,
    SPRING,
    damping_forces,
    gravity_compensation,
    spring_forces,
    tendon_forces,
)

AnyTap = TypeVar("AnyTap", bound=Tap)
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
    "Sum of all torques that depend on the state alone: all ports above, without constraints and contact.",
    velocity=VELOCITY.name,
)


def as_matrix(inertia: Float[Array, " nv"] | Float[Array, "nv nv"]) -> Float[Array, "nv nv"]:
    """Matrix of an inertia that is given as its diagonal or in full."""
    return jnp.diag(inertia) if inertia.ndim == 1 else inertia


def related_dofs(model: Model) -> Bool[np.ndarray, "nv nv"]:
    """Mask of the pairs of degrees of freedom of which one moves the other: the nonzero entries of the mass matrix."""
    mask = np.zeros((model.nv, model.nv), dtype=bool)
    for k, link in enumerate(model.topology.links):
        for i in model.topology.ancestors(k):
            above = model.topology.links[i].v
            mask[link.v, above] = mask[above, link.v] = True
    return mask


class Constants(NamedTuple):
    """Quantities that depend on the parameters alone; computed once per rollout."""

    joints: JointConstants | None
    """Of the joint model."""
    contact: EffectiveMass | None
    """Of impulse-level contact."""
    weights: InverseWeights | None = None
    """Of constraint-level contact."""


class Forces(NamedTuple):
    """Generalized forces at one state."""

    applied: Float[Array, " nv"]
    """Actuators, springs, dampers and smooth friction [N m or N]."""
    constraint: ConstraintForce
    """Joint friction and limits that were solved as constraints."""
    contact: Float[Array, " nv"] | None = None
    """Force-level contact [N m or N]."""
    touch: ContactReport | None = None
    """Contact points of force-level contact."""
    seen: TapRecord | None = None
    """Values of the ports that networks read."""

    @property
    def total(self) -> Float[Array, " nv"]:
        """Sum of all forces [N m or N]."""
        smooth = self.applied if self.contact is None else self.applied + self.contact
        return smooth + self.constraint.force


class EquationOfMotion(eqx.Module):
    """`M(q) a + c(q, v) = forces(q, v)` at a constant command."""

    model: Model
    joint_model: AbstractJointModel
    contact: AbstractForceContact | AbstractConstraintContact | None
    constants: Constants
    command: Float[Array, " nu"]
    timestep: Float[Array, ""]
    learned: LearnedPhysics | None = None
    memory: NetworkMemory | None = None
    start: Float[Array, " nv"] | None = None
    """Acceleration of the step before, from which the solver of constraint-level contact starts."""

    def tap(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Tap:
        """Tap at this state."""
        if self.learned is None:
            return NO_TAP
        return self.show_state(self.learned.listen(self.model, q, self.memory), q, v)

    def show_state(self, tap: AnyTap, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> AnyTap:
        """Tap that has received the state."""
        tap(POSITION, joint_coordinates(self.model, q))
        tap(VELOCITY, v)
        if tap.wants(BODY_VELOCITY):
            tap(BODY_VELOCITY, own_velocities(self.model, q, v))
        return tap

    def applied(self, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap | None = None) -> Float[Array, " nv"]:
        """Forces that depend on the state alone [N m or N]."""
        tap = self.tap(q, v) if tap is None else tap
        support = gravity_compensation(self.model, q)
        by_actuators = None if support is None else support.by_actuators
        actuators = actuator_forces(self.model, q, v, self.command, tap, by_actuators).generalized
        passive = tap(SPRING, spring_forces(self.model, q)) + tap(DAMPING, damping_forces(self.model, v))
        if support is not None:
            passive = passive + support.passive
        if self.model.tendons.names:
            passive = passive + tendon_forces(self.model, q, v)
        total = actuators + passive + self.joint_model.force(self.model, q, v, tap)
        return tap(TORQUE, self._with_tapped_dynamics(q, v, total, tap))

    def _with_tapped_dynamics(self, q: Array, v: Array, total: Array, tap: Tap) -> Float[Array, " nv"]:
        """Forces with the changes of a tap to gravity, Coriolis forces and body wrenches."""
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

    def forces(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Forces:
        """All forces, with the joint constraints solved."""
        tap = self.tap(q, v)
        applied = self.applied(q, v, tap)
        if isinstance(self.contact, AbstractConstraintContact):
            return self._constrained(q, v, applied, tap)
        contact, report = (None, None) if self.contact is None else self.contact.force(self.model, q, v, tap)
        smooth = applied if contact is None else applied + contact
        constraint = self.joint_model.constraint(self.model, self.constants.joints, (q, v), smooth, self.timestep, tap)
        return Forces(applied, constraint, contact, report, tap.seen)

    def _constrained(self, q: Array, v: Array, applied: Array, tap: Tap) -> Forces:
        """Forces with contact and joint constraints solved as one problem."""
        contact, weights = self.contact, self.constants.weights
        assert isinstance(contact, AbstractConstraintContact), "the caller asks"
        assert weights is not None, "constants() computes the inverse weights of constraint-level contact"
        joints = self.joint_model.rows(self.model, weights.dofs, (q, v), self.timestep, tap)
        step = ConstrainedStep(q, v, applied, self.timestep, self.start)
        force, a, report = contact.respond(self.model, weights, step, joints)
        constraint = ConstraintForce(force, report.iterations, report.converged, a)
        return Forces(applied, constraint, None, report, tap.seen)

    def damps(self) -> bool:
        """True if the joint dampers act without a network in their place."""
        return self.learned is None or not self.learned.takes_over(DAMPING)

    def accelerate(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], tau: Float[Array, " nv"], added: Array | None = None
    ) -> Float[Array, " nv"]:
        """Acceleration under the generalized forces `tau`, with inertia added to each degree of freedom."""
        constrained = any(part is not None for part in self.constants)  # then the mass matrix is computed anyway
        extra = None if self.learned is None else self.learned.kinetic(self.model, q, v)
        if extra is not None:
            matrix = extra.inertia if added is None else extra.inertia + as_matrix(added)
            return forward_dynamics(self.model, q, v, tau - extra.bias, added_inertia=matrix, through_mass_matrix=True)
        dense = constrained or (added is not None and added.ndim == 2)
        return forward_dynamics(self.model, q, v, tau, added_inertia=added, through_mass_matrix=dense)

    def acceleration(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Acceleration at a state [rad/s^2 or m/s^2]."""
        return self.acceleration_under(q, v, self.forces(q, v))

    def acceleration_under(self, q: Float[Array, " nq"], v: Float[Array, " nv"], forces: Forces) -> Float[Array, " nv"]:
        """Acceleration under these forces: the one that the solver of constraints left, if there is one."""
        solved = forces.constraint.acceleration
        return self.accelerate(q, v, forces.total) if solved is None else solved

    def damping(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"] | Float[Array, "nv nv"]:
        """`-d applied / d v`: a diagonal, as each force depends on its own joint's velocity; a matrix with tendons.

        Of the matrix MuJoCo keeps the entries between degrees of freedom on one path from the world.
        """
        if not self.model.tendons.names:
            return -jax.jvp(lambda v: self.applied(q, v), (v,), (jnp.ones_like(v),))[1]
        return jnp.where(related_dofs(self.model), -jax.jacfwd(lambda v: self.applied(q, v))(v), 0.0)

    def stiffness(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Diagonal of `-d applied / d q`."""
        zero = jnp.zeros_like(v)
        return -jax.jvp(lambda dq: self.applied(integrate(self.model, q, dq), v), (zero,), (jnp.ones_like(v),))[1]
