"""MuJoCo's C library, through `mujoco.rollout`, which loops without returning to Python."""

from collections.abc import Callable
from functools import partial

import mujoco
import mujoco.rollout
import numpy as np

from benchmarks.robots import humanoid_xml, quadruped_xml, serial_arm_xml
from benchmarks.scenes import Scene, resting_cube, standing_quadruped
from benchmarks.timing import Measured, best_seconds

BATCH, STEPS, SCENE_STEPS = 64, 50, 100


def step(xml: Callable[[], str], patience: float) -> Measured:
    """Time per step in a loop over robots; larger batches would only exceed the processor's caches."""
    model = mujoco.MjModel.from_xml_string(xml())
    data = mujoco.MjData(model)
    states = np.zeros((BATCH, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    states[:, 1 : 1 + model.nq] = model.qpos0
    velocities = slice(1 + model.nq, 1 + model.nq + model.nv)
    states[:, velocities] = 0.1 * np.random.default_rng(0).normal(size=(BATCH, model.nv))
    controls = np.zeros((BATCH, STEPS, model.nu))
    seconds = best_seconds(lambda: mujoco.rollout.rollout(model, data, states, controls), patience)
    return Measured(seconds / BATCH / STEPS)


def scene(scene: Callable[[], Scene], patience: float) -> Measured:
    """Time per step of a scene with contact, with MuJoCo's default settings."""
    given = scene()
    model = mujoco.MjModel.from_xml_string(given.xml)
    data = mujoco.MjData(model)
    states = np.zeros((BATCH, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    states[:, 1 : 1 + model.nq] = given.q
    states[:, 1 + model.nq : 1 + model.nq + model.nv] = given.velocities(BATCH)
    controls = np.tile(np.array(given.command), (BATCH, SCENE_STEPS, 1))
    ends = mujoco.rollout.rollout(model, data, states, controls)[0]
    given.check(ends[:, -1, 3])
    seconds = best_seconds(lambda: mujoco.rollout.rollout(model, data, states, controls), patience)
    return Measured(seconds / BATCH / SCENE_STEPS)


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "arm": partial(step, serial_arm_xml),
    "quadruped": partial(step, quadruped_xml),
    "humanoid": partial(step, humanoid_xml),
    "resting cube": partial(scene, resting_cube),
    "standing quadruped": partial(scene, standing_quadruped),
}
