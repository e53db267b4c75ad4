"""Abstract joint model: friction and limits of the joints."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Bool, Float, Int
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.physics.dynamics.joint_friction import joint_friction_bound
from truesim.physics.model.model import Model

FRICTION = Port(
    "joint.friction_torque",
    "dofs",
    "N m|N",
    "Friction in each joint. Where it is solved as a constraint, a residual is a torque added to it.",
    velocity="joint.velocity",
)
FRICTION_BOUND = Port(
    "joint.friction_bound",
    "dofs",
    "N m|N",
    "Largest friction in each joint that has some: it holds up to this bound and slides with it; never negative.",
)
LIMIT = Port(
    "joint.limit_torque",
    "dofs",
    "N m|N",
    "Force of the joint limits. Where it is solved as a constraint, a residual is a torque added to it.",
    velocity="joint.velocity",
)


class JointConstants(NamedTuple):
    """Quantities that depend on the parameters alone; computed once per rollout."""

    inverse_weight: Float[Array, " nv"]
    """Diagonal of M^-1 in the reference configuration, averaged over ball and free joints [1/(kg m^2) or 1/kg]."""
    tendon_weight: Float[Array, " tendons"] | None = None
    """`J M^-1 J^T` of each tendon; None without motors that turn with several joints [1/kg]."""


class ConstraintForce(NamedTuple):
    """Generalized force of joint constraints, with solver diagnostics."""

    force: Float[Array, " nv"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]
    acceleration: Float[Array, " nv"] | None = None
    """Acceleration under all constraints, from which the next step can start; None if it is not needed."""

    @classmethod
    def none(cls, nv: int) -> "ConstraintForce":
        """Zero force, for a model without constraints."""
        return cls(jnp.zeros(nv), jnp.zeros((), jnp.int32), jnp.ones((), bool))


class AbstractJointModel(eqx.Module):
    """Friction and limits of all joints."""

    @property
    @abc.abstractmethod
    def solved(self) -> tuple[str, ...]:
        """Names of the ports whose values are solved for together with the acceleration."""

    @abc.abstractmethod
    def rough(self, model: Model) -> tuple[int, ...]:
        """Degrees of freedom with friction."""

    @abc.abstractmethod
    def force(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap = NO_TAP
    ) -> Float[Array, " nv"]:
        """Forces that depend on the state alone [N m or N]."""

    @abc.abstractmethod
    def constants(self, model: Model) -> JointConstants | None:
        """Quantities that depend on the parameters alone."""

    @abc.abstractmethod
    def rows(
        self,
        model: Model,
        weight: Float[Array, " nv"],
        state: tuple[Float[Array, " nq"], Float[Array, " nv"]],
        timestep: Float[Array, ""],
        tap: Tap = NO_TAP,
    ) -> SoftConstraints | None:
        """Soft constraints of the joints; None if there are none.

        Args:
            model: The robot.
            weight: Inverse weight of each degree of freedom.
            state: Configuration and velocity.
            timestep: Time step, which bounds the stiffness of soft constraints [s].
            tap: Receives the values of the ports.
        """

    @abc.abstractmethod
    def constraint(
        self,
        model: Model,
        constants: JointConstants | None,
        state: tuple[Float[Array, " nq"], Float[Array, " nv"]],
        applied: Float[Array, " nv"],
        timestep: Float[Array, ""],
        tap: Tap = NO_TAP,
    ) -> ConstraintForce:
        """Forces that are solved for together with the acceleration [N m or N].

        Args:
            model: The robot.
            constants: Result of `constants`.
            state: Configuration and velocity.
            applied: All other generalized forces.
            timestep: Time step, which bounds the stiffness of soft constraints [s].
            tap: Receives the values of the ports.
        """


def friction_bound(
    model: Model, v: Float[Array, " nv"], tap: Tap = NO_TAP, load: Float[Array, " nv"] | None = None
) -> Float[Array, " nv"]:
    """Largest joint friction on each degree of freedom [N m or N], as changed by a tap."""
    bound = joint_friction_bound(model, v, load)
    return jnp.maximum(tap(FRICTION_BOUND, bound), 0.0) if tap.wants(FRICTION_BOUND) else bound
