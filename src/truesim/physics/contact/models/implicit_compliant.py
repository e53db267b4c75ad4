"""Compliant contact at the end of each time step: the forces of `CompliantContact`, stable at any time step.

With the overlap x and the slip u of each point at the end of a step of length h, the velocity v there solves

    M (v - free) = h (N^T f(x + h s, s) - T^T mu f level(|u|) / |u| u),    s = -N v,  u = T v

where `free` is the velocity without contact. Newton's method linearizes the normal force, of which only the rising
part counts; friction keeps the ratio of force to slip of the last iteration. Both only add to the diagonal of a
positive definite matrix, so that each iteration is one linear solve. Joint limits are critically damped springs at
the end of the step, and joint friction has the same form as that of contacts.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.physics.contact.base import (
    GEOMETRY,
    AbstractImpulseContact,
    ContactReport,
    EffectiveMass,
    Response,
    UnconstrainedStep,
    apply_tap,
)
from truesim.physics.contact.constraints import (
    ContactConstraints,
    LimitConstraints,
    contact_constraints,
    joint_friction_dofs,
    limit_constraints,
)
from truesim.physics.contact.detection import ContactPoints, Detector
from truesim.physics.contact.effective_mass import effective_masses
from truesim.physics.contact.models.compliant import CompliantContact
from truesim.physics.contact.models.friction_models import AbstractFrictionModel, BrownFriction
from truesim.physics.dynamics import integrate, mass_matrix
from truesim.physics.dynamics.joint_friction import joint_friction_bound
from truesim.physics.model.kinds import FREE
from truesim.physics.model.model import Model
from truesim.physics.model.structure import structure_of

LIMIT_TIME = 0.01
"""Time constant of joint limits [s]; larger is softer."""
STICKING_SPEED = 0.01
"""Speed below which joint friction falls to zero [rad/s or m/s]; larger creeps more under load."""


class _Row(NamedTuple):
    """Force along some directions as an affine function of the speed along them: `constant - ratio * speed`."""

    J: Float[Array, "rows nv"]
    constant: Float[Array, " rows"]
    ratio: Float[Array, " rows"]


class ImplicitCompliantContact(AbstractImpulseContact):
    """Compliant contact whose forces act at the end of the step; joint limits and joint friction are solved with it."""

    ports: ClassVar[tuple[Port, ...]] = GEOMETRY
    friction_model: AbstractFrictionModel
    detector: Detector
    friction: tuple[int, ...] = eqx.field(static=True)
    """Joints with friction."""
    limits: tuple[int, ...] = eqx.field(static=True)
    """Joints with limits."""
    iterations: int = eqx.field(static=True)
    """Linear solves of each step."""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        friction_model: AbstractFrictionModel | None = None,
        capacity: int | None = None,
        iterations: int = 3,
    ) -> "ImplicitCompliantContact":
        """Contacts of all pairs that the file lets touch; stiffness, damping and friction are fields of the geoms.

        Args:
            model: The robot.
            friction_model: Friction model; `BrownFriction()` by default.
            capacity: Largest number of contact points; by default all possible ones.
            iterations: Linear solves of each step; more follow the model more exactly.
        """
        if model.equalities.names:
            raise TruesimError(
                f"Implicit compliant contact does not close chains, such as {model.equalities.names[0]}: use rigid "
                "contact, or the file's."
            )
        if iterations < 1:
            raise TruesimError(f"Contact with {iterations} linear solves of a step does nothing; give at least 1.")
        structure, joints, defaults = structure_of(model), model.joints, model.defaults
        if structure.load_friction:
            raise TruesimError("A joint's load_friction is positive: compliant contact at the end of a step has none.")
        friction = sorted({*structure.frictionloss, *structure.stiction})
        limits = [j for j, limited in enumerate(joints.limited) if limited and joints.kinds[j] != FREE]
        return cls(
            friction_model=BrownFriction() if friction_model is None else friction_model,
            detector=Detector.of(model, capacity),
            friction=tuple(friction) if defaults.joint_friction else (),
            limits=tuple(limits) if defaults.limits else (),
            iterations=iterations,
        )

    @property
    def forces(self) -> CompliantContact:
        """Model of the forces."""
        return CompliantContact(friction_model=self.friction_model, detector=self.detector)

    def effective_mass(self, model: Model) -> EffectiveMass:
        """Effective mass of pairs and degrees of freedom in the reference configuration."""
        return effective_masses(model, self.detector)

    def initial_impulses(self, model: Model) -> None:
        """None: each step starts from the velocity before it."""

    def respond(
        self, model: Model, effective_mass: EffectiveMass, step: UnconstrainedStep, tap: Tap = NO_TAP
    ) -> Response:
        """Velocity under the forces at the end of the step, and the configuration to which it leads."""
        points = apply_tap(self.detector(model, step.q), tap)
        contacts = contact_constraints(model, step.q, self.detector, points)
        limits = limit_constraints(model, self.limits, step.q)
        M = mass_matrix(model, step.q)
        M = M if step.added_inertia is None else M + jnp.diag(step.added_inertia)
        v, dt = step.start_v, step.timestep  # from there friction that sticks is found at once
        for _ in range(self.iterations):
            rows = [
                *self._contacts(model, points, contacts, v, dt),
                *self._joints(model, effective_mass, limits, v, dt),
            ]
            matrix = M + dt * sum(row.J.T @ (row.ratio[:, None] * row.J) for row in rows)
            v = dense.solve(matrix, M @ step.v + dt * sum(row.constant @ row.J for row in rows))
        q = integrate(model, step.q, dt * (step.rate + v - step.v))
        return Response(v, q, M @ (v - step.v), None, self._report(model, points, contacts, v, dt))

    def _contacts(
        self, model: Model, points: ContactPoints, contacts: ContactConstraints, v: Array, dt: Array
    ) -> list[_Row]:
        """Normal forces and friction, linearized at a velocity of the end of the step."""
        approach = -contacts.normal @ v

        def normal_force(approach: Array) -> Array:
            return self.forces.normal_force(model, points._replace(distance=points.distance - dt * approach), approach)

        normal, damping = jax.jvp(normal_force, (approach,), (jnp.ones_like(approach),))
        tangent = contacts.tangent[:, :2]
        ratio = self.forces.friction_per_slip(model, points, contacts.friction[:, :2], normal, tangent @ v)
        tangents = [_Row(tangent[:, k], jnp.zeros_like(normal), ratio[:, k]) for k in range(tangent.shape[1])]
        damping = jnp.maximum(damping, 0.0)
        return [_Row(contacts.normal, normal - damping * approach, damping), *tangents]

    def _joints(self, model: Model, masses: EffectiveMass, limits: LimitConstraints, v: Array, dt: Array) -> list[_Row]:
        """Limits and friction of the joints, linearized at a velocity of the end of the step."""
        mass = masses.dofs[limits.dof]
        k, d = mass / LIMIT_TIME**2, 2.0 * mass / LIMIT_TIME
        at_end = limits.distance + dt * (limits.J @ v)
        touches = (at_end < 0.0).astype(at_end.dtype)
        rows = [_Row(limits.J, -touches * k * limits.distance, touches * (k * dt + d))]
        dofs = joint_friction_dofs(model, self.friction)
        bound, speed = joint_friction_bound(model, v)[dofs], v[dofs]
        ratio = bound / jnp.sqrt(speed**2 + STICKING_SPEED**2)
        return [*rows, _Row(jnp.eye(model.nv)[dofs], jnp.zeros_like(ratio), ratio)]

    def _report(
        self, model: Model, points: ContactPoints, contacts: ContactConstraints, v: Array, dt: Array
    ) -> ContactReport:
        approach = -contacts.normal @ v
        moved = points._replace(distance=points.distance - dt * approach)
        normal = self.forces.normal_force(model, moved, approach)
        slip = contacts.tangent[:, :2] @ v
        friction = -slip * self.forces.friction_per_slip(model, points, contacts.friction[:, :2], normal, slip)
        return ContactReport(
            position=points.position,
            normal=points.normal,
            distance=points.distance,
            force=jnp.concatenate([normal[:, None], jnp.pad(friction, ((0, 0), (0, 2 - slip.shape[1])))], axis=1),
            overflow=points.overflow,
            iterations=jnp.full((), self.iterations, jnp.int32),
            converged=jnp.ones((), bool),
        )
