"""Pinocchio's derivatives of the articulated-body algorithm, called from Python."""

from collections.abc import Callable

import numpy as np
import pinocchio

from benchmarks.robots import ARM_COM, ARM_INERTIA, ARM_LENGTH, ARM_MASS
from benchmarks.timing import Measured, best_seconds

CALLS = 1000


def serial_arm(joints: int) -> pinocchio.Model:
    """The serial arm of the benchmarks; with zero joints, an empty model."""
    model = pinocchio.Model()
    place = pinocchio.SE3(np.eye(3), np.array([0, 0, ARM_LENGTH]))
    inertia = pinocchio.Inertia(ARM_MASS, np.array(ARM_COM), np.array(ARM_INERTIA))
    for i in range(joints):
        joint = pinocchio.JointModelRZ() if i % 2 == 0 else pinocchio.JointModelRY()
        added = model.addJoint(i, joint, place, f"j{i + 1}")
        model.appendBodyToJoint(added, inertia, pinocchio.SE3.Identity())
    return model


def derivatives(patience: float) -> Measured:
    """Time of `computeABADerivatives` for seven joints, minus the same call on an empty model."""
    full, empty = (best_seconds(_calls(serial_arm(joints)), patience / 2) / CALLS for joints in (7, 0))
    return Measured(full - empty)


def _calls(model: pinocchio.Model) -> Callable[[], None]:
    data = model.createData()
    q, v, tau = np.random.default_rng(0).normal(size=(3, model.nv))

    def repeat() -> None:
        for _ in range(CALLS):
            pinocchio.computeABADerivatives(model, data, q, v, tau)

    return repeat


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {"derivatives": derivatives}
