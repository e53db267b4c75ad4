"""MuJoCo's law of dry friction and limits: soft constraints on the joints' accelerations, all solved together.

The Stribeck effect, which MuJoCo does not have, raises the bound of a joint's friction at low speed.

Equations: MuJoCo documentation, "Computation", sections on constraint parameters and the dual problem. A row has a
reference acceleration `-b velocity - k impedance (distance - margin)` and the regulariser
`R = (1 - impedance) / impedance * inverse weight`; its force is `-(J a - reference) / R` within the row's bounds.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Tap
from truesim.core.typing import Array, Float
from truesim.dynamics import bias_forces, inverse_dynamics, mass_matrix, reference_configuration
from truesim.model.kinds import BALL, FREE
from truesim.model.model import Model
from truesim.model.topology import Link
from truesim.numerics import dense, soft_constraints
from truesim.numerics.soft_constraints import Rows, Solution
from truesim.simulate.joint_laws.base import (
    FRICTION,
    LIMIT,
    AbstractJointLaw,
    ConstraintForce,
    JointConstants,
    dry_friction,
)
from truesim.spatial.rotation import normalise, quaternion_log

SMALLEST, LARGEST = 1e-4, 0.9999
"""MuJoCo's bounds of the impedance."""
NARROWEST = 1e-15
"""An impedance over a smaller width is constant in MuJoCo: the mean of its ends."""
DEFAULT_SOLREF = (0.02, 1.0)
"""What MuJoCo puts in the place of a pair with one positive number only."""


class MujocoJointLaw(AbstractJointLaw):
    """Dry friction and limits as MuJoCo solves them."""

    friction: tuple[int, ...] = eqx.field(static=True)
    """Joints with dry friction."""
    limits: tuple[int, ...] = eqx.field(static=True)
    """Joints with limits."""
    safe_reference: bool = eqx.field(static=True, default=True)
    """Whether time constants are kept above twice the time step."""

    @classmethod
    def of(cls, model: Model) -> "MujocoJointLaw":
        """Friction where a joint has some, limits where it is limited, as far as the file enables them."""
        joints, options = model.joints, model.options
        rough = np.flatnonzero(np.asarray(joints.frictionloss) + np.asarray(joints.stiction) > 0).tolist()
        stopped = [j for j, limited in enumerate(joints.limited) if limited and joints.kinds[j] != FREE]
        return cls(
            friction=tuple(rough) if options.dry_friction else (),
            limits=tuple(stopped) if options.limits else (),
            safe_reference=options.safe_reference,
        )

    @property
    def solved(self) -> tuple[str, ...]:
        """Friction and limits, where a joint has any."""
        return (FRICTION.name,) * bool(self.friction) + (LIMIT.name,) * bool(self.limits)

    def rough(self, model: Model) -> tuple[int, ...]:
        """Those of the joints with dry friction."""
        links = [link for link in model.topology.links if link.joint in self.friction]
        return tuple(d for link in links for d in range(link.v.start, link.v.stop))

    def force(
        self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap = NO_TAP
    ) -> Float[Array, "nv"]:
        """No force depends on the state alone, but for what a tap puts beside the constraints."""
        none = jnp.zeros(model.nv)
        if not tap.wants(FRICTION) and not tap.wants(LIMIT):
            return none
        return tap(FRICTION, none) + tap(LIMIT, none)

    def constants(self, model: Model) -> JointConstants | None:
        """The inverse weights, if any joint is constrained."""
        return JointConstants(inverse_weights(model)) if self.friction or self.limits else None

    def constraint(
        self,
        model: Model,
        constants: JointConstants | None,
        state: tuple,
        applied: Array,
        timestep: Array,
        tap: Tap = NO_TAP,
    ) -> ConstraintForce:
        """Force of friction and limits on each degree of freedom [N m or N]."""
        if constants is None:
            return ConstraintForce.none(model.nv)
        q, v = state
        weight = constants.inverse_weight
        least = 2 * timestep if self.safe_reference else jnp.zeros(())
        links = {link.joint: link for link in model.topology.links}
        parts = []
        if self.friction:
            bound = dry_friction(model, v, tap)
            parts.append(_friction_rows(model, [links[j] for j in self.friction], (v, bound), weight, least))
        if self.limits:
            parts.append(_limit_rows(model, [links[j] for j in self.limits], (q, v), weight, least))
        rows = Rows(*(jnp.concatenate(part) for part in zip(*parts, strict=True)))
        solution = _constrained((model, q, v, applied, rows))
        return ConstraintForce(rows.J.T @ solution.forces, solution.iterations, solution.converged)


