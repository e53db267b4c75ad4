"""Equations of inverse dynamics, reduced to one Gram matrix for each joint and block of samples.

The torque of joint j is linear in all unknowns:

    torque_j = Y_j(q, v, a) theta + armature a_j + damping v_j + friction(v_j) + offset_j + coupled motors

theta are ten inertial parameters of one body for each moved link. All later work (weights, priors, choice of friction
terms, cross-validation) is done on the Gram matrices, whatever the length of the logs.
"""

import dataclasses
from collections.abc import Iterator

import jax
import numpy as np

from truesim.core.typing import Float, Int
from truesim.identification.regression.signals import STRIBECK_SPEEDS, JointSamples, coupling_matrix, rest_speeds
from truesim.physics.dynamics.regressor import INERTIAL_PARAMETERS, inertial_parameters, regressors
from truesim.physics.model.model import Model

TERMS = ("armature", "damping", "frictionloss", "offset", *(f"stribeck_{s:g}" for s in STRIBECK_SPEEDS), "load")
"""Columns of a joint's own unknowns."""
ARMATURE_TERM, DAMPING_TERM, FRICTION_TERM, OFFSET_TERM, STRIBECK_TERM, LOAD_TERM = 0, 1, 2, 3, 4, len(TERMS) - 1
"""Places of the columns among `TERMS`; `STRIBECK_TERM` is the first of several."""
TEN = len(INERTIAL_PARAMETERS)
COUPLED_TERMS = ("armature", "damping", "frictionloss")
"""Columns of a motor that turns with several joints."""
CHUNK = 4096
"""Samples whose equations are in memory at once."""


@dataclasses.dataclass(frozen=True)
class Reduced:
    """Gram matrices of the equations: columns are the inertial parameters, coupled motors, `TERMS`, and the torque."""

    gram: Float[np.ndarray, "blocks joints columns columns"]
    """Sums of products of columns over the samples at which the joint moves."""
    count: Int[np.ndarray, "blocks joints"]
    """Number of these samples."""
    band: float
    """[Hz]"""


@dataclasses.dataclass(frozen=True)
class ArmBodies:
    """The bodies of an arm whose inertial parameters are unknown: the heaviest of each moved link."""

    free: tuple[int, ...]
    """Index of the free body of each moved link."""
    fixed: tuple[int, ...]
    """All other bodies that move: their parameters stay at those of the file."""

    @classmethod
    def of(cls, model: Model) -> "ArmBodies":
        """Bodies of a robot, grouped by the joint that moves them."""
        links = model.topology.links
        groups: dict[int, list[int]] = {}
        for body, at in enumerate(model.topology.body_link):
            moved = [k for k in model.topology.ancestors(at) if links[k].joint >= 0]
            if moved:
                groups.setdefault(moved[-1], []).append(body)
        mass = np.asarray(model.bodies.mass)
        free = tuple(max(group, key=lambda b: (mass[b], -b)) for group in groups.values())
        return cls(free, tuple(b for group in groups.values() for b in group if b not in free))


def reduce(
    model: Model,
    samples: JointSamples,
    blocks: Int[np.ndarray, " samples"],
    theta: Float[np.ndarray, "bodies 10"] | None = None,
    arm: ArmBodies | None = None,
) -> Reduced:
    """Gram matrices of the equations of all samples.

    Args:
        model: The robot.
        samples: Motion and torque.
        blocks: Block of each sample, such as a fold of cross-validation.
        theta: Inertial parameters of the free bodies whose weight is the load of load-dependent friction; without
            them there is no such column.
        arm: Bodies with unknown inertial parameters; the heaviest of each moved link by default.
    """
    number = int(blocks.max(initial=0)) + 1
    arm = arm or ArmBodies.of(model)
    width = TEN * len(arm.free) + len(COUPLED_TERMS) * samples.coupled.shape[1] + len(TERMS) + 1
    gram, count = np.zeros((number, model.nv, width, width)), np.zeros((number, model.nv), int)
    for at, j, rows in equations(model, samples, theta, arm):
        for block in np.unique(blocks[at]):
            own = rows[blocks[at] == block]
            gram[block, j] += own.T @ own
            count[block, j] += len(own)
    return Reduced(gram, count, samples.band)


def equations(
    model: Model,
    samples: JointSamples,
    theta: Float[np.ndarray, "bodies 10"] | None = None,
    arm: ArmBodies | None = None,
) -> Iterator[tuple[Int[np.ndarray, " rows"], int, Float[np.ndarray, "rows columns"]]]:
    """Samples, joint and rows of the equations, joint by joint and chunk by chunk; rows at rest are left out."""
    arm, rest, C = arm or ArmBodies.of(model), rest_speeds(model), coupling_matrix(model)
    file = np.asarray(inertial_parameters(model))
    for first in range(0, len(samples), CHUNK):
        at = np.arange(first, min(first + CHUNK, len(samples)))
        q, v, a, torque = (x[at] for x in (samples.q, samples.v, samples.a, samples.torque))
        with jax.enable_x64(True):
            Y = regressors(model, q, v, a).reshape(len(at), model.nv, -1, TEN)
        known = np.einsum("sjbk,bk->sj", Y[:, :, list(arm.fixed)], file[list(arm.fixed)])
        spring = np.asarray(model.joints.stiffness) * (q - np.asarray(model.joints.springref))
        own = Y[:, :, list(arm.free)].reshape(len(at), model.nv, -1)
        load = np.zeros((len(at), model.nv)) if theta is None else _loads(model, q, arm, (file, theta))
        for j in range(model.nv):
            moving = np.abs(v[:, j]) > rest[j]
            terms = joint_terms(samples, at[moving], j, load[moving, j])
            motors = coupled_terms(samples, C, at[moving], j)
            target = torque[moving, j] - known[moving, j] - spring[moving, j]
            yield at[moving], j, np.concatenate([own[moving, j], motors, terms, target[:, None]], axis=1)


def _loads(
    model: Model,
    q: Float[np.ndarray, "samples joints"],
    arm: ArmBodies,
    parameters: tuple[Float[np.ndarray, "all 10"], Float[np.ndarray, "bodies 10"]],
) -> Float[np.ndarray, "samples joints"]:
    """Torques that hold the robot against gravity, with parameters of the file and of the free bodies."""
    every, still = parameters[0].copy(), np.zeros_like(q)
    every[list(arm.free)] = parameters[1]
    with jax.enable_x64(True):
        return regressors(model, q, still, still) @ every.ravel()


def coupled_terms(
    samples: JointSamples, C: Float[np.ndarray, "couplings joints"], at: Int[np.ndarray, " n"], j: int
) -> Float[np.ndarray, "n columns"]:
    """Columns of the motors that turn with several joints, in the equations of one joint."""
    each = [samples.a[at] @ C.T, samples.v[at] @ C.T, samples.coupled[at]]
    return (np.stack(each, axis=-1) * C[:, j, None]).reshape(len(at), len(each) * len(C))


def joint_terms(
    samples: JointSamples, at: Int[np.ndarray, " n"], j: int, load: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n terms"]:
    """Columns of a joint's own unknowns at some samples, in the order of `TERMS`."""
    v, direction = samples.v[at, j], samples.direction[at, j]
    own = [samples.a[at, j], v, direction, np.ones_like(v)]
    return np.stack([*own, *samples.onsets[at, j].T, np.abs(load) * direction], axis=1)
