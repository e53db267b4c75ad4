"""Rigid contact: velocities that let nothing overlap, with Coulomb friction, in one problem per step.

Contacts, limits, dry friction and closed chains are rows of one complementarity problem at the level of velocities
(Stewart and Trinkle 1996; Anitescu and Potra 1997). A contact at distance d may close at up to `d / timestep`, so that
bodies stop at the surface and never pass it; bodies apart do not feel each other. Overlap is undone by moving bodies
apart without giving them velocity, so that constraints never add energy.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.contact.base import GEOMETRY, AbstractContact, ContactReport, Motion, Response, Weights, tapped
from truesim.contact.closure import EQUALITY_ROWS, closed, closure
from truesim.contact.detection import ContactPoints, Detector
from truesim.contact.rows import ContactRows, contact_rows, dry_rows, limit_rows
from truesim.contact.weights import reference_weights
from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Bool, Float
from truesim.dynamics import carriers, inertia_forces, integrate, mass_matrix
from truesim.model.kinds import BALL, FREE
from truesim.model.model import Model
from truesim.numerics import central_path, dense, few_rows
from truesim.numerics.central_path import Impulses, Problem
from truesim.numerics.cones import AbstractCone, EllipticCone, PolyhedralCone
from truesim.numerics.interior_point import Before, Solution

HARDEST = 2e-9
"""Barrier at which contact is rigid up to the precision of float64."""
ROUNDING = 1e-12
"""Part of the energy below which a gain is rounding."""
SLOWEST = 1e-12
"""Squared speed below which all rows are at rest [m^2/s^2 or rad^2/s^2]."""


class ContactComplementarity(AbstractContact):
    """Rigid contact with an interior-point solver and exact derivatives of its solution."""

    ports: ClassVar[tuple[Port, ...]] = GEOMETRY
    barrier: Float[Array, ""]
    """Energy of a constraint at the solution, in parts of what it deals with: small is hard, large is smooth."""
    bounce_speed: Float[Array, ""]
    """Impacts faster than this plus two time steps of free fall bounce [m/s]."""
    recovery: Float[Array, ""]
    """Part of an overlap that is undone in a step."""
    detector: Detector
    cone: AbstractCone
    friction: tuple[int, ...] = eqx.field(static=True)
    """Joints with dry friction."""
    limits: tuple[int, ...] = eqx.field(static=True)
    """Joints with limits."""
    joints: bool = eqx.field(static=True)
    """Whether limits and dry friction of the joints are part of the problem."""
    bounces: bool = eqx.field(static=True)
    """Whether restitution is simulated."""

    @classmethod
    def of(
        cls,
        model: Model,
        *,
        barrier: float = HARDEST,
        cone: AbstractCone | None = None,
        capacity: int | None = None,
        joints: bool = True,
        bounces: bool | None = None,
    ) -> "ContactComplementarity":
        """Contacts of all pairs that the file lets touch.

        Args:
            model: The robot.
            barrier: Larger gives smooth gradients through contact events, smaller gives hard contact.
            cone: `EllipticCone()` unless another is given.
            capacity: Largest number of contact points; room for all unless given.
            joints: Whether limits and dry friction of the joints are part of the problem.
            bounces: Whether restitution is simulated; if any geom has some, unless given.
        """
        cone = EllipticCone() if cone is None else cone
        detector = Detector.of(model, capacity)
        _check(model, detector, cone)
        options, kinds = model.options, model.joints.kinds
        rough = [j for j, loss in enumerate(model.joints.frictionloss) if loss > 0]
        stopped = [j for j, limited in enumerate(model.joints.limited) if limited and kinds[j] != FREE]
        elastic = np.any(model.geoms.restitution) or np.any(model.contacts.restitution)
        return cls(
            barrier=jnp.asarray(barrier),
            bounce_speed=jnp.asarray(0.01),
            recovery=jnp.asarray(0.2),
            detector=detector,
            cone=cone,
            friction=tuple(rough) if joints and options.dry_friction else (),
            limits=tuple(stopped) if joints and options.limits else (),
            joints=joints,
            bounces=bool(elastic) if bounces is None else bounces,
        )

    @property
    def treats_joints(self) -> bool:
        """If it was asked to."""
        return self.joints

    @property
    def is_smooth(self) -> bool:
        """Impulses are found with the step."""
        return False

    def weights(self, model: Model) -> Weights:
        """Sizes of inertia."""
        return reference_weights(model, self.detector)

    def force(self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap = NO_TAP) -> None:
        """No force depends on the state alone."""

    def respond(self, model: Model, weights: Weights | None, motion: Motion, tap: Tap = NO_TAP) -> Response:
        """The velocity that obeys all constraints, and the configuration that it leads to."""
        weights = self.weights(model) if weights is None else weights
        points = tapped(self.detector(model, motion.q, (motion.v, motion.timestep)), tap)
        rows = contact_rows(model, motion.q, self.detector, points)
        limits = limit_rows(model, self.limits, motion.q)
        aims = _aims(self, jnp.concatenate([points.distance, limits.distance]), motion.timestep)
        problem = _problem(self, model, weights, (points, rows, limits), motion)._replace(offset=aims.offset)
        few = _lone_rows(model, self.detector, len(problem.offset))
        inputs = model, motion.q, motion.added_inertia, problem
        solution = _solved(inputs, self.cone, few, motion.before, jnp.zeros((), bool))
        if self.bounces:
            solution, aims = self._bounced(inputs, motion, (points, rows), solution, aims)
        v = solution.point.velocity
        loads = solution.point.normal / solution.point.slack
        rate = motion.rate + v - motion.v + _shifted((model, motion.q, problem.normal, loads, aims.shift))
        q = integrate(model, motion.q, motion.timestep * rate)
        if model.equalities.names:
            q = closed(model, q, mass_matrix(model, motion.q), weights.equalities)
        impulse = central_path.impulse(problem, self.cone, solution.point)
        kept = None if motion.before is None else central_path.impulses(solution.point)
        return Response(v, q, impulse, kept, self._report(points, rows, solution, motion.timestep))

    def no_impulses(self, model: Model) -> Impulses | None:
        """Zeros, which are not known impulses; None where culling gives rows no fixed place."""
        if self.detector.culls:
            return None
        d = max((pair.dimension for pair in self.detector.pairs), default=1) - 1
        points, equalities = self.detector.capacity, sum(EQUALITY_ROWS[kind] for kind in model.equalities.kinds)
        limits = sum(1 if model.joints.kinds[j] == BALL else 2 for j in self.limits)
        return Impulses(
            normal=jnp.zeros(points + limits),
            friction=jnp.zeros((points if d else 0, self.cone.coordinates(d or 2))),
            dry=jnp.zeros((len(dry_rows(model, self.friction)[1]), 1)),
            equal=jnp.zeros(equalities),
        )

    def _bounced(
        self, inputs: tuple, motion: Motion, contacts: tuple, plastic: Solution, aims: "Aims"
    ) -> tuple[Solution, "Aims"]:
        """The solution with restitution, where any impact bounces."""
        (model, _, _, problem), (points, rows) = inputs, contacts
        after, hits = _bouncing(self, model, points, aims, -rows.normal @ motion.v, motion.timestep)
        few = _lone_rows(model, self.detector, len(problem.offset))
        before = plastic.point.velocity, central_path.impulses(plastic.point)
        bouncing = (*inputs[:3], problem._replace(offset=after.offset))
        elastic = _solved(bouncing, self.cone, few, before, ~hits)
        return jax.tree.map(
            lambda x, y: jnp.where(hits, x, y), _passive(model, motion, plastic, elastic), plastic
        ), after

    def _report(self, points: ContactPoints, rows: ContactRows, solution: Solution, timestep: Array) -> ContactReport:
        count, point = points.distance.shape[0], solution.point
        friction = jnp.zeros((count, 2))
        if rows.friction.shape[1]:
            friction = (self.cone.force(point.friction) * rows.friction)[:, :2]
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
    turning = [pair for pair in detector.pairs if pair.dimension > 3]
    if turning and isinstance(cone, PolyhedralCone):
        names = " and ".join(model.geoms.names[g] for g in turning[0].geoms)
        raise TruesimError(f"{names} have torsional friction (condim 4 or 6), which needs the EllipticCone.")
    if not np.all(np.asarray(model.geoms.friction) >= 0) or not np.all(np.asarray(model.contacts.friction) >= 0):
        raise TruesimError("Friction of a geom or contact pair is negative or not a number.")


class Aims(NamedTuple):
    """What is asked of the motion along one-sided rows."""

    offset: Float[Array, "rows"]
    """The velocity is at least minus this [m/s or rad/s]."""
    shift: Float[Array, "rows"]
    """What the position moves beyond its velocity [m/s or rad/s]."""


def _aims(contact: ContactComplementarity, distance: Array, timestep: Array) -> Aims:
    """Bodies apart may close in; of an overlap, a part is undone in the position alone, which takes no energy."""
    apart, overlap = jnp.maximum(distance, 0.0), jnp.maximum(-distance, 0.0)
    return Aims(apart / timestep, contact.recovery * overlap / timestep)


def _bouncing(
    contact: ContactComplementarity, model: Model, points: ContactPoints, aims: Aims, approach: Array, dt: Array
) -> tuple[Aims, Bool[Array, ""]]:
    """Impacts leave at restitution times the speed of approach; and whether there are any.

    An impact at distance d and speed a happens `d / a` into the step: it ends at the height `e (a dt - d)` although
    it leaves with the velocity `e a`.
    """
    e, fall, count = points.restitution, dt * jnp.sqrt(model.gravity @ model.gravity), approach.shape[0]
    hits = (approach > contact.bounce_speed + 2 * fall) & (points.distance < approach * dt) & (e > 0)
    shift = jnp.where(points.distance > 0, -(1 + e) * points.distance / dt, aims.shift[:count])
    offset, shift = jnp.where(hits, -e * approach, aims.offset[:count]), jnp.where(hits, shift, aims.shift[:count])
    offset, shift = jnp.concatenate([offset, aims.offset[count:]]), jnp.concatenate([shift, aims.shift[count:]])
    return Aims(offset, shift), jnp.any(hits)


def _problem(
    contact: ContactComplementarity, model: Model, weights: Weights, contacts: tuple, motion: Motion
) -> Problem:
    """All constraints of a step; the mass matrix is left to `_solved`."""
    points, rows, limits = contacts
    v, dt = motion.v, motion.timestep
    dry, dry_dofs = dry_rows(model, contact.friction)
    equal = closure(model, motion.q).J
    fall2 = dt**2 * (model.gravity @ model.gravity) + SLOWEST
    tangent = rows.friction[:, :, None] * rows.tangent
    slips = jnp.sum((rows.normal @ v) ** 2) + jnp.sum((tangent @ v) ** 2)
    contact_speed2 = fall2 + slips / max(points.distance.shape[0], 1)
    joint_speed2 = fall2 + (v @ v) / max(model.nv, 1)
    mass = weights.pairs[points.pair if contact.detector.culls else contact.detector.pair_of_point()]
    limit_speed2 = joint_speed2 + (limits.J @ v) ** 2
    return Problem(
        inertia=jnp.zeros((0, 0)),
        free=v,
        normal=jnp.concatenate([rows.normal, limits.J]),
        offset=jnp.concatenate([points.distance, limits.distance]) / dt,
        tangent=tangent if tangent.shape[1] else jnp.zeros((0, 2, model.nv)),
        dry=dt * dry,
        equal=equal,
        target=jnp.zeros(equal.shape[0]),
        mass=jnp.concatenate([mass, weights.dofs[limits.dof]]),
        speed2=jnp.concatenate([jnp.full(mass.shape, contact_speed2), limit_speed2]),
        dry_energy=weights.dofs[dry_dofs] * joint_speed2,
        equal_mass=weights.equalities,
        equal_speed=jnp.full(equal.shape[0], jnp.sqrt(contact_speed2 + joint_speed2)),
        barrier=contact.barrier,
    )


def _lone_rows(model: Model, detector: Detector, count: int) -> tuple[int, ...]:
    """One-sided rows that join no two bodies that move by themselves: contacts with the world, and limits."""
    pairs = [[carriers(model, model.geoms.bodies[g]).any() for g in pair.geoms] for pair in detector.pairs]
    joining = np.zeros(count, dtype=bool)
    of_pairs = np.all(np.array(pairs, dtype=bool).reshape(-1, 2), axis=1)
    joining[: detector.capacity] = True if detector.culls else of_pairs[detector.pair_of_point()]
    return tuple(int(row) for row in np.flatnonzero(~joining))


def _inertia(model: Model, q: Array, added: Array | None) -> Float[Array, "nv nv"]:
    M = mass_matrix(model, q)
    return M if added is None else M + jnp.diag(added)


@eqx.filter_custom_jvp
def _solved(
    inputs: tuple, cone: AbstractCone, few: tuple[int, ...], before: Before | None, skip: Bool[Array, ""]
) -> Solution:
    """The solution of a problem with the mass matrix of a model; see `few_rows.search`."""
    model, q, added, problem = inputs
    problem = problem._replace(inertia=_inertia(model, q, added))
    return few_rows.search(problem, cone, np.array(few, dtype=int), before, skip)


@_solved.def_jvp
def _solved_jvp(primals: tuple, tangents: tuple) -> tuple[Solution, Solution]:
    """The implicit function theorem: one Newton step on the residuals' derivatives at the solution."""
    (inputs, cone, few, before, skip), (perturbations, *_) = primals, tangents
    solution = _solved(inputs, cone, few, before, skip)
    point = solution.point
    model, q, added, problem = inputs

    def residuals(inputs: tuple) -> central_path.Point:
        model, q, added, problem = inputs
        gained = point.velocity - problem.free
        momentum = inertia_forces(model, q, gained)
        momentum = momentum if added is None else momentum + added * gained
        return central_path.residuals(problem, cone, point, problem.barrier, momentum)

    at_solution, changed = eqx.filter_jvp(residuals, (inputs,), (perturbations,))
    changed = jax.tree.map(lambda r, dr: jnp.zeros_like(r) if dr is None else dr, at_solution, changed)
    step = central_path.newton(problem._replace(inertia=_inertia(model, q, added)), cone, point)
    return solution, Solution(step(changed), None, None)


