"""Inverse dynamics is linear in the inertial parameters: the regressor, and what of it can be identified."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.dynamics.inverse import joint_forces
from truesim.dynamics.kinematics import link_accelerations, link_velocities
from truesim.dynamics.links import JointFrames, joint_frames
from truesim.model.model import Model
from truesim.spatial.inertia import six_of, symmetric
from truesim.spatial.rotation import skew
from truesim.spatial.transform import cross_force

PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""The ten inertial parameters of a body: mass, first moments, inertia about the origin of its frame."""


def inertial_parameters(model: Model) -> Float[Array, "bodies 10"]:
    """Mass [kg], first moments [kg m] and inertia about the frame's origin [kg m^2] of every body."""

    def ten(mass: Array, com: Array, inertia: Array) -> Array:
        C = skew(com)
        about_origin = symmetric(inertia) + mass * C @ C.T
        return jnp.concatenate([mass[None], mass * com, six_of(about_origin)])

    return jax.vmap(ten)(*(jnp.asarray(x) for x in (model.bodies.mass, model.bodies.com, model.bodies.inertia)))


def regressor(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> Float[Array, "nv bodies*10"]:
    """The matrix Y with `inverse_dynamics = Y @ inertial_parameters + armature * a`."""
    frames = joint_frames(model, q)
    V, c = link_velocities(model, frames, q, v)
    A = link_accelerations(model, frames, c, a, -jnp.asarray(model.gravity))
    units = jnp.asarray(np.stack(_unit_inertias()))
    blocks = []
    for i in model.topology.body_link:
        held = [jnp.zeros((6, len(PARAMETERS)))] * len(model.topology.links)
        held[i] = jax.vmap(lambda I, V, A: I @ A + cross_force(V, I @ V), (0, None, None), 1)(units, V[i], A[i])
        blocks.append(joint_forces(model, frames, held))
    return jnp.concatenate(blocks, axis=1)


def regressors(
    model: Model,
    q: Float[np.ndarray, "samples nq"],
    v: Float[np.ndarray, "samples nv"],
    a: Float[np.ndarray, "samples nv"],
) -> Float[np.ndarray, "samples nv bodies*10"]:
    """The regressors of many samples, in NumPy; the kernel inside grows only in proportion to the robot."""

    def motion_of_links(q: Array, v: Array, a: Array) -> tuple[JointFrames, Array, Array]:
        frames = joint_frames(model, q)
        V, c = link_velocities(model, frames, q, v)
        return frames, V, link_accelerations(model, frames, c, a, -jnp.asarray(model.gravity))

    frames, V, A = native.compile(motion_of_links, q[0], v[0], a[0])(q, v, a)
    result = np.zeros((len(q), model.nv, len(model.bodies.names), len(PARAMETERS)))
    for body, i in enumerate(model.topology.body_link):
        f = _forces_by_parameter(V[:, i], A[:, i])
        for k in reversed(model.topology.ancestors(i)):
            result[:, model.topology.links[k].v, body] = np.swapaxes(frames.S[k], 1, 2) @ f
            f = np.swapaxes(frames.X[k], 1, 2) @ f
    return result.reshape(len(q), model.nv, -1)


def _forces_by_parameter(
    V: Float[np.ndarray, "samples 6"], A: Float[np.ndarray, "samples 6"]
) -> Float[np.ndarray, "samples 6 10"]:
    """Force that moves a link, `I A + V x* I V`, for a unit of each of its parameters."""
    units = np.stack(_unit_inertias())
    momentum = np.einsum("pij,sj->sip", units, V)
    w, u = V[:, None, :3], V[:, None, 3:]
    n, f = np.swapaxes(momentum[:, :3], 1, 2), np.swapaxes(momentum[:, 3:], 1, 2)
    turned = np.concatenate([np.cross(w, n) + np.cross(u, f), np.cross(w, f)], axis=2)
    return np.einsum("pij,sj->sip", units, A) + np.swapaxes(turned, 1, 2)


def _unit_inertias() -> list[Float[np.ndarray, "6 6"]]:
    """Spatial inertias of which a body's is the sum, weighted by its ten parameters; NumPy, so constant in a trace."""
    units = []
    for m, x, y, z, xx, yy, zz, xy, xz, yz in np.eye(len(PARAMETERS)):
        H = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        units.append(np.block([[np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), H], [H.T, m * np.eye(3)]]))
    return units


class BaseParameters(NamedTuple):
    """The combinations of parameters that motion can show: `Y @ pi = Y[:, independent] @ (combination @ pi)`."""

    independent: tuple[int, ...]
    """Columns of the regressor that span it."""
    combination: Float[np.ndarray, "base parameters"]
    """How every parameter enters the base parameters; the identity on the independent columns."""

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
    """The reduction of a stacked regressor to independent columns (Gautier's QR method).

    Args:
        Y: Regressors of many samples, stacked. Random samples give what any motion can show.
        tolerance: A column counts as dependent if less than this part of it is new.
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
