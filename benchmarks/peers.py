"""The peers' side of every measurement."""

from collections.abc import Callable

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.measure import best_seconds, main
from benchmarks.robots import humanoid_xml, quadruped_xml, serial_arm_xml


def mujoco_step(xml: str, batch: int = 64, steps: int = 50) -> dict:
    """Microseconds of a step of MuJoCo C, called through `mujoco.rollout`."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.zeros((batch, size))
    states[:, 1 : 1 + model.nq] = model.qpos0
    velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
    states[:, velocities] = 0.1 * np.random.default_rng(0).normal(size=(batch, model.nv))
    controls = np.zeros((batch, steps, model.nu))
    seconds = best_seconds(lambda: mujoco.rollout.rollout(model, data, states, controls), 10)
    return {"us": 1e6 * seconds / batch / steps, "version": mujoco.__version__}


def pinocchio_derivatives() -> dict:
    """Microseconds of Pinocchio's `computeABADerivatives`, an empty call subtracted."""
    import pinocchio

    model = pinocchio.Model()
    inertia = np.array([[0.01, 0.0005, 0.0003], [0.0005, 0.012, 0.0002], [0.0003, 0.0002, 0.005]])
    parent = 0
    for i in range(7):
        joint = pinocchio.JointModelRZ() if i % 2 == 0 else pinocchio.JointModelRY()
        parent = model.addJoint(parent, joint, pinocchio.SE3(np.eye(3), np.array([0, 0, 0.2])), f"j{i}")
        body = pinocchio.Inertia(1.0, np.array([0.01, 0.02, 0.1]), inertia)
        model.appendBodyToJoint(parent, body, pinocchio.SE3.Identity())
    data = model.createData()
    q, v, tau = np.random.default_rng(0).normal(size=(3, 7))
    repeats = 2000

    def derivatives() -> None:
        for _ in range(repeats):
            pinocchio.computeABADerivatives(model, data, q, v, tau)

    def empty() -> None:
        for _ in range(repeats):
            pinocchio.neutral  # noqa: B018

    seconds = best_seconds(derivatives, 5) - best_seconds(empty, 5)
    return {"us": 1e6 * seconds / repeats, "version": pinocchio.__version__}


MEASUREMENTS: dict[str, Callable[[], dict]] = {
    "arm": lambda: mujoco_step(serial_arm_xml()),
    "quadruped": lambda: mujoco_step(quadruped_xml()),
    "humanoid": lambda: mujoco_step(humanoid_xml()),
    "acceleration_derivatives": pinocchio_derivatives,
}

if __name__ == "__main__":
    main(MEASUREMENTS)
