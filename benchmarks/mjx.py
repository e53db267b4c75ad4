"""MJX, run by XLA and by our kernels, on one core."""

from collections.abc import Callable
from typing import Any

import jax
import mujoco
import numpy as np
from mujoco import mjx

from benchmarks.measure import best_seconds, main
from benchmarks.robots import cube_xml, quadruped_xml
from truesim import native

BATCH = 256


def case(xml: str, batch: int = BATCH) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """One step of MJX as a function, with a batch of arguments; the model is shared.

    Robots start up to 3 mm below where they stand, all contacts closed, and move at random.
    """
    model = mujoco.MjModel.from_xml_string(xml)
    device = mjx.put_model(model)
    data = mjx.make_data(device)
    rng = np.random.default_rng(0)
    q = np.tile(np.asarray(data.qpos), (batch, 1))
    q[:, 2] -= rng.uniform(0, 0.003, batch)
    q[:, 7:] += 0.05 * rng.normal(size=q[:, 7:].shape)
    v = 0.3 * rng.normal(size=(batch, model.nv)).astype(q.dtype)

    def step(device: Any, data: Any, q: Any, v: Any) -> Any:
        after = mjx.step(device, data.replace(qpos=q, qvel=v))
        return after.qpos, after.qvel, after.qacc

    shared = jax.tree.map(np.asarray, (device, data))
    return step, (*shared, q, v)


def compare(xml: str) -> dict:
    """Microseconds of a step, an instance, by our kernel and by XLA, and their largest difference."""
    step, args = case(xml)
    kernel = native.compile(step, *args[:2], args[2][0], args[3][0])
    ours = best_seconds(lambda: kernel(*args), 50)
    compiled = jax.jit(jax.vmap(step, (None, None, 0, 0)))
    theirs = best_seconds(lambda: jax.block_until_ready(compiled(*args)), 3)
    pairs = zip(kernel(*args), compiled(*args), strict=True)
    difference = max(float(np.max(np.abs(a - b)) / (1 + np.max(np.abs(b)))) for a, b in pairs)
    return {"us": 1e6 * ours / BATCH, "xla": 1e6 * theirs / BATCH, "difference": difference}


def quadruped_by_xla() -> dict:
    """Microseconds of a step of the quadruped without contact, by XLA."""
    step, args = case(quadruped_xml())
    compiled = jax.jit(jax.vmap(step, (None, None, 0, 0)))
    return {"us": 1e6 * best_seconds(lambda: jax.block_until_ready(compiled(*args)), 3) / BATCH}


MEASUREMENTS: dict[str, Callable[[], dict]] = {
    "cube": lambda: compare(cube_xml()),
    "quadruped": lambda: compare(quadruped_xml(contact=True)),
    "quadruped_free": quadruped_by_xla,
}

if __name__ == "__main__":
    main(MEASUREMENTS)
