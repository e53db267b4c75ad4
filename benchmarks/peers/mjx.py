"""MJX's step, compiled by XLA and by our compiler, in its own precision: float32."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import mujoco
import numpy as np
from mujoco import mjx

from benchmarks.robots import cube_xml, quadruped_xml
from benchmarks.timing import Measured, best_seconds, elapsed
from truesim import native

BATCH, STEPS = 256, 100


def step(device: Any, data: Any, q: Any, v: Any) -> Any:
    """Position, velocity and acceleration after one step of MJX."""
    after = mjx.step(device, data.replace(qpos=q, qvel=v))
    return after.qpos, after.qvel, after.qacc


def arguments(xml: str, batch: int = BATCH) -> tuple[Any, Any, Any, Any]:
    """Model and empty state, which are shared, and a batch of positions and velocities.

    Robots start up to 3 mm below their resting height, with all contacts closed and random velocities.
    """
    model = mujoco.MjModel.from_xml_string(xml)
    device = mjx.put_model(model)
    data = mjx.make_data(device)
    rng = np.random.default_rng(0)
    q = np.tile(np.asarray(data.qpos), (batch, 1))
    q[:, 2] -= rng.uniform(0, 0.003, batch)
    q[:, 7:] += 0.05 * rng.normal(size=q[:, 7:].shape)
    v = 0.3 * rng.normal(size=(batch, model.nv)).astype(q.dtype)
    return device, data, q, v


def by_xla(xml: Callable[[], str], patience: float) -> Measured:
    """Time per step and batch element of MJX compiled by XLA, with all arrays on the device."""
    args = jax.device_put(arguments(xml()))
    compiled: list[Any] = []
    batched = jax.jit(jax.vmap(step, (None, None, 0, 0)))
    compilation = elapsed(lambda: compiled.append(batched.lower(*args).compile()))
    seconds = best_seconds(lambda: jax.block_until_ready(compiled[0](*args)), patience)
    return Measured(seconds / BATCH, compilation, _flat(compiled[0](*args)))


def by_kernel(xml: Callable[[], str], patience: float) -> Measured:
    """Time per step and batch element of the same step compiled by `native.compile`."""
    args = jax.tree.map(np.asarray, arguments(xml()))
    compiled: list[Any] = []
    compilation = elapsed(lambda: compiled.append(native.compile(step, *args[:2], args[2][0], args[3][0])))
    seconds = best_seconds(lambda: compiled[0](*args), patience)
    return Measured(seconds / BATCH, compilation, _flat(compiled[0](*args)))


def free(steps: int, patience: float) -> Measured:
    """Time per step of the quadruped without contact, with all of `Data` carried as in MJX's own benchmark."""
    device, data, q, v = arguments(quadruped_xml())
    batch = jax.vmap(lambda q, v: data.replace(qpos=q, qvel=v))(q, v)

    def advance(device: Any, batch: Any) -> Any:
        batched = jax.vmap(mjx.step, (None, 0))
        return jax.lax.scan(lambda data, _: (batched(device, data), None), batch, length=steps)[0]

    args = jax.device_put((device, batch))
    compiled: list[Any] = []
    compilation = elapsed(lambda: compiled.append(jax.jit(advance).lower(*args).compile()))
    seconds = best_seconds(lambda: jax.block_until_ready(compiled[0](*args)), patience)
    return Measured(seconds / BATCH / steps, compilation)


def _flat(arrays: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(np.ravel(array).tolist()) for array in arrays)


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "cube": partial(by_xla, cube_xml),
    "cube kernel": partial(by_kernel, cube_xml),
    "quadruped": partial(by_xla, partial(quadruped_xml, contact=True)),
    "quadruped kernel": partial(by_kernel, partial(quadruped_xml, contact=True)),
    "free quadruped": partial(free, 1),
    "free rollout": partial(free, STEPS),
}
