"""Regressor of inverse dynamics, which is linear in the inertial parameters, and base parameters."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.tracing import is_traced
from truesim.core.typing import Array, Float
from truesim.math.spatial.transform import cross_force
from truesim.physics.dynamics.inverse import joint_forces
from truesim.physics.dynamics.kinematics import link_accelerations, link_velocities
from truesim.physics.dynamics.links import JointFrames, joint_frames
from truesim.physics.model.model import Model

INERTIAL_PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""Ten inertial parameters of a body: mass, first moments, inertia about the origin of its frame."""


def inertial_parameters(model: Model) -> Float[Array, "bodies 10"] | Float[np.ndarray, "bodies 10"]:
    """Mass [kg], first moments [kg m] and inertia about the frame's origin [kg m^2] of every body.

    In NumPy and double precision unless the values are traced.
    """
    values = (model.bodies.mass, model.bodies.com, model.bodies.inertia)
    traced = any(is_traced(x) for x in values)
    xp = jnp if traced else np
    mass, com, inertia = (jnp.asarray(x) if traced else np.asarray(x, float) for x in values)
    m, squares, (first, second) = mass[:, None], com**2, np.array([[0, 0, 1], [1, 2, 2]])
    about_origin = [m * (squares.sum(axis=1, keepdims=True) - squares), -m * com[:, first] * com[:, second]]
    return xp.concatenate([m, m * com, inertia + xp.concatenate(about_origin, axis=1)], axis=1)


def regressor(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]
) -> Float[Array, "nv parameters"]:
    """Matrix Y with `inverse_dynamics = Y @ inertial_parameters + armature * a`."""
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    A = link_accelerations(model, frames, c, a, -jnp.asarray(model.gravity))
    units = jnp.asarray(np.stack(_unit_inertias()))
    blocks = []
    for i in model.topology.body_link:
        held: list[Array] = [jnp.zeros((6, len(INERTIAL_PARAMETERS)))] * len(model.topology.links)
        held[i] = jax.vmap(lambda I, V, A: I @ A + cross_force(V, I @ V), (0, None, None), 1)(units, V[i], A[i])
        blocks.append(joint_forces(model, frames, held))
    return jnp.concatenate(blocks, axis=1)


def regressors(
    model: Model,
    q: Float[np.ndarray, "samples nq"],
    v: Float[np.ndarray, "samples nv"],
    a: Float[np.ndarray, "samples nv"],
) -> Float[np.ndarray, "samples nv parameters"]:
    """Regressors of many samples, in NumPy; compile time is linear in the size of the robot."""

    def motion_of_links(q: Array, v: Array, a: Array) -> tuple[JointFrames, Array, Array]:
        frames = joint_frames(model, q)
        V, c = link_velocities(model, frames, q, v)
        return frames, V, link_accelerations(model, frames, c, a, -jnp.asarray(model.gravity))

    count, joints, bodies = len(model.topology.links), model.joints, model.bodies
    frame = bodies.position, bodies.orientation, joints.axis, joints.position, joints.ref
    results = JointFrames([0.0] * count, [0.0] * count), 0.0, 0.0  # type: ignore[list-item]
    structure = native.KernelStructure("motion of links", (model.topology, *frame, model.gravity), results)
    frames, V, A = native.compile(motion_of_links, q[0], v[0], a[0], structure=structure)(q, v, a)
    result = np.zeros((len(q), model.nv, len(model.bodies.names), len(INERTIAL_PARAMETERS)))
    for body, i in enumerate(model.topology.body_link):
        f = _forces_by_parameter(V[:, i], A[:, i])
        for k in reversed(model.topology.ancestors(i)):
            result[:, model.topology.links[k].v, body] = np.swapaxes(frames.S[k], 1, 2) @ f
            f = np.swapaxes(frames.X[k], 1, 2) @ f
    return result.reshape(len(q), model.nv, -1)


def _forces_by_parameter(
    V: Float[np.ndarray, "samples 6"], A: Float[np.ndarray, "samples 6"]
) -> Float[np.ndarray, "samples 6 10"]:
    """Force `I A + V x* I V` on a link per unit of each of its parameters."""
    units = np.stack(_unit_inertias())
    momentum = np.einsum("pij,sj->sip", units, V)
    w, u = V[:, None, :3], V[:, None, 3:]
    n, f = np.swapaxes(momentum[:, :3], 1, 2), np.swapaxes(momentum[:, 3:], 1, 2)
    turned = np.concatenate([np.cross(w, n) + np.cross(u, f), np.cross(w, f)], axis=2)
    return np.einsum("pij,sj->sip", units, A) + np.swapaxes(turned, 1, 2)


def _unit_inertias() -> list[Float[np.ndarray, "6 6"]]:
    """Spatial inertia per unit of each of the ten parameters; NumPy, so constant in a trace."""
    units = []
    for m, x, y, z, xx, yy, zz, xy, xz, yz in np.eye(len(INERTIAL_PARAMETERS)):
        H = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        units.append(np.block([[np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), H], [H.T, m * np.eye(3)]]))
    return units


class BaseParameters(NamedTuple):
    """Parameter combinations identifiable from motion: `Y @ pi = Y[:, independent] @ (combination @ pi)`."""

    independent: tuple[int, ...]
    """Independent columns of the regressor."""
    combination: Float[np.ndarray, "base parameters"]
    """Coefficients of all parameters in the base parameters; the identity on the independent columns."""

    def describe(self, names: list[str], tolerance: float = 1e-9) -> list[str]:
        """Each base parameter as a sum, such as `link2.m + 2.5 link3.m`."""
        texts = []
        for row in self.combination:
            terms = [_term(weight, name) for name, weight in zip(names, row, strict=True) if abs(weight) > tolerance]
            texts.append(" ".join(terms).removeprefix("+ "))
        return texts


def _term(weight: float, name: str) -> str:
    size = f"{abs(weight):.4g} "
    return f"{'-' if weight < 0 else '+'} {'' if size == '1 ' else size}{name}"


def base_parameters(Y: Float[Array, "rows parameters"], tolerance: float = 1e-8) -> BaseParameters:
    """Reduce a stacked regressor to independent columns (Gautier's QR method).

    Args:
        Y: Stacked regressors of many samples. Random samples give the parameters identifiable from any motion.
        tolerance: Relative norm of its independent part below which a column counts as dependent.
    """
    Y = np.asarray(Y, dtype=float)
    scale = max(np.linalg.norm(Y, axis=0).max(), np.finfo(float).tiny)
    independent: list[int] = []
    basis = np.zeros((Y.shape[0], 0))
    for k in range(Y.shape[1]):
        column = Y[:, k] - basis @ (basis.T @ Y[:, k])
        column -= basis @ (basis.T @ column)
        if (size := np.linalg.norm(column)) > tolerance * scale:
            basis = np.column_stack([basis, column / size])
            independent.append(k)
    combination = np.linalg.lstsq(Y[:, independent], Y, rcond=None)[0]
    combination[np.abs(combination) < tolerance] = 0.0
    combination[:, independent] = np.eye(len(independent))
    return BaseParameters(tuple(independent), combination)
