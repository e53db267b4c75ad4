"""Relative torque error of a robot model: the residual of inverse dynamics as a fraction of the measured torque.

Positions and torques are in one zero-phase band. Samples at which a joint rests are left out, since a joint at rest
holds any torque within its friction.
"""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.regression.equations import CHUNK
from truesim.identification.regression.signals import JointSamples, band_limited, coupling_matrix, rest_speeds
from truesim.identification.regression.torques import TorqueMap, inapplicable
from truesim.physics.dynamics.links import per_dof
from truesim.physics.dynamics.regressor import inertial_parameters, regressors
from truesim.physics.model.model import Model
from truesim.physics.model.tendons import coupled_tendons

BAND = 6.0
"""Band of torque errors, and of the first regression [Hz]: within 0.7 points of the best on five arms."""


@dataclasses.dataclass(frozen=True)
class TorqueError:
    """Torque error of one joint over the samples at which it moves."""

    relative: float
    """Root mean square of the residual, divided by that of the torque."""
    rms: float
    """Root mean square of the residual [N m or N]."""
    samples: int


def torque_errors(model: Model, logs: Sequence[Log], band: float = BAND) -> dict[str, TorqueError]:
    """Torque error of every joint that moves; empty if the logs have no torques or the robot is no arm.

    Args:
        model: The robot.
        logs: Prepared logs.
        band: Cut-off frequency of positions and torques [Hz].
    """
    if inapplicable(model, logs) is not None:
        return {}
    return errors_of_samples(model, band_limited(model, logs, band))


def errors_of_samples(model: Model, samples: JointSamples) -> dict[str, TorqueError]:
    """Torque error of every joint that moves in some samples."""
    residual = samples.torque - model_torques(model, samples)
    moving = np.abs(samples.v) > rest_speeds(model)
    out = {}
    for j, name in enumerate(joint_names(model)):
        r, torque = residual[moving[:, j], j], samples.torque[moving[:, j], j]
        if len(r) and np.any(torque):
            rms = float(np.sqrt(np.mean(r**2)))
            out[name] = TorqueError(rms / float(np.sqrt(np.mean(torque**2))), rms, len(r))
    return out


def joint_names(model: Model) -> list[str]:
    """Name of the joint of each degree of freedom of an arm."""
    return [model.joints.names[link.joint] for link in model.topology.links if link.joint >= 0]


def model_torques(model: Model, samples: JointSamples) -> Float[np.ndarray, "samples joints"]:
    """Torques that the actuators must exert for the recorded motion: inverse dynamics, friction, springs, offsets."""
    joints = model.joints
    armature, damping, loss, stiction, onset, under_load, stiffness, reference = (
        np.asarray(per_dof(model, x))
        for x in (
            joints.armature,
            joints.damping,
            joints.frictionloss,
            joints.stiction,
            joints.stribeck_velocity,
            joints.load_friction,
            joints.stiffness,
            joints.springref,
        )
    )
    q, v, a = samples.q, samples.v, samples.a
    friction = loss * samples.direction
    for j in map(int, np.flatnonzero(stiction)):
        friction[:, j] += stiction[j] * samples.onset(j, float(onset[j]))
    if under_load.any():
        still = np.zeros_like(v)
        friction += under_load * np.abs(rigid_torques(model, q, still, still)) * samples.direction
    passive = damping * v + friction + stiffness * (q - reference)
    return (
        rigid_torques(model, q, v, a) + armature * a + passive + _coupled(model, samples) - TorqueMap.of(model).offset
    )


def _coupled(model: Model, samples: JointSamples) -> Float[np.ndarray, "samples joints"]:
    """Torques of inertia and friction of motors that turn with several joints [N m or N]."""
    C, own, tendons = coupling_matrix(model), coupled_tendons(model), model.tendons
    armature, damping, loss = (np.asarray(x)[own] for x in (tendons.armature, tendons.damping, tendons.frictionloss))
    return (armature * (samples.a @ C.T) + damping * (samples.v @ C.T) + loss * samples.coupled) @ C


def rigid_torques(
    model: Model,
    q: Float[np.ndarray, "samples joints"],
    v: Float[np.ndarray, "samples joints"],
    a: Float[np.ndarray, "samples joints"],
) -> Float[np.ndarray, "samples joints"]:
    """Torques that move the bodies: inertia, Coriolis and gravity forces [N m or N]."""
    out = np.empty(q.shape)
    theta = np.asarray(inertial_parameters(model))
    with jax.enable_x64(True):
        for first in range(0, len(q), CHUNK):
            at = slice(first, first + CHUNK)
            out[at] = regressors(model, q[at], v[at], a[at]) @ theta.ravel()
    return out
