"""Bound of the friction in each joint, with the Stribeck effect and friction under load."""

import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.physics.dynamics.inverse import bias_forces
from truesim.physics.dynamics.links import per_dof
from truesim.physics.model.model import Model


def joint_friction_bound(
    model: Model, v: Float[Array, " nv"], load: Float[Array, " nv"] | None = None
) -> Float[Array, " nv"]:
    """Largest friction on each degree of freedom [N m or N].

    frictionloss + stiction exp(-(v / stribeck_velocity)^2) + load_friction |load|

    Args:
        model: The robot.
        v: Velocity.
        load: Torque of gravity on each degree of freedom, from `gravity_load`; without it there is no friction under
            load.
    """
    joints = model.joints
    loss, stiction, width = (
        per_dof(model, x) for x in (joints.frictionloss, joints.stiction, joints.stribeck_velocity)
    )
    bound = loss + stiction * jnp.exp(-((v / width) ** 2))
    return bound if load is None else bound + per_dof(model, joints.load_friction) * jnp.abs(load)


def gravity_load(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Torque that holds the robot against gravity in a configuration [N m or N]."""
    return bias_forces(model, q, jnp.zeros(model.nv))
