"""Smooth joint model: friction and limits as functions of position and velocity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Tap
from truesim.core.typing import Array, Float
from truesim.math.soft_constraints.rows import SoftConstraints
from truesim.physics.dynamics.joint_friction import gravity_load
from truesim.physics.dynamics.links import joined, per_dof
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model
from truesim.physics.model.quantity import quantity
from truesim.physics.model.structure import structure_of
from truesim.physics.simulation.joint_models.base import (
    FRICTION,
    LIMIT,
    AbstractJointModel,
    ConstraintForce,
    JointConstants,
    friction_bound,
)


class SmoothFriction(eqx.Module):
    """Regularized Coulomb friction with the Stribeck effect.

    tau = -(frictionloss + stiction exp(-(v / stribeck_velocity)^2) + load_friction |load|) tanh(v / width)
    """

    width: Float[Array, " joints"] = quantity("rad/s|m/s")
    """Speed over which friction builds up; smaller is sharper."""
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, model: Model, width: float = 1e-2) -> "SmoothFriction":
        """Friction with the same width [rad/s or m/s] in every joint."""
        return cls(np.full(len(model.joints.names), width), model.joints.names)

    def force(
        self, model: Model, v: Float[Array, " nv"], tap: Tap = NO_TAP, load: Float[Array, " nv"] | None = None
    ) -> Float[Array, " nv"]:
        """Friction force on each degree of freedom [N m or N]."""
        return -friction_bound(model, v, tap, load) * jnp.tanh(v / per_dof(model, self.width))


class SmoothLimits(eqx.Module):
    """Limits of hinges and slides as unilateral spring-dampers with a smooth onset.

    tau = stiffness softplus(depth / width) width - damping sigmoid(depth / width) v, with depth the distance beyond the
    limit.
    """

    stiffness: Float[Array, " joints"] = quantity("N m/rad|N/m")
    """Stiffness of the stop."""
    damping: Float[Array, " joints"] = quantity("N m s/rad|N s/m")
    """Damping of the stop."""
    width: Float[Array, " joints"] = quantity("rad|m")
    """Distance over which the stop sets in; smaller is sharper."""
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, model: Model, stiffness: float = 1e3, damping: float = 1e1, width: float = 1e-3) -> "SmoothLimits":
        """Equal stops in every joint."""
        n = len(model.joints.names)
        return cls(np.full(n, stiffness), np.full(n, damping), np.full(n, width), model.joints.names)

    def force(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Force of the stops on each degree of freedom [N m or N]."""
        parts = []
        for link in model.topology.links:
            j = link.joint
            if j < 0 or not model.joints.limited[j] or link.kind not in (HINGE, SLIDE):
                parts.append(jnp.zeros(link.kind.nv))
                continue
            below, above = model.joints.range[j][0] - q[link.q], q[link.q] - model.joints.range[j][1]
            k, d, w = self.stiffness[j], self.damping[j], self.width[j]
            push = k * w * (jax.nn.softplus(below / w) - jax.nn.softplus(above / w))
            drag = d * (jax.nn.sigmoid(below / w) + jax.nn.sigmoid(above / w)) * v[link.v]
            parts.append(push - drag)
        return joined(parts)


class SmoothJointModel(AbstractJointModel):
    """Joint friction and limits without constraints: cheap and differentiable everywhere, but friction creeps."""

    friction: SmoothFriction | None
    limits: SmoothLimits | None
    loaded: bool = eqx.field(static=True, default=False)
    """True if the friction of some joint depends on its load."""

    @classmethod
    def of(cls, model: Model) -> "SmoothJointModel":
        """Friction and limits with default widths."""
        return cls(SmoothFriction.of(model), SmoothLimits.of(model), bool(structure_of(model).load_friction))

    @property
    def solved(self) -> tuple[str, ...]:
        """No ports: nothing is solved for."""
        return ()

    def rough(self, model: Model) -> tuple[int, ...]:
        """All degrees of freedom, if there is friction."""
        return () if self.friction is None else tuple(range(model.nv))

    def force(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], tap: Tap = NO_TAP
    ) -> Float[Array, " nv"]:
        """Sum of friction and limits [N m or N]."""
        load = gravity_load(model, q) if self.loaded else None
        none = jnp.zeros(model.nv)
        friction = tap(FRICTION, none if self.friction is None else self.friction.force(model, v, tap, load))
        if self.limits is None and not tap.wants(LIMIT):
            return friction
        limits = jnp.zeros(model.nv) if self.limits is None else self.limits.force(model, q, v)
        return friction + tap(LIMIT, limits)

    def constants(self, model: Model) -> JointConstants | None:
        """No constants."""
        return None

    def rows(
        self, model: Model, weight: Array, state: tuple, timestep: Array, tap: Tap = NO_TAP
    ) -> SoftConstraints | None:
        """None: friction and limits are forces."""
        return None

    def constraint(
        self,
        model: Model,
        constants: JointConstants | None,
        state: tuple,
        applied: Array,
        timestep: Array,
        tap: Tap = NO_TAP,
    ) -> ConstraintForce:
        """Zero: all forces are in `force`."""
        return ConstraintForce.none(model.nv)
