"""MuJoCo's C library, through `mujoco.rollout`, which loops without returning to Python."""

from collections.abc import Callable
from functools import partial

import mujoco
import mujoco.rollout
import numpy as np

from truesim.bench.robots import humanoid_xml, quadruped_xml, serial_arm_xml
from truesim.bench.timing import Measured, best_seconds

BATCH, STEPS = 64, 50


def step(xml: Callable[[], str], patience: float) -> Measured:
    """A step of one robot after the other; more of them at a time would only leave the processor's caches."""
    model = mujoco.MjModel.from_xml_string(xml())
    data = mujoco.MjData(model)
    states = np.zeros((BATCH, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    states[:, 1 : 1 + model.nq] = model.qpos0
    velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
    states[:, velocities] = 0.1 * np.random.default_rng(0).normal(size=(BATCH, model.nv))
    controls = np.zeros((BATCH, STEPS, model.nu))
    seconds = best_seconds(lambda: mujoco.rollout.rollout(model, data, states, controls), patience)
    return Measured(seconds / BATCH / STEPS)


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "arm": partial(step, serial_arm_xml),
    "quadruped": partial(step, quadruped_xml),
    "humanoid": partial(step, humanoid_xml),
}
