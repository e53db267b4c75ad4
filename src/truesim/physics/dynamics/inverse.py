"""Inverse dynamics: recursive Newton-Euler algorithm (Featherstone, table 5.1)."""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.tracing import traced_once
from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import cross_force
from truesim.physics.dynamics.kinematics import link_accelerations, link_velocities
from truesim.physics.dynamics.links import JointFrames, joined, joint_frames, link_inertias, per_dof
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import tendon_inertia


@traced_once
def inverse_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    *,
    external: Float[Array, "bodies 6"] | None = None,
) -> Float[Array, " nv"]:
    """Generalized forces that produce the acceleration `a`: `tau = M(q) a + c(q, v)` [N m or N].

    Springs, dampers, friction and actuators are not included; the rotors' armature is.

    Args:
        model: The robot.
        q: Configuration.
        v: Velocity.
        a: Acceleration.
        external: Force on each body: torque [N m] and force [N] at the origin of its frame, in its own axes.
    """
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    A = link_accelerations(model, frames, c, a, -jnp.asarray(model.gravity))
    I = jnp.stack(link_inertias(model))
    F = jnp.einsum("lij,lj->li", I, A) + jax.vmap(cross_force)(V, jnp.einsum("lij,lj->li", I, V))
    if external is not None:
        F = F.at[np.array(model.topology.body_link)].add(-external)
    return joint_forces(model, frames, list(F)) + rotor_forces(model, a)


def rotor_forces(model: Model, a: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Forces that accelerate the rotors: of each joint, and of motors that turn with several joints [N m or N]."""
    own, coupled = per_dof(model, model.joints.armature) * a, tendon_inertia(model)
    return own if coupled is None else own + coupled @ a


@traced_once
def inertia_forces(model: Model, q: Float[Array, " nq"], a: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """`M(q) a` without forming M, cheaper to differentiate [N m or N]."""
    frames = joint_frames(model, q)
    still = jnp.zeros((len(model.topology.links), 6))
    A = link_accelerations(model, frames, still, a, jnp.zeros(3))
    F = jnp.einsum("lij,lj->li", jnp.stack(link_inertias(model)), A)
    return joint_forces(model, frames, list(F)) + rotor_forces(model, a)


def joint_forces(
    model: Model, frames: JointFrames, forces: list[Float[Array, " 6 *columns"]]
) -> Float[Array, " nv *columns"]:
    """Joint forces that balance these link forces (inward pass): `tau = S^T f`."""

    def inward(f: Array, X: Array, S: Array) -> tuple[Array, Array]:
        return S.T @ f, X.T @ f

    return joined(model.topology.up(inward, forces, *frames))


def external_forces(model: Model, q: Float[Array, " nq"], external: Float[Array, "bodies 6"]) -> Float[Array, " nv"]:
    """Generalized forces of forces on bodies, `sum J^T F` [N m or N].

    Args:
        model: The robot.
        q: Configuration.
        external: Force on each body: torque [N m] and force [N] at the origin of its frame, in its own axes.
    """
    of_links = jnp.zeros((len(model.topology.links), 6)).at[np.array(model.topology.body_link)].set(external)
    return joint_forces(model, joint_frames(model, q), list(of_links))


def bias_forces(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """Forces at zero acceleration: gravity, Coriolis and centrifugal terms [N m or N]."""
    return inverse_dynamics(model, q, v, jnp.zeros_like(v))


def gravity_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Forces that hold the robot at rest against gravity [N m or N]."""
    zero = jnp.zeros(model.nv)
    return inverse_dynamics(model, q, zero, zero)