@eqx.filter_custom_jvp
def _constrained(inputs: tuple) -> Solution:
    """Acceleration and forces of the rows: `M(q) a + c(q, v) = applied + J^T f(a)`."""
    model, q, v, applied, rows = inputs
    return soft_constraints.search(mass_matrix(model, q), applied - bias_forces(model, q, v), rows)


@_constrained.def_jvp
def _constrained_jvp(primals: tuple, tangents: tuple) -> tuple[Solution, Solution]:
    """Differentiates the balance at fixed a, as forward dynamics does: `da = (M + J^T D J)^-1 d balance`.

    It needs the derivative of inverse dynamics instead of that of the mass matrix.
    """
    (inputs,), (perturbations,) = primals, tangents
    model, q, _, _, rows = inputs
    solution = _constrained(inputs)
    a, sides = solution.a, solution.sides

    def balance(inputs: tuple) -> Array:
        model, q, v, applied, rows = inputs
        return applied - inverse_dynamics(model, q, v, a) + rows.J.T @ soft_constraints.forces_at(rows, a, sides)

    _, unbalanced = eqx.filter_jvp(balance, (inputs,), (perturbations,))
    da = dense.solve(soft_constraints.hessian(mass_matrix(model, q), rows, sides), unbalanced)
    _, df = eqx.filter_jvp(
        lambda rows, a: soft_constraints.forces_at(rows, a, sides), (rows, a), (perturbations[4], da)
    )
    return solution, Solution(da, df, None, None, None)


def inverse_weights(model: Model) -> Float[Array, "nv"]:
    """Diagonal of M^-1 in the reference configuration, averaged over the rotations (translations) of a joint."""
    inverse = dense.solve(mass_matrix(model, reference_configuration(model)), jnp.eye(model.nv))
    diagonal = jnp.diagonal(inverse)
    for link in model.topology.links:
        if link.kind in (BALL, FREE):
            mean = jnp.mean(diagonal[link.v].reshape(-1, 3), axis=1)
            diagonal = diagonal.at[link.v].set(jnp.repeat(mean, 3))
    return diagonal


def _friction_rows(model: Model, links: list[Link], moving: tuple[Array, Array], weight: Array, least: Array) -> Rows:
    """A row of dry friction for every degree of freedom of these joints, given all velocities and bounds."""
    v, bound = moving
    dofs = np.concatenate([np.arange(link.v_start, link.v.stop) for link in links])
    j = np.concatenate([np.full(link.kind.nv, link.joint) for link in links])
    solimp = model.joints.solimpfriction[j]
    _, b = _spring(model.joints.solreffriction[j], solimp, least)
    impedance = _impedance(solimp, jnp.zeros(len(dofs)))
    most = bound[dofs]
    return Rows(jnp.eye(model.nv)[dofs], -b * v[dofs], _stiffness(impedance, weight[dofs]), -most, most)


