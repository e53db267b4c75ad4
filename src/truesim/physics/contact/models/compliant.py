"""Compliant contact: Hunt and Crossley's normal force with a smooth friction model, functions of the state.

With x the overlap and s its rate, `f = x^n max(k + d s, 0)` (Hunt and Crossley, 1975): damping grows with the overlap,
so that the force starts from zero and never pulls. Friction is the level of the friction model times the coefficient
times f, against the slip. Torsional and rolling friction are not simulated; rigid contact has them.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import unknown_name
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.physics.contact.base import GEOMETRY, AbstractForceContact, ContactReport, apply_tap
from truesim.physics.contact.constraints import ContactConstraints, contact_constraints
from truesim.physics.contact.detection import ContactPoints, Detector
from truesim.physics.contact.models.friction_models import MIN_SLIP_SPEED, AbstractFrictionModel, BrownFriction
from truesim.physics.model.model import COMPLIANT_DEFAULTS, Model

MIN_OVERLAP = 1e-12
"""Overlap below which there is no force [m]."""

CONTACT_VELOCITY = Port(
    "contact.velocity",
    "contacts",
    "m/s",
    "Velocity of the second body relative to the first: along the normal, then slip along two tangents.",
    ("normal", "first", "second"),
)
SLIP = Port(
    "contact.slip",
    "contacts",
    "m/s",
    "The part of the velocity along two tangents.",
    ("first", "second"),
    writable=False,
)
NORMAL_FORCE = Port("contact.normal_force", "contacts", "N", "Force that pushes the bodies apart.")
FRICTION_FORCE = Port(
    "contact.friction_force",
    "contacts",
    "N",
    "Force on the second body along two tangents.",
    ("first", "second"),
    velocity=SLIP.name,
)


class CompliantContact(AbstractForceContact):
    """Contact forces as functions of overlap and slip; a pair takes the mean of its two geoms' parameters."""

    ports: ClassVar[tuple[Port, ...]] = (*GEOMETRY, CONTACT_VELOCITY, SLIP, NORMAL_FORCE, FRICTION_FORCE)
    friction_model: AbstractFrictionModel
    detector: Detector

    @classmethod
    def of(
        cls, model: Model, *, friction_model: AbstractFrictionModel | None = None, capacity: int | None = None
    ) -> "CompliantContact":
        """Contacts of all pairs that the file lets touch; parameters such as stiffness are fields of the geoms.

        Args:
            model: The robot.
            friction_model: Friction model; `BrownFriction()` by default.
            capacity: Largest number of contact points; by default all possible ones.
        """
        friction_model = BrownFriction() if friction_model is None else friction_model
        return cls(friction_model=friction_model, detector=Detector.of(model, capacity))

    def force(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap = NO_TAP
    ) -> tuple[Float[Array, " nv"], ContactReport]:
        """Generalized force of all contacts [N m or N]."""
        points = apply_tap(self.detector(model, q), tap)
        constraints = contact_constraints(model, q, self.detector, points)
        tangent, friction = constraints.tangent[:, :2], constraints.friction[:, :2]
        approach, slip = _relative_velocity(constraints, v, tap)
        normal = tap(NORMAL_FORCE, self.normal_force(model, points, approach))
        per_slip = self.friction_per_slip(model, points, friction, normal, slip)
        friction_force = tap(FRICTION_FORCE, -per_slip * slip)
        total = constraints.normal.T @ normal + jnp.einsum("pdn,pd->n", tangent, friction_force)
        padded = jnp.pad(friction_force, ((0, 0), (0, 2 - friction_force.shape[1])))
        report = ContactReport(
            position=points.position,
            normal=points.normal,
            distance=points.distance,
            force=jnp.concatenate([normal[:, None], padded], axis=1),
            overflow=points.overflow,
            iterations=jnp.zeros((), jnp.int32),
            converged=jnp.ones((), bool),
        )
        return total, report

    def normal_force(
        self, model: Model, points: ContactPoints, approach: Float[Array, " points"]
    ) -> Float[Array, " points"]:
        """Normal force `x^n max(k + d s, 0)` for the overlap x and the approach speed s [N]."""
        geoms = model.geoms
        parameters = (geoms.contact_stiffness, geoms.contact_damping, geoms.contact_exponent)
        k, d, n = (self._of_points(x, points) for x in parameters)
        touching = points.distance < -MIN_OVERLAP
        depth = jnp.where(touching, -points.distance, 1.0)
        return jnp.where(touching, depth**n * jnp.maximum(k + d * approach, 0.0), 0.0)

    def friction_per_slip(
        self,
        model: Model,
        points: ContactPoints,
        coefficients: Float[Array, "points d"],
        normal: Float[Array, " points"],
        slip: Float[Array, "points d"],
    ) -> Float[Array, "points d"]:
        """Friction over slip along each tangent [N s/m].

        Args:
            model: The robot.
            points: Contact points.
            coefficients: Friction coefficient along each tangent.
            normal: Normal force [N].
            slip: Slip [m/s].
        """
        speed = jnp.sqrt(jnp.sum(slip**2, axis=1) + MIN_SLIP_SPEED**2)
        geoms = model.geoms
        transition, breakaway = (self._of_points(x, points) for x in (geoms.transition_speed, geoms.breakaway))
        level = self.friction_model.level(speed, transition, breakaway)
        return coefficients * (normal * level / speed)[:, None]

    def _of_points(self, of_geoms: Float[Array, " geoms"], points: ContactPoints) -> Float[Array, " points"]:
        """Mean over the two geoms of each point."""
        first, second = np.array([pair.geoms for pair in self.detector.pairs], dtype=int).reshape(-1, 2).T
        values = jnp.asarray(of_geoms)
        of_pairs = (values[first] + values[second]) / 2
        return of_pairs[points.pair if self.detector.culls else self.detector.pair_of_point()]


def with_compliance(model: Model, **parameters: float) -> Model:
    """Model with the same parameters of compliant contact for all geoms, such as `contact_stiffness=1e4` [SI units]."""
    for field, value in parameters.items():
        if field not in COMPLIANT_DEFAULTS:
            raise unknown_name("parameter of compliant contact", field, COMPLIANT_DEFAULTS)
        everywhere = np.full(len(model.geoms.names), value)
        model = eqx.tree_at(lambda m, field=field: getattr(m.geoms, field), model, everywhere)
    return model


def _relative_velocity(
    constraints: ContactConstraints, v: Array, tap: Tap
) -> tuple[Float[Array, " points"], Float[Array, "points d"]]:
    """Approach speed and slip of every point."""
    approach, slip = -constraints.normal @ v, constraints.tangent[:, :2] @ v
    if tap.wants(CONTACT_VELOCITY) or tap.wants(SLIP):
        moved = tap(CONTACT_VELOCITY, jnp.concatenate([-approach[:, None], slip], axis=1))
        approach, slip = -moved[:, 0], tap(SLIP, moved[:, 1:])
    return approach, slip
