"""Tiny Differentiable Simulator, called from Python; its wheel is built without derivatives."""

from collections.abc import Callable

import pytinydiffsim as tds

from benchmarks.robots import ARM_COM, ARM_DAMPING, ARM_INERTIA, ARM_LENGTH, ARM_MASS
from benchmarks.timing import Measured, best_seconds

CALLS = 1000
TIMESTEP = 1e-5
"""Time step [s]; small, so that the state stays bounded over many steps."""


def serial_arm(joints: int = 7) -> tds.TinyMultiBody:
    """The serial arm of the benchmarks."""
    inertia = tds.Matrix3()
    for i, row in enumerate(ARM_INERTIA):
        for j, value in enumerate(row):
            inertia[i, j] = value
    arm = tds.TinyMultiBody(False)
    for i in range(joints):
        place = tds.TinySpatialTransform()
        place.translation = tds.Vector3(0, 0, ARM_LENGTH)
        body = tds.RigidBodyInertia(ARM_MASS, tds.Vector3(*ARM_COM), inertia)
        link = tds.TinyLink(tds.JOINT_REVOLUTE_Z if i % 2 == 0 else tds.JOINT_REVOLUTE_Y, place, body)
        link.damping = ARM_DAMPING
        arm.attach_link(link, i - 1, True)
    arm.initialize()
    return arm


def step(patience: float) -> Measured:
    """Time of forward dynamics and an Euler step, minus as many empty calls, which measure the binding."""
    arm, gravity = serial_arm(), tds.Vector3(0, 0, -9.81)

    def full() -> None:
        for _ in range(CALLS):
            tds.forward_dynamics(arm, gravity)
            tds.integrate_euler(arm, TIMESTEP)

    def empty() -> None:
        for _ in range(CALLS):
            arm.clear_forces()
            arm.clear_forces()

    seconds = best_seconds(full, patience / 2) - best_seconds(empty, patience / 2)
    return Measured(seconds / CALLS)


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {"arm": step}
