"""Fixed tendons: lengths and their derivatives, and motors that turn with several joints.

A motor of a wrist often turns with the sum of two joints. It is a fixed tendon with that sum as its length: its
armature, damping and dry friction act on both joints.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from truesim.core.errors import unknown_name
from truesim.core.typing import Array, Float
from truesim.physics.model.constraints import Tendons
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model

ROTOR_SUFFIX, GEAR_SUFFIX = "_rotor", "_gear"
"""Endings of the names of a rotor's joint and of its gear, after that of the joint that it drives."""


def gears(model: Model) -> dict[str, tuple[int, int]]:
    """Joint and rotor of each gear: a tendon whose length is the difference of the two."""
    found = {}
    for name, row in zip(model.tendons.names, np.asarray(model.tendons.coefficients), strict=True):
        joint = name.removesuffix(GEAR_SUFFIX)
        pair = [model.joints.names.index(x) for x in (joint, joint + ROTOR_SUFFIX) if x in model.joints.names]
        if len(pair) == 2 and name != joint and row[pair[0]] == -row[pair[1]] and np.count_nonzero(row) == 2:
            found[name] = (pair[0], pair[1])
    return found


def tendon_lengths(model: Model, q: Float[Array, " nq"]) -> Float[Array, " tendons"]:
    """Length of each tendon: sum of coefficient times coordinate over its joints [m]."""
    joints, coordinates, _ = _scalar_joints(model)
    return jnp.asarray(model.tendons.coefficients)[:, joints] @ q[coordinates]


def tendon_jacobian(model: Model) -> Float[Array, "tendons nv"]:
    """Derivative of the lengths: velocity of each tendon = J v."""
    joints, _, dofs = _scalar_joints(model)
    coefficients = jnp.asarray(model.tendons.coefficients)[:, joints]
    return jnp.zeros((len(model.tendons.names), model.nv)).at[:, dofs].set(coefficients)


def coupled_tendons(model: Model) -> np.ndarray:
    """Indices of the tendons that are motors which turn with several joints."""
    return np.flatnonzero(model.tendons.coupled)


def tendon_inertia(model: Model) -> Float[Array, "nv nv"] | None:
    """Mass matrix of the motors that turn with several joints; None without any [kg m^2 or kg]."""
    own = coupled_tendons(model)
    if not len(own):
        return None
    J = tendon_jacobian(model)[own]
    return J.T @ (jnp.asarray(model.tendons.armature)[own][:, None] * J)


def couplings(model: Model) -> dict[str, dict[str, float]]:
    """Joints and their coefficients of each motor that turns with several joints."""
    out = {}
    for k in coupled_tendons(model):
        row = np.asarray(model.tendons.coefficients)[k]
        own = np.flatnonzero(row)
        out[model.tendons.names[k]] = {model.joints.names[j]: float(row[j]) for j in own}
    return out


def with_coupling(model: Model, name: str, joints: Mapping[str, float]) -> Model:
    """The model with a motor that turns with a sum of joints, without armature and friction at first.

    A tendon of this name that the model has already becomes such a motor.

    Args:
        model: The robot.
        name: Name of the tendon.
        joints: Coefficient of each joint, by name.
    """
    old = model.tendons
    if name in old.names:
        coupled = tuple(c or n == name for n, c in zip(old.names, old.coupled, strict=True))
        return dataclasses.replace(model, tendons=dataclasses.replace(old, coupled=coupled))
    if unknown := set(joints) - set(model.joints.names):
        raise unknown_name("joint", min(unknown), model.joints.names)
    row = np.array([joints.get(joint, 0.0) for joint in model.joints.names])
    added = {"coefficients": row, "solreffriction": SOLREF, "solreflimit": SOLREF}
    added |= {"solimpfriction": SOLIMP, "solimplimit": SOLIMP}
    static = {"names": name, "limited": False, "force_limited": False, "coupled": True}
    fields = {f.name: getattr(old, f.name) for f in dataclasses.fields(Tendons)}
    new: dict[str, Any] = {
        field: (*value, static[field])
        if field in static
        else np.concatenate([np.asarray(value), np.asarray(added.get(field, np.zeros(np.shape(value)[1:])))[None]])
        for field, value in fields.items()
    }
    return dataclasses.replace(model, tendons=Tendons(**new))


SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's defaults for soft constraints."""


def _scalar_joints(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hinges and slides: their joints, coordinates in q and in v."""
    links = [link for link in model.topology.links if link.kind in (HINGE, SLIDE)]
    rows = [(link.joint, link.q_start, link.v_start) for link in links]
    joints, coordinates, dofs = np.array(rows, dtype=int).reshape(-1, 3).T
    return joints, coordinates, dofs
