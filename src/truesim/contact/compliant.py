"""Compliant contact: Hunt and Crossley's normal force and a smooth law of friction, functions of the state.

With x the depth of overlap and s the speed at which it grows, `f = x^n max(k + d s, 0)` (Hunt and Crossley, 1975):
damping grows with depth, so that the force starts from zero and never pulls. Friction is the law's level times the
coefficient times f, against the slip. Torsional and rolling friction are left to the rigid law.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.contact.base import AbstractContact, ContactReport, Motion, Weights
from truesim.contact.detection import ContactPoints, Detector
from truesim.contact.friction_laws import STILL, AbstractFrictionLaw, BrownFriction
from truesim.contact.rows import contact_rows
from truesim.core.typing import Array, Float
from truesim.model.model import Model
from truesim.model.quantity import quantity

SHALLOWEST = 1e-12
"""Overlap below which there is no force [m]."""


class ContactCompliant(AbstractContact):
    """Contact as a force of overlap and slip; a pair takes the mean of its two geoms' numbers."""

    stiffness: Float[Array, "geoms"] = quantity("N/m^n")
    """k: force per depth to the power of `exponent`."""
    damping: Float[Array, "geoms"] = quantity("N s/m^(n+1)")
    """d: growth of the stiffness with the speed of approach."""
    exponent: Float[Array, "geoms"] = quantity("1")
    """n: 3/2 for round bodies (Hertz), 1 for flat ones."""
    transition: Float[Array, "geoms"] = quantity("m/s")
    """Speed of slip at which friction is developed; smaller is sharper."""
    breakaway: Float[Array, "geoms"] = quantity("1")
    """Friction at the onset of motion, in parts of the friction in motion."""
    names: tuple[str, ...] = eqx.field(static=True)
    friction_law: AbstractFrictionLaw
    detector: Detector

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        stiffness: float = 1e5,
        damping: float = 1e5,
        exponent: float = 1.5,
        transition: float = 0.01,
        friction_law: AbstractFrictionLaw | None = None,
        capacity: int | None = None,
    ) -> "ContactCompliant":
        """The same numbers for all geoms.

        Args:
            model: The robot.
            stiffness: k [N/m^n].
            damping: d [N s/m^(n+1)].
            exponent: n.
            transition: Speed of slip at which friction is developed [m/s].
            friction_law: `BrownFriction()` unless another is given.
            capacity: Largest number of contact points; room for all unless given.
        """
        n = len(model.geoms.names)
        return cls(
            stiffness=np.full(n, stiffness),
            damping=np.full(n, damping),
            exponent=np.full(n, exponent),
            transition=np.full(n, transition),
            breakaway=np.ones(n),
            names=model.geoms.names,
            friction_law=BrownFriction() if friction_law is None else friction_law,
            detector=Detector.of(model, capacity),
        )

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

    def respond(self, model: Model, weights: Weights | None, motion: Motion) -> None:
        """No impulses."""

    def force(
        self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]
    ) -> tuple[Float[Array, "nv"], ContactReport]:
        """Generalised force of all contacts [N m or N]."""
        points = self.detector(model, q)
        rows = contact_rows(model, q, self.detector, points)
        tangent, friction = rows.tangent[:, :2], rows.friction[:, :2]
        normal = self.normal_force(points, -rows.normal @ v)
        slip = tangent @ v
        speed = jnp.sqrt(jnp.sum(slip**2, axis=1) + STILL**2)
        transition, breakaway = (self._of_points(x, points) for x in (self.transition, self.breakaway))
        level = self.friction_law.level(speed, transition, breakaway)
        rubbing = -friction * (normal * level / speed)[:, None] * slip
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

    def normal_force(self, points: ContactPoints, approach: Float[Array, "points"]) -> Float[Array, "points"]:
        """`x^n max(k + d s, 0)` for the overlap x and the speed of approach s [N]."""
        k, d, n = (self._of_points(x, points) for x in (self.stiffness, self.damping, self.exponent))
        touching = points.distance < -SHALLOWEST
        depth = jnp.where(touching, -points.distance, 1.0)
        return jnp.where(touching, depth**n * jnp.maximum(k + d * approach, 0.0), 0.0)

    def _of_points(self, of_geoms: Float[Array, "geoms"], points: ContactPoints) -> Float[Array, "points"]:
        """The mean over the two geoms of each point."""
        first, second = np.array([pair.geoms for pair in self.detector.pairs], dtype=int).reshape(-1, 2).T
        values = jnp.asarray(of_geoms)
        of_pairs = (values[first] + values[second]) / 2
        return of_pairs[points.pair if self.detector.culls else self.detector.pair_of_point()]