def _passive(model: Model, motion: Motion, plastic: Solution, elastic: Solution) -> Solution:
    """The elastic solution, or as much of it as does not add energy to the motion without contact.

    Between them, v = p + t (e - p), all constraints hold and impulses stay in their cones; t solves
    `v^T M v = free^T M free`.
    """
    p, d = plastic.point.velocity, elastic.point.velocity - plastic.point.velocity
    M_p, M_d, M_free = (_momentum(model, motion, x) for x in (p, d, motion.v))
    a, b, c = d @ M_d, d @ M_p, jnp.minimum(p @ M_p - motion.v @ M_free, 0.0)
    gains = a + 2 * b + c > ROUNDING * (motion.v @ M_free)
    root = jnp.sqrt(jnp.where(gains, jnp.maximum(b**2 - a * c, 0.0), 1.0))
    part = jnp.where(gains, (root - b) / jnp.where(gains, a, 1.0), 1.0)
    point = jax.tree.map(lambda x, y: x + part * (y - x), plastic.point, elastic.point)
    iterations, converged = plastic.iterations + elastic.iterations, plastic.converged & elastic.converged
    return Solution(point, iterations, converged)


def _momentum(model: Model, motion: Motion, v: Array) -> Float[Array, "nv"]:
    momentum = inertia_forces(model, motion.q, v)
    return momentum if motion.added_inertia is None else momentum + motion.added_inertia * v


@eqx.filter_custom_jvp
def _shifted(inputs: tuple) -> Float[Array, "nv"]:
    """The smallest motion, in the metric of the mass matrix, that shifts loaded rows as asked: `N w = shift`."""
    _, _, normal, loads, shift = inputs
    return _shift_solver(inputs)(normal.T @ (loads * shift))


@_shifted.def_jvp
def _shifted_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Differentiates the balance `M w = N^T loads (shift - N w)` at fixed w."""
    (inputs,), (changes,) = primals, tangents
    w = _shifted(inputs)

    def balance(inputs: tuple) -> Array:
        model, q, normal, loads, shift = inputs
        return normal.T @ (loads * (shift - normal @ w)) - inertia_forces(model, q, w)

    _, unbalanced = eqx.filter_jvp(balance, (inputs,), (changes,))
    return w, _shift_solver(inputs)(unbalanced)


def _shift_solver(inputs: tuple) -> Callable[[Array], Array]:
    model, q, normal, loads, _ = inputs
    factors = dense.factor(mass_matrix(model, q) + normal.T @ (loads[:, None] * normal))
    return lambda right: dense.substitute(factors, right)
