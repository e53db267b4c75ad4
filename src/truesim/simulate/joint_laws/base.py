"""What a law of dry friction and limits must provide."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp

from truesim.core.tap import NO_TAP, Port, Tap
from truesim.core.typing import Array, Bool, Float, Int
from truesim.dynamics.links import per_dof
from truesim.model.model import Model

FRICTION = Port(
    "joint.friction_torque",
    "dofs",
    "N m|N",
    "Dry friction in each joint. Where it is solved as a constraint, a residual is a torque beside it.",
    velocity="joint.velocity",
)
FRICTION_BOUND = Port(
    "joint.friction_bound",
    "dofs",
    "N m|N",
    "Largest dry friction in each joint that has some: it holds up to this, and slides with this; never below zero.",
)
LIMIT = Port(
    "joint.limit_torque",
    "dofs",
    "N m|N",
    "Force of the joint limits. Where it is solved as a constraint, a residual is a torque beside it.",
    velocity="joint.velocity",
)


class JointConstants(NamedTuple):
    """What follows from the parameters alone; computed once per rollout, not once per step."""

    inverse_weight: Float[Array, "nv"]
    """Diagonal of M^-1 where the file draws the robot, averaged over each ball or free joint [1/(kg m^2) or 1/kg]."""


class ConstraintForce(NamedTuple):
    """Force of the joints' constraints, and how its solution went."""

    force: Float[Array, "nv"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]

    @classmethod
    def none(cls, nv: int) -> "ConstraintForce":
        """No constraint acts."""
        return cls(jnp.zeros(nv), jnp.zeros((), jnp.int32), jnp.ones((), bool))


class AbstractJointLaw(eqx.Module):
    """Dry friction and limits of all joints."""

    @property
    @abc.abstractmethod
    def solved(self) -> tuple[str, ...]:
        """Names of the ports whose values are found together with the acceleration, and not before."""

    @abc.abstractmethod
    def rough(self, model: Model) -> tuple[int, ...]:
        """Degrees of freedom with dry friction."""

    @abc.abstractmethod
    def force(
        self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap = NO_TAP
    ) -> Float[Array, "nv"]:
        """Forces that depend on the state alone [N m or N]."""

    @abc.abstractmethod
    def constants(self, model: Model) -> JointConstants | None:
        """What the law needs that follows from the parameters alone."""

    @abc.abstractmethod
    def constraint(
        self,
        model: Model,
        constants: JointConstants | None,
        state: tuple[Float[Array, "nq"], Float[Array, "nv"]],
        applied: Float[Array, "nv"],
        timestep: Float[Array, ""],
        tap: Tap = NO_TAP,
    ) -> ConstraintForce:
        """Forces that depend on the acceleration, found together with it [N m or N].

        Args:
            model: The robot.
            constants: What `constants` returned.
            state: Configuration and velocity.
            applied: All other generalised forces.
            timestep: [s]; soft constraints may not be stiffer than it allows.
            tap: Who sees what they are made of.
        """


def dry_friction(model: Model, v: Float[Array, "nv"], tap: Tap = NO_TAP) -> Float[Array, "nv"]:
    """Largest dry friction on each degree of freedom [N m or N], the Stribeck effect included.

    frictionloss + stiction exp(-(v / stribeck_velocity)^2)
    """
    joints = model.joints
    loss, stiction, width = (
        per_dof(model, x) for x in (joints.frictionloss, joints.stiction, joints.stribeck_velocity)
    )
    bound = loss + stiction * jnp.exp(-((v / width) ** 2))
    return jnp.maximum(tap(FRICTION_BOUND, bound), 0.0) if tap.wants(FRICTION_BOUND) else bound
