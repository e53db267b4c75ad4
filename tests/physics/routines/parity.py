"""Comparison of the table-driven step with MuJoCo."""

from dataclasses import dataclass

import mujoco
import numpy as np

from truesim.physics.routines.engine import Engine
from truesim.physics.routines.from_mujoco import from_mujoco


@dataclass(frozen=True)
class Comparison:
    """Motions of both engines from the same states under the same controls."""

    engine: Engine
    qpos: np.ndarray
    """Largest difference in qpos at the end, by instance."""
    iterations: float
    """Fraction of steps with equal numbers of Newton iterations."""
    solves: float
    """Mean number of iterations a step."""


def compare(model: mujoco.MjModel, *, batch=6, steps=60, spread=0.1, amplitude=0.5, seed=0, **options) -> Comparison:
    """Simulate random initial velocities and controls with both engines."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    qpos = np.tile(data.qpos, (batch, 1))
    qvel = spread * rng.normal(size=(batch, model.nv))
    ctrl = (
        data.ctrl + amplitude * rng.normal(size=(batch, 1, model.nu)) + 0.1 * rng.normal(size=(batch, steps, model.nu))
    )
    engine = Engine(from_mujoco(model), model, **options)
    ours = engine.rollout(qpos, qvel, np.zeros((batch, model.nv)), ctrl)
    expected, counts = np.zeros_like(ours.qpos[:, -1]), np.zeros((batch, steps))
    for b in range(batch):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = qpos[b], qvel[b]
        for t in range(steps):
            data.ctrl[:] = ctrl[b, t]
            mujoco.mj_step(model, data)
            counts[b, t] = data.solver_niter[: max(1, data.nisland)].sum() if data.nefc else 0
        expected[b] = data.qpos
    error = np.abs(ours.qpos[:, -1] - expected).max(axis=1)
    return Comparison(engine, error, float(np.mean(counts == ours.iterations)), float(counts.mean()))
