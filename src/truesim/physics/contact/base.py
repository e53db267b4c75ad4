"""Abstract contact models: force-level, impulse-level and constraint-level."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Bool, Float, Int
from truesim.math.interior_point.central_path import Impulses
from truesim.math.interior_point.solver import WarmStart
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.physics.constraints.weights import InverseWeights
from truesim.physics.contact.detection import ContactPoints, Detector
from truesim.physics.model.model import Model

DEPTH = Port("contact.depth", "contacts", "m", "Overlap of each contact point; negative where bodies are apart.")
FRICTION_COEFFICIENT = Port(
    "contact.friction_coefficient", "contacts", "1", "Coefficient of sliding friction of each contact point."
)

GEOMETRY = (DEPTH, FRICTION_COEFFICIENT)
"""Ports of the contact points, evaluated before any contact force."""

CONTACT_SOLUTION = "contact solution"
"""Name, for policies of `jax.checkpoint`, of solutions by iteration, which cost more to compute again than to store."""


class EffectiveMass(NamedTuple):
    """Effective mass of each constraint, a function of the parameters alone; computed once per rollout."""

    pairs: Float[Array, " pairs"]
    """Contacts of each pair of geoms [kg]."""
    dofs: Float[Array, " nv"]
    """Each degree of freedom [kg m^2 or kg]."""
    equalities: Float[Array, " rows"]
    """Each row of the equality constraints [kg m^2 or kg]."""


class UnconstrainedStep(NamedTuple):
    """Time step without contact."""

    q: Float[Array, " nq"]
    """Configuration at its start."""
    v: Float[Array, " nv"]
    """Velocity at its end."""
    rate: Float[Array, " nv"]
    """Rate of the configuration over the step."""
    added_inertia: Float[Array, " nv"] | None
    """Inertia that the integrator added to the diagonal of the mass matrix."""
    timestep: Float[Array, ""]
    """[s]"""
    start_v: Float[Array, " nv"]
    """Velocity at its start."""
    warm_start: WarmStart | None = None
    """Velocity and impulses of the step before."""


class ConstrainedStep(NamedTuple):
    """State and forces at which constraints are solved."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    applied: Float[Array, " nv"]
    """All other generalized forces [N m or N]."""
    timestep: Float[Array, ""]
    """[s]"""
    start: Float[Array, " nv"] | None = None
    """Acceleration of the step before, from which a solver can start."""


class ContactReport(NamedTuple):
    """Contact points of one step, their forces, and solver diagnostics."""

    position: Float[Array, "points 3"]
    """[m]"""
    normal: Float[Array, "points 3"]
    distance: Float[Array, " points"]
    """At the start of the step [m]."""
    force: Float[Array, "points 3"]
    """Force on the second geom along the normal and two tangents, averaged over the step [N]."""
    overflow: Int[Array, ""]
    """Number of touching points beyond the capacity."""
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


class Response(NamedTuple):
    """Result of impulse-level contact over one step."""

    v: Float[Array, " nv"]
    """Velocity at its end."""
    q: Float[Array, " nq"]
    """Configuration at its end."""
    impulse: Float[Array, " nv"]
    """Generalized impulse of all constraints [N m s or N s]."""
    impulses: Impulses | None
    """Impulse of each constraint [N s or N m s]; None without a warm start."""
    report: ContactReport


class AbstractContact(eqx.Module):
    """Contact model: an `AbstractForceContact`, `AbstractImpulseContact` or `AbstractConstraintContact`."""

    detector: eqx.AbstractVar[Detector]
    ports: eqx.AbstractClassVar[tuple[Port, ...]]
    """Ports that the model offers to taps, in the order of their evaluation."""


class AbstractForceContact(AbstractContact):
    """Force-level contact: a force that depends on the state alone.

    Limits and friction of the joints are left to the joint model.
    """

    @abc.abstractmethod
    def force(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap = NO_TAP
    ) -> tuple[Float[Array, " nv"], ContactReport]:
        """Generalized force of all contacts [N m or N]."""


class AbstractImpulseContact(AbstractContact):
    """Impulse-level contact: impulses that are solved for together with the velocity at the end of a step.

    Limits, friction of the joints and equality constraints are part of the same problem.
    """

    @abc.abstractmethod
    def effective_mass(self, model: Model) -> EffectiveMass:
        """Effective mass of each constraint, a function of the parameters alone."""

    @abc.abstractmethod
    def initial_impulses(self, model: Model) -> Impulses | None:
        """Impulses that start a simulation; None if the model does not use those of the step before."""

    @abc.abstractmethod
    def respond(
        self, model: Model, effective_mass: EffectiveMass, step: UnconstrainedStep, tap: Tap = NO_TAP
    ) -> Response:
        """State at the end of a step that obeys all constraints, with their impulses.

        Args:
            model: The robot.
            effective_mass: Result of `effective_mass`.
            step: The step without contact.
            tap: Receives the values of the ports.
        """


class AbstractConstraintContact(AbstractContact):
    """Constraint-level contact: forces that are solved for together with the acceleration.

    The constraints of a joint model, equality constraints and tendons are part of the same problem.
    """

    @abc.abstractmethod
    def weights(self, model: Model) -> InverseWeights:
        """Inverse weights of all constraints, a function of the parameters alone."""

    @abc.abstractmethod
    def respond(
        self,
        model: Model,
        weights: InverseWeights,
        step: ConstrainedStep,
        joints: SoftConstraints | None = None,
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"], ContactReport]:
        """Generalized force of all constraints [N m or N], the acceleration that they leave, and a report.

        Args:
            model: The robot.
            weights: Result of `weights`.
            step: State and other forces.
            joints: Constraints of the joint model.
        """


def apply_tap(points: ContactPoints, tap: Tap) -> ContactPoints:
    """Contact points with depth and friction as changed by a tap."""
    if tap.wants(DEPTH):
        points = points._replace(distance=-tap(DEPTH, -points.distance))
    if tap.wants(FRICTION_COEFFICIENT):
        sliding = tap(FRICTION_COEFFICIENT, points.friction[:, 0])
        points = points._replace(
            friction=jnp.maximum(jnp.asarray(points.friction).at[:, :2].set(sliding[:, None]), 0.0)
        )
    return points
