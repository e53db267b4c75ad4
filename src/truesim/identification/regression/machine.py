"""Sizes that armature and friction of a geared joint may have, from its torques, its speed and the mass that it moves.

A zero in a robot file says that a value is unknown, not that it is small. Typical geared joints have dry friction of
5 to 7 % of their effort limit, viscous torque of 10 to 30 % of it at full speed, and armature of up to 30 times the
inertia of the links that they move.
"""

from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.regression.errors import BAND, joint_names, rigid_torques
from truesim.identification.regression.signals import band_limited, rest_speeds
from truesim.physics.model.model import Model

FRICTION_SHARE = 0.05
"""Dry friction relative to the effort of a joint. Larger allows more friction."""
VISCOUS_SHARE = 0.5
"""Viscous torque at full speed relative to the effort of a joint. Larger allows more damping."""
ARMATURE_RATIO = 5.0
"""Armature relative to the inertia of the moved links. Larger allows more armature."""
TORQUE_RATIO = 20.0
"""Armature beyond that of the links' inertia which torque and acceleration of a joint allow. Larger allows more."""
SIZED_SAMPLES = 200
"""Samples at which inertias are taken."""


def joint_sizes(model: Model, logs: Sequence[Log]) -> dict[str, float]:
    """Typical largest size of the unknowns of each joint that are zero in the file, by path [SI units].

    Bounds are ten times as wide: half of the effort for dry friction, and at least 50 times the links' inertia for
    armature.

    Args:
        model: An arm, for which `inapplicable` gives no reason.
        logs: Prepared logs.
    """
    samples = band_limited(model, logs, BAND).at_most(SIZED_SAMPLES)
    if not len(samples):
        return {}
    effort = _efforts(model, np.abs(samples.torque).max(axis=0))
    speed = np.maximum(np.abs(samples.v).max(axis=0), rest_speeds(model))
    inertia = ARMATURE_RATIO * np.maximum(_link_inertias(model, samples.q), 1e-6)
    moved = np.sqrt(np.mean(samples.torque**2, axis=0) / np.maximum(np.mean(samples.a**2, axis=0), 1e-12))
    sizes = {
        "frictionloss": FRICTION_SHARE * effort,
        "stiction": FRICTION_SHARE * effort,
        "damping": VISCOUS_SHARE * effort / speed,
        "armature": np.maximum(inertia, np.minimum(moved, TORQUE_RATIO * inertia)),
    }
    links, out = [link for link in model.topology.links if link.joint >= 0], {}
    for j, name in enumerate(joint_names(model)):
        for field, size in sizes.items():
            if float(np.asarray(getattr(model.joints, field))[links[j].joint]) == 0 and size[j] > 0:
                out[f"joints/{name}.{field}"] = float(size[j])
    return out


def _efforts(model: Model, recorded: Float[np.ndarray, " joints"]) -> Float[np.ndarray, " joints"]:
    """Largest torque of each joint: its effort limit, or what was recorded if that is more [N m or N]."""
    out = recorded.copy()
    for j, link in enumerate(link for link in model.topology.links if link.joint >= 0):
        if model.joints.force_limited[link.joint]:
            out[j] = max(out[j], float(np.asarray(model.joints.force_range)[link.joint, 1]))
    return out


def _link_inertias(model: Model, q: Float[np.ndarray, "samples joints"]) -> Float[np.ndarray, " joints"]:
    """Largest inertia of the links about each joint, without armature [kg m^2 or kg]."""
    still = np.zeros_like(q)
    gravity = rigid_torques(model, q, still, still)
    units = np.broadcast_to(np.eye(model.nv)[:, None], (model.nv, *q.shape))
    moved = [rigid_torques(model, q, still, np.array(unit))[:, j] - gravity[:, j] for j, unit in enumerate(units)]
    return np.stack(moved).max(axis=1)
