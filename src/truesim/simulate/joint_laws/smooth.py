"""Smooth friction and limits: plain functions of position and velocity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tap import NO_TAP, Tap
from truesim.core.typing import Array, Float
from truesim.dynamics.links import joined, per_dof
from truesim.model.kinds import HINGE, SLIDE
from truesim.model.model import Model
from truesim.model.quantity import quantity
from truesim.simulate.joint_laws.base import (
    FRICTION,
    LIMIT,
    AbstractJointLaw,
    ConstraintForce,
    JointConstants,
    dry_friction,
)


class SmoothFriction(eqx.Module):
    """Regularised dry friction with the Stribeck effect.

    tau = -(frictionloss + stiction exp(-(v / stribeck_velocity)^2)) tanh(v / width)
    """

    width: Float[Array, "joints"] = quantity("rad/s|m/s")
    """Speed at which friction is nearly full; smaller is sharper."""
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, model: Model, width: float = 1e-2) -> "SmoothFriction":
        """Friction of this sharpness [rad/s or m/s] in every joint."""
        return cls(np.full(len(model.joints.names), width), model.joints.names)

    def force(self, model: Model, v: Float[Array, "nv"], tap: Tap = NO_TAP) -> Float[Array, "nv"]:
        """Friction force on each degree of freedom [N m or N]."""
        return -dry_friction(model, v, tap) * jnp.tanh(v / per_dof(model, self.width))


class SmoothLimits(eqx.Module):
    """Limits as one-sided spring-dampers with a rounded onset, for hinges and slides.

    tau = stiffness softplus(depth / width) width - damping sigmoid(depth / width) v, with depth the distance beyond the
    limit.
    """

    stiffness: Float[Array, "joints"] = quantity("N m/rad|N/m")
    """Stiffness of the stop."""
    damping: Float[Array, "joints"] = quantity("N m s/rad|N s/m")
    """Damping of the stop."""
    width: Float[Array, "joints"] = quantity("rad|m")
    """Distance over which the stop sets in; smaller is sharper."""
    names: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, model: Model, stiffness: float = 1e3, damping: float = 1e1, width: float = 1e-3) -> "SmoothLimits":
        """The same stop in every joint."""
        n = len(model.joints.names)
        return cls(np.full(n, stiffness), np.full(n, damping), np.full(n, width), model.joints.names)

    def force(self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv"]:
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


class SmoothJointLaw(AbstractJointLaw):
    """Dry friction and limits without constraints: cheap and differentiable everywhere, but friction creeps."""

    friction: SmoothFriction | None
    limits: SmoothLimits | None

    @classmethod
    def of(cls, model: Model) -> "SmoothJointLaw":
        """Friction and limits with default sharpness."""
        return cls(SmoothFriction.of(model), SmoothLimits.of(model))

    @property
    def solved(self) -> tuple[str, ...]:
        """None."""
        return ()

    def rough(self, model: Model) -> tuple[int, ...]:
        """All, if there is friction."""
        return () if self.friction is None else tuple(range(model.nv))

    def force(
        self, model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], tap: Tap = NO_TAP
    ) -> Float[Array, "nv"]:
        """The sum of friction and limits."""
        friction = tap(FRICTION, jnp.zeros(model.nv) if self.friction is None else self.friction.force(model, v, tap))
        if self.limits is None and not tap.wants(LIMIT):
            return friction
        limits = jnp.zeros(model.nv) if self.limits is None else self.limits.force(model, q, v)
        return friction + tap(LIMIT, limits)

    def constants(self, model: Model) -> JointConstants | None:
        """None are needed."""
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
        """No constraint: everything is in `force`."""
        return ConstraintForce.none(model.nv)
