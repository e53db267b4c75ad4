"""Steps and derivatives of MuJoCo for the planner: `mj_step`, and finite differences by `mjd_transitionFD`."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np

from truesim.physics.routines.engine import Rollout

EPSILON = 1e-6
"""Size of the differences, one-sided, as in MJPC."""


class MujocoSteps:
    """Stands for the routines and their derivatives in a planner."""

    def __init__(self, model: mujoco.MjModel, timestep: float, threads: int = 1):
        self.model, self.threads = model, threads
        model.opt.timestep = timestep
        self.data = [mujoco.MjData(model) for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads)

    def rollout(
        self, qpos: np.ndarray, qvel: np.ndarray, warmstart: np.ndarray, ctrl: np.ndarray, *rest: Any
    ) -> Rollout:
        """Simulate a batch from states under controls (batch, steps, nu)."""
        batch, steps, _ = ctrl.shape
        m = self.model
        q, v, a = np.empty((batch, steps, m.nq)), np.empty((batch, steps, m.nv)), np.empty((batch, steps, m.nv))
        timestep = float(rest[1]["timestep"][0]) if len(rest) > 1 and "timestep" in rest[1] else m.opt.timestep
        before, m.opt.timestep = m.opt.timestep, timestep

        def run(thread: int) -> None:
            data = self.data[thread]
            for i in range(thread, batch, self.threads):
                data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = qpos[i], qvel[i], warmstart[i]
                for k in range(steps):
                    data.ctrl[:] = ctrl[i, k]
                    mujoco.mj_step(m, data)
                    q[i, k], v[i, k], a[i, k] = data.qpos, data.qvel, data.qacc_warmstart

        self._all(run)
        m.opt.timestep = before
        return Rollout(q, v, a, np.zeros((batch, steps), int))

    def jacobian(self, states: Sequence[np.ndarray], *rest: Any) -> tuple[np.ndarray, np.ndarray, dict]:
        """Jacobians of a step by `[dq, dv]` and by the control."""
        m, batch = self.model, len(states[0])
        A, B = np.empty((batch, 2 * m.nv, 2 * m.nv)), np.empty((batch, 2 * m.nv, m.nu))

        def run(thread: int) -> None:
            data = self.data[thread]
            for i in range(thread, batch, self.threads):
                data.qpos[:], data.qvel[:], data.qacc_warmstart[:], data.ctrl[:] = (x[i] for x in states)
                mujoco.mjd_transitionFD(m, data, EPSILON, False, A[i], B[i], None, None)

        self._all(run)
        return A, B, {}

    def _all(self, run: Any) -> None:
        list(self.pool.map(run, range(self.threads))) if self.threads > 1 else run(0)
