"""MuJoCo's constraint model: contact, equality constraints and tendons as soft constraints on the acceleration."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tap import Port
from truesim.core.tracing import is_traced
from truesim.core.typing import Array, Float
from truesim.math.soft_constraints.cones import Cones
from truesim.math.soft_constraints.newton import NewtonOptions
from truesim.math.soft_constraints.problem import ConstraintNumbers, Constraints
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.physics.constraints.collision import detect
from truesim.physics.constraints.contacts import (
    ContactSlots,
    contact_rows,
    elliptic_cones,
    pyramid_rows,
)
from truesim.physics.constraints.equalities import equality_rows
from truesim.physics.constraints.joints import tendon_friction_rows, tendon_limit_rows
from truesim.physics.constraints.solve import constrained_motion
from truesim.physics.constraints.weights import InverseWeights, inverse_weights
from truesim.physics.contact.base import AbstractConstraintContact, ConstrainedStep, ContactReport
from truesim.physics.contact.detection import Detector
from truesim.physics.model.model import Model

MAX_SLOTS = 64
"""Contact points that a simulation has room for unless told otherwise; more points make every step slower."""
POINTS_OF_PAIR = 8
"""Largest number of contact points of two geoms."""


class MujocoContact(AbstractConstraintContact):
    """Contact, equality constraints and tendons as MuJoCo simulates them, with the file's options.

    Contacts, limits, friction, equalities and tendons are one convex problem, solved by MuJoCo's own iterations.
    """

    ports: ClassVar[tuple[Port, ...]] = ()
    detector: Detector
    impratio: Float[Array, ""]
    """Stiffness of friction relative to that of the normal force, for elliptic cones."""
    slots: int = eqx.field(static=True)
    """Number of contact points that there is room for."""
    elliptic: bool = eqx.field(static=True)
    """True if friction cones are elliptic, False if pyramidal."""
    equalities: bool = eqx.field(static=True)
    """True if equality constraints act."""
    friction: tuple[int, ...] = eqx.field(static=True)
    """Tendons with friction."""
    limits: tuple[int, ...] = eqx.field(static=True)
    """Tendons with limits."""
    safe_reference: bool = eqx.field(static=True)
    """True if time constants are kept above twice the time step."""
    warm_start: bool = eqx.field(static=True)
    """True if the solver starts from the acceleration of the step before."""
    solver: NewtonOptions = eqx.field(static=True)
    """Stopping rules of the solver."""

    @classmethod
    def of(cls, model: Model, *, capacity: int | None = None, solver: NewtonOptions | None = None) -> "MujocoContact":
        """Constraint model of the robot's file.

        Args:
            model: The robot.
            capacity: Number of contact points that there is room for; by default 64, or fewer for few geoms.
            solver: Stopping rules; the file's by default.
        """
        if capacity is not None and capacity < 1:
            raise TruesimError(f"The capacity for contacts is {capacity}; it must be at least 1.")
        defaults, tendons = model.defaults, model.tendons
        friction = _rough_tendons(model) if defaults.joint_friction else ()
        return cls(
            detector=Detector((), 0),
            impratio=jnp.asarray(defaults.impratio),
            slots=_slots(model) if capacity is None else capacity,
            elliptic=defaults.elliptic,
            equalities=defaults.equality and bool(model.equalities.names),
            friction=friction,
            limits=tuple(k for k, limited in enumerate(tendons.limited) if limited and defaults.limits),
            safe_reference=defaults.safe_reference,
            warm_start=defaults.warm_start,
            solver=_file_options(model) if solver is None else solver,
        )

    def weights(self, model: Model) -> InverseWeights:
        """Inverse weights of all constraints, a function of the parameters alone."""
        return inverse_weights(model)

    def constraints(
        self,
        model: Model,
        weights: InverseWeights,
        state: tuple[Float[Array, " nq"], Float[Array, " nv"]],
        timestep: Float[Array, ""],
        joints: SoftConstraints | None = None,
    ) -> tuple[Constraints, ContactSlots]:
        """All constraints at a state, and the contact points among them."""
        q, v = state
        shortest = 2 * timestep if self.safe_reference else jnp.zeros(())
        parts = [] if joints is None else [joints]
        if self.equalities:
            parts.append(equality_rows(model, state, weights, shortest))
        if self.friction:
            parts.append(tendon_friction_rows(model, np.array(self.friction), v, weights.tendons, shortest))
        if self.limits:
            parts.append(tendon_limit_rows(model, np.array(self.limits), state, weights.tendons, shortest))
        slots, cones = _no_slots(), Cones.none(model.nv)
        if self.slots:
            slots = detect(model, q, self.slots)
            rows = contact_rows(model, q, slots, weights, shortest)
            if self.elliptic:
                cones = elliptic_cones(rows, v, self.impratio)
            else:
                parts.append(pyramid_rows(rows, v, self.impratio))
        if not parts:
            parts.append(_no_rows(model.nv))
        return Constraints(SoftConstraints(*(jnp.concatenate(x) for x in zip(*parts, strict=True))), cones), slots

    def respond(
        self,
        model: Model,
        weights: InverseWeights,
        step: ConstrainedStep,
        joints: SoftConstraints | None = None,
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"], ContactReport]:
        """Generalized force of all constraints, the acceleration that they leave, and a report."""
        constraints, slots = self.constraints(model, weights, (step.q, step.v), step.timestep, joints)
        start = jnp.zeros(model.nv) if step.start is None or not self.warm_start else step.start
        motion = constrained_motion(model, (step.q, step.v), step.applied, constraints, start, self.solver)
        report = ContactReport(
            position=slots.position,
            normal=slots.frame[:, 0],
            distance=slots.distance,
            force=self._point_forces(model, slots, motion.forces),
            overflow=slots.overflow,
            iterations=motion.iterations,
            converged=motion.converged,
        )
        return motion.force, motion.a, report

    def _point_forces(self, model: Model, slots: ContactSlots, forces: ConstraintNumbers) -> Float[Array, "points 3"]:
        """Force along normal and tangents of each contact point [N]."""
        if self.elliptic or not self.slots:
            return forces.cones[:, :3]
        edges = forces.rows[-10 * self.slots :].reshape(self.slots, 5, 2)
        sliding = jnp.asarray(model.geoms.friction)[jnp.maximum(slots.geoms, 0), 0]
        friction = jnp.max(sliding, axis=1)
        along = friction[:, None] * (edges[:, :2, 0] - edges[:, :2, 1])
        return jnp.concatenate([jnp.sum(edges, axis=(1, 2))[:, None], along], axis=1)


def has_constraints(model: Model) -> bool:
    """True if the file has contacts, equality constraints, or tendons with limits or friction, and lets them act."""
    defaults, tendons = model.defaults, model.tendons
    tied = defaults.equality and bool(model.equalities.names)
    pulled = (defaults.limits and any(tendons.limited)) or (defaults.joint_friction and bool(_rough_tendons(model)))
    return tied or pulled or bool(_slots(model))


def _rough_tendons(model: Model) -> tuple[int, ...]:
    """Tendons with friction; all of them if values are traced."""
    loss = model.tendons.frictionloss
    if is_traced(loss):
        return tuple(range(len(model.tendons.names)))
    return tuple(int(k) for k in np.flatnonzero(np.asarray(loss) > 0))


def _slots(model: Model) -> int:
    """Number of contact points that there is room for by default."""
    if not model.defaults.contact:
        return 0
    geoms = model.geoms
    masks = [(a, b) for a, b in zip(geoms.contype, geoms.conaffinity, strict=True) if a or b]
    types, affinities = (int(np.bitwise_or.reduce([m[k] for m in masks])) if masks else 0 for k in (0, 1))
    count = len(masks) if types & affinities else 0
    pairs = count * (count - 1) // 2 + len(model.contacts.names)
    return min(MAX_SLOTS, POINTS_OF_PAIR * pairs)


def _file_options(model: Model) -> NewtonOptions:
    defaults = model.defaults
    return NewtonOptions(
        defaults.iterations, defaults.tolerance, defaults.line_search_iterations, defaults.line_search_tolerance
    )


def _no_rows(nv: int) -> SoftConstraints:
    none = jnp.zeros(0)
    return SoftConstraints(jnp.zeros((0, nv)), none, none, none, none)


def _no_slots() -> ContactSlots:
    integers = jnp.zeros(0, jnp.int32)
    empty, none = jnp.zeros((0, 3)), jnp.zeros(0)
    return ContactSlots(jnp.zeros((0, 2), jnp.int32), integers, none, empty, jnp.zeros((0, 3, 3)), integers.sum())