def _limit_rows(model: Model, links: list[Link], state: tuple[Array, Array], weight: Array, least: Array) -> Rows:
    """Two rows for every limited hinge or slide, one for every limited ball; those not reached have no stiffness."""
    q, v = state
    scalar = [link for link in links if link.kind != BALL]
    balls = [link for link in links if link.kind == BALL]
    distance, J = _distances(model, scalar, balls, q)
    rows = [*scalar, *scalar, *balls]
    j, dofs = np.array([link.joint for link in rows]), np.array([link.v_start for link in rows])
    margin, solimp = jnp.asarray(model.joints.margin)[j], model.joints.solimplimit[j]
    k, b = _spring(model.joints.solreflimit[j], solimp, least)
    impedance = _impedance(solimp, distance - margin)
    reference = -b * (J @ v) - k * impedance * (distance - margin)
    stiffness = jnp.where(distance < margin, _stiffness(impedance, weight[dofs]), 0.0)
    return Rows(J, reference, stiffness, jnp.zeros(len(j)), jnp.full(len(j), jnp.inf))


def _distances(model: Model, scalar: list[Link], balls: list[Link], q: Array) -> tuple[Array, Array]:
    """Distance to the lower limits, the upper limits, and the largest angles of balls; and their Jacobians."""
    j, dofs = (np.array([getattr(link, at) for link in scalar], dtype=int) for at in ("joint", "v_start"))
    bounds, unit = jnp.asarray(model.joints.range)[j], jnp.eye(model.nv)[dofs]
    position = q[np.array([link.q_start for link in scalar], dtype=int)]
    distances, jacobians = [position - bounds[:, 0], bounds[:, 1] - position], [unit, -unit]
    for link in balls:
        turn = quaternion_log(normalise(q[link.q]))
        angle = jnp.sqrt(jnp.maximum(turn @ turn, 1e-30))
        distances.append((jnp.max(model.joints.range[link.joint]) - angle)[None])
        jacobians.append(jnp.zeros((1, model.nv)).at[0, link.v].set(-turn / angle))
    return jnp.concatenate(distances), jnp.concatenate(jacobians)


def _spring(
    solref: Float[Array, "rows 2"], solimp: Float[Array, "rows 5"], least: Float[Array, ""]
) -> tuple[Float[Array, "rows"], Float[Array, "rows"]]:
    """Stiffness k and damping b of the reference acceleration: from time constant and damping ratio, or given."""
    mixed = (solref[:, 0] > 0) != (solref[:, 1] > 0)
    first, second = (jnp.where(mixed, default, solref[:, k]) for k, default in enumerate(DEFAULT_SOLREF))
    given = first <= 0
    time, ratio = jnp.where(given, 1.0, jnp.maximum(first, least)), jnp.where(given, 1.0, second)
    widest = jnp.clip(solimp[:, 1], SMALLEST, LARGEST)
    k = jnp.where(given, -first / widest**2, 1 / (widest * time * ratio) ** 2)
    b = jnp.where(given, -second / widest, 2 / (widest * time))
    return k, b


def _impedance(solimp: Float[Array, "rows 5"], violation: Float[Array, "rows"]) -> Float[Array, "rows"]:
    """MuJoCo's impedance d(r): from solimp[0] to solimp[1] over the distance solimp[2], a power-law sigmoid."""
    low, high, middle = (jnp.clip(solimp[:, k], SMALLEST, LARGEST) for k in (0, 1, 3))
    flat, power = solimp[:, 2] <= NARROWEST, jnp.maximum(solimp[:, 4], 1.0)
    width = jnp.where(flat, 1.0, solimp[:, 2])
    x = jnp.minimum(jnp.abs(violation) / width, 1.0)
    inside, outside = jnp.where(x > 0, x, 1.0), jnp.where(x < 1, 1 - x, 1.0)
    rising = jnp.where(x > 0, inside**power / middle ** (power - 1), 0.0)
    settling = jnp.where(x < 1, 1 - outside**power / (1 - middle) ** (power - 1), 1.0)
    return low + jnp.where(flat, 0.5, jnp.where(x <= middle, rising, settling)) * (high - low)


def _stiffness(impedance: Float[Array, "rows"], weight: Float[Array, "rows"]) -> Float[Array, "rows"]:
    """D = 1 / R."""
    return impedance / ((1 - impedance) * weight)
