"""Brax's engine in generalized coordinates, compiled by XLA, in its own precision: float32."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import mujoco
import numpy as np
from brax.generalized import pipeline
from brax.io import mjcf

from benchmarks.robots import quadruped_xml, serial_arm_xml
from benchmarks.timing import Measured, best_seconds, elapsed

BATCH = 256
MARKER = '<geom size="0.01" contype="0" conaffinity="0" mass="0"/>'
"""A geom without contact and mass: brax does not read robots without geoms."""


def step(xml: Callable[[], str], patience: float) -> Measured:
    """Time per step and batch element."""
    model = mujoco.MjModel.from_xml_string(xml().replace("<inertial", f"{MARKER}<inertial", 1))
    system = mjcf.load_model(model)
    q = np.tile(model.qpos0, (BATCH, 1)).astype(np.float32)
    v = 0.1 * np.random.default_rng(0).normal(size=(BATCH, model.nv)).astype(np.float32)
    action = np.zeros((BATCH, model.nu), np.float32)
    states = jax.jit(jax.vmap(partial(pipeline.init, system)))(q, v)
    args = jax.device_put((states, action))
    compiled: list[Any] = []
    advance = jax.jit(jax.vmap(partial(pipeline.step, system)))
    compilation = elapsed(lambda: compiled.append(advance.lower(*args).compile()))
    seconds = best_seconds(lambda: jax.block_until_ready(compiled[0](*args)), patience)
    return Measured(seconds / BATCH, compilation)


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "arm": partial(step, serial_arm_xml),
    "quadruped": partial(step, quadruped_xml),
}
