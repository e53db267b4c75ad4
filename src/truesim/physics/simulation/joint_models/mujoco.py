"""MuJoCo's joint model: friction and limits as soft constraints on the accelerations, solved together.

Without contact their problem has bounded rows only, and an exact line search solves it to rounding.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Tap
from truesim.core.typing import Array, Float
from truesim.math import dense
from truesim.math.soft_constraints import rows as soft_constraints
from truesim.math.soft_constraints.rows import SoftConstraints, SoftSolution
from truesim.physics.constraints.joints import friction_rows, limit_rows, tendon_friction_rows
from truesim.physics.constraints.weights import dof_weights, inverse_weights
from truesim.physics.dynamics import bias_forces, inverse_dynamics, mass_matrix
from truesim.physics.dynamics.joint_friction import gravity_load
from truesim.physics.model.kinds import FREE
from truesim.physics.model.model import Model
from truesim.physics.model.structure import structure_of
from truesim.physics.model.tendons import coupled_tendons
from truesim.physics.simulation.joint_models.base import (
    FRICTION,
    LIMIT,
    AbstractJointModel,
    ConstraintForce,
    JointConstants,
    friction_bound,
)


class MujocoJointModel(AbstractJointModel):
    """Joint friction and limits as in MuJoCo."""

    friction: tuple[int, ...] = eqx.field(static=True)
    """Joints with friction."""
    limits: tuple[int, ...] = eqx.field(static=True)
    """Joints with limits."""
    safe_reference: bool = eqx.field(static=True, default=True)
    """True if time constants are kept above twice the time step."""
    loaded: bool = eqx.field(static=True, default=False)
    """True if the friction of some joint depends on its load."""
    coupled: tuple[int, ...] = eqx.field(static=True, default=())
    """Tendons with friction that are motors which turn with several joints."""

    @classmethod
    def of(cls, model: Model) -> "MujocoJointModel":
        """Friction and limits of the joints that have any, as far as the file enables them."""
        joints, defaults = model.joints, model.defaults
        structure = structure_of(model)
        friction = sorted({*structure.frictionloss, *structure.stiction, *structure.load_friction})
        limits = [j for j, limited in enumerate(joints.limited) if limited and joints.kinds[j] != FREE]
        return cls(
            friction=tuple(friction) if defaults.joint_friction else (),
            limits=tuple(limits) if defaults.limits else (),
            safe_reference=defaults.safe_reference,
            loaded=defaults.joint_friction and bool(structure.load_friction),
            coupled=tuple(coupled_tendons(model).tolist()) if defaults.joint_friction else (),
        )

    @property
    def solved(self) -> tuple[str, ...]:
        """Friction and limits, if any joint has them."""
        return (FRICTION.name,) * bool(self.friction) + (LIMIT.name,) * bool(self.limits)

    def rough(self, model: Model) -> tuple[int, ...]:
        """Degrees of freedom of the joints with friction."""
        links = [link for link in model.topology.links if link.joint in self.friction]
        return tuple(d for link in links for d in range(link.v.start, link.v.stop))

    def force(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap = NO_TAP
    ) -> Float[Array, " nv"]:
        """Zero, except for what a tap adds to the constraints."""
        none = jnp.zeros(model.nv)
        if not tap.wants(FRICTION) and not tap.wants(LIMIT):
            return none
        return tap(FRICTION, none) + tap(LIMIT, none)

    def constants(self, model: Model) -> JointConstants | None:
        """Inverse weights, if any joint is constrained."""
        if self.coupled:
            weights = inverse_weights(model)
            return JointConstants(weights.dofs, weights.tendons)
        return JointConstants(dof_weights(model)) if self.friction or self.limits else None

    def rows(
        self, model: Model, weight: Array, state: tuple, timestep: Array, tap: Tap = NO_TAP
    ) -> SoftConstraints | None:
        """Friction, then limits, of the joints that have any."""
        q, v = state
        shortest = 2 * timestep if self.safe_reference else jnp.zeros(())
        links = {link.joint: link for link in model.topology.links}
        parts = []
        if self.friction:
            bound = friction_bound(model, v, tap, gravity_load(model, q) if self.loaded else None)
            parts.append(friction_rows(model, [links[j] for j in self.friction], (v, bound), weight, shortest))
        if self.limits:
            parts.append(limit_rows(model, [links[j] for j in self.limits], (q, v), weight, shortest))
        return SoftConstraints(*(jnp.concatenate(part) for part in zip(*parts, strict=True))) if parts else None

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
        rows = [self.rows(model, constants.inverse_weight, state, timestep, tap)]
        if constants.tendon_weight is not None:
            shortest = 2 * timestep if self.safe_reference else jnp.zeros(())
            tendons = np.array(self.coupled)
            rows.append(tendon_friction_rows(model, tendons, state[1], constants.tendon_weight, shortest))
        own = [each for each in rows if each is not None]
        assert own, "constants are made for joints with constraints only"
        constraints = own[0] if len(own) == 1 else SoftConstraints(*map(jnp.concatenate, zip(*own, strict=True)))
        solution = _solve((model, *state, applied, constraints))
        return ConstraintForce(constraints.J.T @ solution.forces, solution.iterations, solution.converged)


@eqx.filter_custom_jvp
def _solve(inputs: tuple) -> SoftSolution:
    """Acceleration and constraint forces: `M(q) a + c(q, v) = applied + J^T f(a)`."""
    model, q, v, applied, constraints = inputs
    return soft_constraints.solve(mass_matrix(model, q), applied - bias_forces(model, q, v), constraints)


@_solve.def_jvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple[SoftSolution, SoftSolution]:
    """Differentiate the balance at fixed a, as forward dynamics does: `da = (M + J^T D J)^-1 d balance`.

    This takes the derivative of inverse dynamics instead of that of the mass matrix.
    """
    (inputs,), (perturbations,) = primals, tangents
    model, q, _, _, constraints = inputs
    solution = _solve(inputs)
    a, sides = solution.a, solution.sides

    def balance(inputs: tuple) -> Array:
        model, q, v, applied, constraints = inputs
        unforced = applied - inverse_dynamics(model, q, v, a)
        return unforced + constraints.J.T @ soft_constraints.forces_at(constraints, a, sides)

    _, unbalanced = eqx.filter_jvp(balance, (inputs,), (perturbations,))
    da = dense.solve(soft_constraints.hessian(mass_matrix(model, q), constraints, sides), unbalanced)
    _, df = eqx.filter_jvp(
        lambda constraints, a: soft_constraints.forces_at(constraints, a, sides),
        (constraints, a),
        (perturbations[4], da),
    )
    return solution, SoftSolution(da, df, None, None, None)  # type: ignore[arg-type]  # no tangents of the rest
