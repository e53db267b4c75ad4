"""Compliant contact: Hunt and Crossley's normal force and a smooth law of friction, functions of the state.

With x the depth of overlap and s the speed at which it grows, `f = x^n max(k + d s, 0)` (Hunt and Crossley, 1975):
damping grows with depth, so that the force starts from zero and never pulls. Friction is the law's level times the
coefficient times f, against the slip. Torsional and rolling friction are left to the rigid law.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.contact.base import GEOMETRY, AbstractContact, ContactReport, Motion, Weights, tapped
from truesim.contact.detection import ContactPoints, Detector
from truesim.contact.friction_laws import STILL, AbstractFrictionLaw, BrownFriction
from truesim.contact.rows import ContactRows, contact_rows
from truesim.core.errors import unknown_name
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Float
from truesim.model.model import COMPLIANCE, Model

SHALLOWEST = 1e-12
"""Overlap below which there is no force [m]."""

VELOCITY = Port(
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


class ContactCompliant(AbstractContact):
    """Contact as a force of overlap and slip; a pair takes the mean of its two geoms' numbers."""

    ports: ClassVar[tuple[Port, ...]] = (*GEOMETRY, VELOCITY, SLIP, NORMAL_FORCE, FRICTION_FORCE)
    friction_law: AbstractFrictionLaw
    detector: Detector

    @classmethod
    def of(
        cls, model: Model, *, friction_law: AbstractFrictionLaw | None = None, capacity: int | None = None
    ) -> "ContactCompliant":
        """Contacts of all pairs that the file lets touch; their stiffness and so on stand in the model's geoms.

        Args:
            model: The robot.
            friction_law: `BrownFriction()` unless another is given.
            capacity: Largest number of contact points; room for all unless given.
        """
        law = BrownFriction() if friction_law is None else friction_law
        return cls(friction_law=law, detector=Detector.of(model, capacity))

    @property
    def treats_joints(self) -> bool:
        """Limits and dry friction are left to the joint law."""
        return False

    @property
    def is_smooth(self) -> bool:
        """A force of the state."""
        return True

    def weights(self, model: Model) -> Weights | None:
        """Nothing."""
        return None

    def no_impulses(self, model: Model) -> None:
        """No impulses."""

    def respond(self, model: Model, weights: Weights | None, motion: Motion, tap: Tap = NO_TAP) -> None:
        """No impulses."""

    def force(
        self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap = NO_TAP
    ) -> tuple[Float[Array, "nv"], ContactReport]:
        """Generalised force of all contacts [N m or N]."""
        points = tapped(self.detector(model, q), tap)
        rows = contact_rows(model, q, self.detector, points)
        tangent, friction = rows.tangent[:, :2], rows.friction[:, :2]
        approach, slip = _relative(rows, v, tap)
        normal = tap(NORMAL_FORCE, self.normal_force(model, points, approach))
        speed = jnp.sqrt(jnp.sum(slip**2, axis=1) + STILL**2)
        geoms = model.geoms
        transition, breakaway = (self._of_points(x, points) for x in (geoms.transition_speed, geoms.breakaway))
        level = self.friction_law.level(speed, transition, breakaway)
        rubbing = tap(FRICTION_FORCE, -friction * (normal * level / speed)[:, None] * slip)
        total = rows.normal.T @ normal + jnp.einsum("pdn,pd->n", tangent, rubbing)
        padded = jnp.pad(rubbing, ((0, 0), (0, 2 - rubbing.shape[1])))
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
        self, model: Model, points: ContactPoints, approach: Float[Array, "points"]
    ) -> Float[Array, "points"]:
        """`x^n max(k + d s, 0)` for the overlap x and the speed of approach s [N]."""
        geoms = model.geoms
        numbers = (geoms.contact_stiffness, geoms.contact_damping, geoms.contact_exponent)
        k, d, n = (self._of_points(x, points) for x in numbers)
        touching = points.distance < -SHALLOWEST
        depth = jnp.where(touching, -points.distance, 1.0)
        return jnp.where(touching, depth**n * jnp.maximum(k + d * approach, 0.0), 0.0)

    def _of_points(self, of_geoms: Float[Array, "geoms"], points: ContactPoints) -> Float[Array, "points"]:
        """The mean over the two geoms of each point."""
        first, second = np.array([pair.geoms for pair in self.detector.pairs], dtype=int).reshape(-1, 2).T
        values = jnp.asarray(of_geoms)
        of_pairs = (values[first] + values[second]) / 2
        return of_pairs[points.pair if self.detector.culls else self.detector.pair_of_point()]


def with_compliance(model: Model, **numbers: float) -> Model:
    """The model with the same numbers for all geoms, by field: `contact_stiffness=1e4` [SI units]."""
    for field, value in numbers.items():
        if field not in COMPLIANCE:
            raise unknown_name("number of compliant contact", field, COMPLIANCE)
        everywhere = np.full(len(model.geoms.names), value)
        model = eqx.tree_at(lambda m, field=field: getattr(m.geoms, field), model, everywhere)
    return model


def _relative(rows: ContactRows, v: Array, tap: Tap) -> tuple[Float[Array, "points"], Float[Array, "points d"]]:
    """Speed of approach and slip of every point."""
    approach, slip = -rows.normal @ v, rows.tangent[:, :2] @ v
    if tap.wants(VELOCITY) or tap.wants(SLIP):
        moved = tap(VELOCITY, jnp.concatenate([-approach[:, None], slip], axis=1))
        approach, slip = -moved[:, 0], tap(SLIP, moved[:, 1:])
    return approach, slip
