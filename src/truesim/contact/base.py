"""What a law of contact must provide."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from truesim.contact.detection import ContactPoints, Detector
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Bool, Float, Int
from truesim.model.model import Model
from truesim.numerics.central_path import Impulses
from truesim.numerics.interior_point import Before

DEPTH = Port("contact.depth", "contacts", "m", "Overlap of each contact point; negative where bodies are apart.")
FRICTION_COEFFICIENT = Port(
    "contact.friction_coefficient", "contacts", "1", "Coefficient of sliding friction of each contact point."
)

GEOMETRY = (DEPTH, FRICTION_COEFFICIENT)
"""What is known of a contact before its forces are."""


class Weights(NamedTuple):
    """Sizes of inertia that follow from the parameters alone; computed once per rollout, not once per step."""

    pairs: Float[Array, "pairs"]
    """What a contact of each pair feels [kg]."""
    dofs: Float[Array, "nv"]
    """What each degree of freedom feels [kg m^2 or kg]."""
    equalities: Float[Array, "rows"]
    """What each row of the equality constraints feels [kg m^2 or kg]."""


class Motion(NamedTuple):
    """A step as it would be without contact."""

    q: Float[Array, "nq"]
    """Configuration at its start."""
    v: Float[Array, "nv"]
    """Velocity at its end."""
    rate: Float[Array, "nv"]
    """Rate of the configuration over the step."""
    added_inertia: Float[Array, "nv"] | None
    """What the integrator added to the mass matrix."""
    timestep: Float[Array, ""]
    before: Before | None = None
    """Velocity and impulses of the step before, from which the search for this one's may start."""


class ContactReport(NamedTuple):
    """What the contacts of one step did."""

    position: Float[Array, "points 3"]
    """[m]"""
    normal: Float[Array, "points 3"]
    distance: Float[Array, "points"]
    """At the start of the step [m]."""
    force: Float[Array, "points 3"]
    """Force on the second geom along the normal and two tangents, averaged over the step [N]."""
    overflow: Int[Array, ""]
    """Number of touching points beyond the capacity."""
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


class Response(NamedTuple):
    """What contact makes of a step."""

    v: Float[Array, "nv"]
    """Velocity at its end."""
    q: Float[Array, "nq"]
    """Configuration at its end."""
    impulse: Float[Array, "nv"]
    """Generalised impulse of all constraints [N m s or N s]."""
    impulses: Impulses | None
    """Those of each constraint [N s or N m s]; None if those of the step before were not given."""
    report: ContactReport


class AbstractContact(eqx.Module):
    """How bodies that touch act on each other: by forces of the state, or by impulses found with the step."""

    detector: eqx.AbstractVar[Detector]
    ports: eqx.AbstractClassVar[tuple[Port, ...]]
    """The ports that the law offers to taps, in the order in which it computes them."""

    @property
    @abc.abstractmethod
    def treats_joints(self) -> bool:
        """Whether limits and dry friction of the joints are part of the law."""

    @property
    @abc.abstractmethod
    def is_smooth(self) -> bool:
        """Whether contact is a force of the state alone."""

    @abc.abstractmethod
    def weights(self, model: Model) -> Weights | None:
        """What the law needs that follows from the parameters alone."""

    @abc.abstractmethod
    def no_impulses(self, model: Model) -> Impulses | None:
        """What to give the first step for the impulses of the one before; None if the law makes no use of them."""

    @abc.abstractmethod
    def force(
        self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap = NO_TAP
    ) -> tuple[Float[Array, "nv"], ContactReport] | None:
        """Generalised force that depends on the state alone [N m or N]; None if there is none."""

    @abc.abstractmethod
    def respond(self, model: Model, weights: Weights | None, motion: Motion, tap: Tap = NO_TAP) -> Response | None:
        """What becomes of a step that would move bodies into each other; None if forces alone act."""


def tapped(points: ContactPoints, tap: Tap) -> ContactPoints:
    """Contact points as a tap leaves them."""
    if tap.wants(DEPTH):
        points = points._replace(distance=-tap(DEPTH, -points.distance))
    if tap.wants(FRICTION_COEFFICIENT):
        sliding = tap(FRICTION_COEFFICIENT, points.friction[:, 0])
        points = points._replace(friction=jnp.maximum(points.friction.at[:, :2].set(sliding[:, None]), 0.0))
    return points
