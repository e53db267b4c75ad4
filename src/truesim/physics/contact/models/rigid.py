"""Rigid contact with Coulomb friction: one complementarity problem per time step.

Contacts, joint limits, joint friction and equality constraints form one complementarity problem at the velocity level
(Stewart and Trinkle 1996; Anitescu and Potra 1997). A contact at distance d may close at up to `d / timestep`, so that
bodies stop at the surface; bodies that stay apart exert no force. Overlap is reduced by moving bodies apart without
giving them velocity, so that constraints never add energy.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.tracing import is_traced
from truesim.core.typing import Array, Bool, Float
from truesim.math.interior_point import central_path
from truesim.math.interior_point.central_path import ConeProblem, Impulses
from truesim.math.interior_point.cones import AbstractCone, EllipticCone, PolyhedralCone
from truesim.math.interior_point.solver import ConeSolution, least_barrier
from truesim.physics.contact.base import (
    GEOMETRY,
    AbstractImpulseContact,
    ContactReport,
    EffectiveMass,
    Response,
    UnconstrainedStep,
    apply_tap,
)
from truesim.physics.contact.closure import EQUALITY_ROWS, close_chains, closure
from truesim.physics.contact.constraints import (
    ContactConstraints,
    contact_constraints,
    joint_friction_constraints,
    joint_friction_dofs,
    limit_constraints,
)
from truesim.physics.contact.detection import ContactPoints, Detector
from truesim.physics.contact.effective_mass import effective_masses
from truesim.physics.contact.models.rigid_solution import solve
from truesim.physics.contact.overlap import shift_velocity
from truesim.physics.dynamics import carriers, inertia_forces, integrate, mass_matrix
from truesim.physics.model.kinds import BALL, FREE
from truesim.physics.model.model import Model
from truesim.physics.model.structure import structure_of

MIN_SMOOTHING = 2e-9
"""Smoothing at which contact is rigid up to the precision of float64."""
ENERGY_ROUNDING = 1e-12
"""Relative energy gain that counts as rounding."""
MIN_SPEED2 = 1e-12
"""Smallest typical squared speed of a constraint [m^2/s^2 or rad^2/s^2]."""


class RigidContact(AbstractImpulseContact):
    """Rigid contact, solved by an interior-point method, with exact derivatives of the solution."""

    ports: ClassVar[tuple[Port, ...]] = GEOMETRY
    smoothing: Float[Array, ""]
    """Complementary products at the solution, relative to the energy of a constraint; larger is smoother."""
    bounce_speed: Float[Array, ""]
    """Approach speed, beyond two time steps of free fall, above which impacts bounce [m/s]."""
    recovery: Float[Array, ""]
    """Fraction of an overlap that is removed in one step."""
    detector: Detector
    cone: AbstractCone
    friction: tuple[int, ...] = eqx.field(static=True)
    """Joints with friction."""
    limits: tuple[int, ...] = eqx.field(static=True)
    """Joints with limits."""
    has_stiction: bool = eqx.field(static=True)
    """True if the bound of joint friction includes stiction, evaluated at the start of each step."""
    bounces: bool = eqx.field(static=True)
    """True if restitution is simulated."""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        smoothing: float = MIN_SMOOTHING,
        cone: AbstractCone | None = None,
        capacity: int | None = None,
        bounces: bool | None = None,
    ) -> "RigidContact":
        """Contacts of all pairs that the file lets touch.

        Args:
            model: The robot.
            smoothing: Larger gives smoother gradients through contact events, smaller gives harder contact.
            cone: Friction cone; `EllipticCone()` by default.
            capacity: Largest number of contact points; by default all possible ones.
            bounces: Whether restitution is simulated; by default if any geom has some.
        """
        cone = EllipticCone() if cone is None else cone
        detector = Detector.of(model, capacity)
        _check(model, detector, cone)
        defaults, joints = model.defaults, model.joints
        structure = structure_of(model)
        if structure.load_friction:
            raise TruesimError("A joint's load_friction is positive: rigid contact has no friction under load.")
        friction = sorted({*structure.frictionloss, *structure.stiction})
        limits = [j for j, limited in enumerate(joints.limited) if limited and joints.kinds[j] != FREE]
        return cls(
            smoothing=jnp.asarray(smoothing),
            bounce_speed=jnp.asarray(0.01),
            recovery=jnp.asarray(0.2),
            detector=detector,
            cone=cone,
            friction=tuple(friction) if defaults.joint_friction else (),
            limits=tuple(limits) if defaults.limits else (),
            has_stiction=defaults.joint_friction and bool(structure.stiction),
            bounces=structure.restitution if bounces is None else bounces,
        )

    def effective_mass(self, model: Model) -> EffectiveMass:
        """Effective mass of pairs, degrees of freedom and equalities in the reference configuration."""
        return effective_masses(model, self.detector)

    def respond(
        self, model: Model, effective_mass: EffectiveMass, step: UnconstrainedStep, tap: Tap = NO_TAP
    ) -> Response:
        """Velocity that obeys all constraints, and the configuration to which it leads."""
        points = apply_tap(self.detector(model, step.q, (step.v, step.timestep)), tap)
        contacts = contact_constraints(model, step.q, self.detector, points)
        limits = limit_constraints(model, self.limits, step.q)
        targets = _targets(self, jnp.concatenate([points.distance, limits.distance]), step.timestep)
        problem = _problem(self, model, effective_mass, (points, contacts, limits), step)
        problem = problem._replace(offset=targets.offset)
        subset = _uncoupled_constraints(model, self.detector, len(problem.offset))
        inputs = model, step.q, step.added_inertia, problem
        solution = solve(inputs, self.cone, subset, step.warm_start, jnp.zeros((), bool))
        if self.bounces:
            solution, targets = self._bounce(inputs, step, (points, contacts), solution, targets)
        v = solution.point.velocity
        loads = solution.point.normal / solution.point.slack
        rate = step.rate + v - step.v + shift_velocity((model, step.q, problem.normal, loads, targets.shift))
        q = integrate(model, step.q, step.timestep * rate)
        if model.equalities.names:
            q = close_chains(model, q, mass_matrix(model, step.q), effective_mass.equalities)
        impulse = central_path.impulse(problem, self.cone, solution.point)
        kept = None if step.warm_start is None else central_path.impulses(solution.point)
        return Response(v, q, impulse, kept, self._report(points, contacts, solution, step.timestep))

    def initial_impulses(self, model: Model) -> Impulses | None:
        """Zeros, which mean a cold start; None where culling gives contact points no fixed order."""
        if self.detector.culls:
            return None
        d = max((pair.dimension for pair in self.detector.pairs), default=1) - 1
        points, equalities = self.detector.capacity, sum(EQUALITY_ROWS[kind] for kind in model.equalities.kinds)
        limits = sum(1 if model.joints.kinds[j] == BALL else 2 for j in self.limits)
        return Impulses(
            normal=jnp.zeros(points + limits),
            friction=jnp.zeros((points if d else 0, self.cone.coordinates(d or 2))),
            joint_friction=jnp.zeros((len(joint_friction_dofs(model, self.friction)), 1)),
            equality=jnp.zeros(equalities),
        )

    def _bounce(
        self,
        inputs: tuple,
        step: UnconstrainedStep,
        contacts: tuple,
        plastic: ConeSolution,
        targets: "UnilateralTargets",
    ) -> tuple[ConeSolution, "UnilateralTargets"]:
        """Solution with restitution where any impact bounces, and its targets."""
        (model, _, _, problem), (points, constraints) = inputs, contacts
        after, hits = _elastic_targets(self, model, points, targets, -constraints.normal @ step.v, step.timestep)
        subset = _uncoupled_constraints(model, self.detector, len(problem.offset))
        warm_start = plastic.point.velocity, central_path.impulses(plastic.point)
        bouncing = (*inputs[:3], problem._replace(offset=after.offset))
        elastic = solve(bouncing, self.cone, subset, warm_start, ~hits)
        return jax.tree.map(
            lambda x, y: jnp.where(hits, x, y), _without_energy_gain(model, step, plastic, elastic), plastic
        ), after

    def _report(
        self, points: ContactPoints, constraints: ContactConstraints, solution: ConeSolution, timestep: Array
    ) -> ContactReport:
        count, point = points.distance.shape[0], solution.point
        friction: Array = jnp.zeros((count, 2))
        if constraints.friction.shape[1]:
            friction = (self.cone.force(point.friction) * constraints.friction)[:, :2]
        return ContactReport(
            position=points.position,
            normal=points.normal,
            distance=points.distance,
            force=jnp.concatenate([point.normal[:count, None], friction], axis=1) / timestep,
            overflow=points.overflow,
            iterations=solution.iterations,
            converged=solution.converged,
        )


def _check(model: Model, detector: Detector, cone: AbstractCone) -> None:
    """Refuse friction that the cone cannot represent, and friction that is not a non-negative number."""
    turning = [pair for pair in detector.pairs if pair.dimension > 3]
    if turning and isinstance(cone, PolyhedralCone):
        names = " and ".join(model.geoms.names[g] for g in turning[0].geoms)
        raise TruesimError(f"{names} have torsional friction (condim 4 or 6), which needs the EllipticCone.")
    coefficients = [x for x in (model.geoms.friction, model.contacts.friction) if not is_traced(x)]
    if not all(np.all(np.asarray(x) >= 0) for x in coefficients):
        raise TruesimError("Friction of a geom or contact pair is negative or not a number.")


class UnilateralTargets(NamedTuple):
    """Targets of the motion along unilateral constraints."""

    offset: Float[Array, " rows"]
    """Lower bound of the velocity, negated [m/s or rad/s]."""
    shift: Float[Array, " rows"]
    """Rate of the position beyond the velocity [m/s or rad/s]."""


def _targets(contact: RigidContact, distance: Array, timestep: Array) -> UnilateralTargets:
    """Targets without restitution: gaps may close; part of an overlap is removed in the position, without energy."""
    apart, overlap = jnp.maximum(distance, 0.0), jnp.maximum(-distance, 0.0)
    return UnilateralTargets(apart / timestep, contact.recovery * overlap / timestep)


def _elastic_targets(
    contact: RigidContact,
    model: Model,
    points: ContactPoints,
    targets: UnilateralTargets,
    approach: Array,
    dt: Array,
) -> tuple[UnilateralTargets, Bool[Array, ""]]:
    """Targets with restitution, and whether any contact bounces.

    An impact at distance d and approach speed a happens `d / a` into the step: the step ends at the height
    `e (a dt - d)`, with the velocity `e a`.
    """
    e, fall, count = points.restitution, dt * jnp.sqrt(model.gravity @ model.gravity), approach.shape[0]
    hits = (approach > contact.bounce_speed + 2 * fall) & (points.distance < approach * dt) & (e > 0)
    shift = jnp.where(points.distance > 0, -(1 + e) * points.distance / dt, targets.shift[:count])
    offset, shift = (
        jnp.where(hits, -e * approach, targets.offset[:count]),
        jnp.where(hits, shift, targets.shift[:count]),
    )
    offset, shift = jnp.concatenate([offset, targets.offset[count:]]), jnp.concatenate([shift, targets.shift[count:]])
    return UnilateralTargets(offset, shift), jnp.any(hits)


def _problem(
    contact: RigidContact, model: Model, effective_mass: EffectiveMass, constraints: tuple, step: UnconstrainedStep
) -> ConeProblem:
    """Problem of a step with all constraints; `solve` adds the mass matrix."""
    points, contacts, limits = constraints
    v, dt = step.v, step.timestep
    friction_dofs = joint_friction_dofs(model, contact.friction)
    friction = joint_friction_constraints(model, friction_dofs, step.start_v if contact.has_stiction else None)
    equality = closure(model, step.q).J
    fall2 = dt**2 * (model.gravity @ model.gravity) + MIN_SPEED2
    tangent = contacts.friction[:, :, None] * contacts.tangent
    slips = jnp.sum((contacts.normal @ v) ** 2) + jnp.sum((tangent @ v) ** 2)
    contact_speed2 = fall2 + slips / max(points.distance.shape[0], 1)
    joint_speed2 = fall2 + (v @ v) / max(model.nv, 1)
    mass = effective_mass.pairs[points.pair if contact.detector.culls else contact.detector.pair_of_point()]
    limit_speed2 = joint_speed2 + (limits.J @ v) ** 2
    return ConeProblem(
        inertia=jnp.zeros((0, 0)),
        free=v,
        normal=jnp.concatenate([contacts.normal, limits.J]),
        offset=jnp.concatenate([points.distance, limits.distance]) / dt,
        tangent=tangent if tangent.shape[1] else jnp.zeros((0, 2, model.nv)),
        joint_friction=dt * friction,
        equality=equality,
        target=jnp.zeros(equality.shape[0]),
        mass=jnp.concatenate([mass, effective_mass.dofs[limits.dof]]),
        speed2=jnp.concatenate([jnp.full(mass.shape, contact_speed2), limit_speed2]),
        joint_friction_energy=effective_mass.dofs[friction_dofs] * joint_speed2,
        equality_mass=effective_mass.equalities,
        equality_speed=jnp.full(equality.shape[0], jnp.sqrt(contact_speed2 + joint_speed2)),
        barrier=jnp.maximum(jnp.asarray(contact.smoothing), least_barrier(v.dtype)),
    )


def _uncoupled_constraints(model: Model, detector: Detector, count: int) -> tuple[int, ...]:
    """Unilateral constraints that couple no two moving bodies: contacts with the world, and limits."""
    pairs = [[carriers(model, model.geoms.bodies[g]).any() for g in pair.geoms] for pair in detector.pairs]
    coupling = np.zeros(count, dtype=bool)
    of_pairs = np.all(np.array(pairs, dtype=bool).reshape(-1, 2), axis=1)
    coupling[: detector.capacity] = True if detector.culls else of_pairs[detector.pair_of_point()]
    return tuple(int(row) for row in np.flatnonzero(~coupling))


def _without_energy_gain(
    model: Model, step: UnconstrainedStep, plastic: ConeSolution, elastic: ConeSolution
) -> ConeSolution:
    """Elastic solution, blended with the plastic one where it would add energy to the motion without contact.

    On the line between them, v = p + t (e - p), all constraints hold and impulses stay in their cones; t solves
    `v^T M v = free^T M free`.
    """
    p, d = plastic.point.velocity, elastic.point.velocity - plastic.point.velocity
    M_p, M_d, M_free = (_momentum(model, step, x) for x in (p, d, step.v))
    a, b, c = d @ M_d, d @ M_p, jnp.minimum(p @ M_p - step.v @ M_free, 0.0)
    gains = a + 2 * b + c > ENERGY_ROUNDING * (step.v @ M_free)
    root = jnp.sqrt(jnp.where(gains, jnp.maximum(b**2 - a * c, 0.0), 1.0))
    part = jnp.where(gains, (root - b) / jnp.where(gains, a, 1.0), 1.0)
    point = jax.tree.map(lambda x, y: x + part * (y - x), plastic.point, elastic.point)
    iterations, converged = plastic.iterations + elastic.iterations, plastic.converged & elastic.converged
    return ConeSolution(point, iterations, converged)


def _momentum(model: Model, step: UnconstrainedStep, v: Array) -> Float[Array, " nv"]:
    """Generalized momentum `M v`, with the inertia that the integrator added."""
    momentum = inertia_forces(model, step.q, v)
    return momentum if step.added_inertia is None else momentum + step.added_inertia * v
