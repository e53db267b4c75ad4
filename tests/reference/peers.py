"""Our fields against both references at once."""

import mujoco
import numpy as np

from tests.comparison import AGREEMENT, assert_fields_agree
from tests.reference.mujoco_fields import acceleration_tolerance, mujoco_fields
from tests.reference.pinocchio_model import PinocchioModel
from truesim.physics.model.model import Model

ACCELERATIONS = ("acceleration", "body accelerations", "motion")
SINGULAR = 1e14
"""A mass matrix with a larger condition number has no accurate inverse in 64-bit numbers."""


def assert_agrees_with_both(ours: dict, m: mujoco.MjModel, model: Model, inputs: tuple, **more: np.ndarray) -> dict:
    """Fails at the first field that differs from MuJoCo's or Pinocchio's; returns the errors.

    Args:
        ours: Our fields.
        m: MuJoCo's model, without constraints and passive forces.
        model: Ours.
        inputs: Configuration, velocity, generalized forces, forces on bodies.
        more: Further fields of MuJoCo.
    """
    theirs = {**mujoco_fields(m, *inputs), **more}
    found = _compare(ours, theirs, theirs["mass matrix"])
    peer = PinocchioModel(model)
    if peer.representable:
        fields = peer.fields(*inputs)
        other = _compare({name: ours[name] for name in fields}, fields, theirs["mass matrix"])
        found |= {f"{name} (Pinocchio)": error for name, error in other.items()}
    return found


def _compare(ours: dict, theirs: dict, M: np.ndarray) -> dict:
    tolerance = acceleration_tolerance(M, AGREEMENT)
    if tolerance > SINGULAR * 1e-16:
        ours, theirs = ({k: x for k, x in f.items() if k not in ACCELERATIONS} for f in (ours, theirs))
    return assert_fields_agree(ours, theirs, **dict.fromkeys(ACCELERATIONS, tolerance))
