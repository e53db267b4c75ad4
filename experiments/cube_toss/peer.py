"""The cube in MuJoCo, with its own parameters of contact."""

from pathlib import Path

import mujoco
import numpy as np

from experiments.cube_toss.ours import PLACES, SUBSTEPS
from experiments.cube_toss.search import Number, Values
from experiments.cube_toss.tosses import GRAVITY, RATE, Tosses, exponential
from truesim.core.typing import Float

NUMBERS = (
    Number("friction", 0.2, 0.3, 0.02, 1.0, ratio=True),
    Number("time constant", 0.02, 0.6, 0.005, 0.2, ratio=True),
    Number("damping ratio", 1.0, 0.5, 0.05, 3.0, ratio=True),
    Number("impedance 0", 0.9, 0.1, 0.05, 0.98),
    Number("impedance 1", 0.95, 0.05, 0.3, 0.999),
    Number("impedance width", 1e-3, 0.8, 1e-4, 0.02, ratio=True),
    Number("impedance midpoint", 0.5, 0.15, 0.1, 0.9),
    Number("impedance power", 2.0, 0.5, 1.0, 5.0),
    Number("half side", 0.0512, 4e-4, 0.0495, 0.0525),
    Number("rounding", 1.5e-3, 1e-3, 1e-5, 6e-3),
)
"""Friction, solref and solimp, and the size of the cube and the rounding of its edges, as in ours."""


class MuJoCo:
    """Simulates tosses with candidates of the numbers."""

    def __init__(self, rig: Path, places: Values | None = None):
        self.model = mujoco.MjModel.from_xml_path(str(rig))
        self.model.opt.timestep = 1 / RATE / SUBSTEPS
        self.model.opt.gravity[:] = 0, 0, -GRAVITY
        self.model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.data = mujoco.MjData(self.model)
        if places is not None:
            self._place({n.name: places[n.name] for n in PLACES})

    def __call__(self, numbers: Values, tosses: Tosses) -> Float[np.ndarray, "tosses frames 7"]:
        """Every toss with these numbers."""
        self._set(numbers)
        out = np.zeros(tosses.frames.shape)
        for k, length in enumerate(tosses.lengths):
            mujoco.mj_resetData(self.model, self.data)
            self.data.qpos[:], self.data.qvel[:] = tosses.q[k], tosses.v[k]
            for frame in range(length):
                out[k, frame] = self.data.qpos
                mujoco.mj_step(self.model, self.data, SUBSTEPS)
            out[k, length:] = out[k, length - 1]
        return out

    def _set(self, numbers: Values) -> None:
        m = self.model
        m.geom_friction[:] = numbers["friction"], 0, 0
        m.geom_solref[:] = numbers["time constant"], numbers["damping ratio"]
        m.geom_solimp[:] = [numbers[f"impedance {k}"] for k in ("0", "1", "width", "midpoint", "power")]
        m.geom_size[1] = numbers["half side"] - numbers["rounding"]
        m.geom_margin[:] = 0, numbers["rounding"]

    def _place(self, places: Values) -> None:
        m = self.model
        m.geom_pos[0, 2] = places["table height"]
        m.geom_quat[0] = exponential(np.array([places["table tilt x"], places["table tilt y"], 0.0]))
        m.geom_pos[1] = [places[f"cube shift {k}"] for k in "xyz"]
        m.geom_quat[1] = exponential(np.array([places[f"cube turn {k}"] for k in "xyz"]))
        m.body_inertia[1] *= places["inertia"]
        mujoco.mj_setConst(m, self.data)
