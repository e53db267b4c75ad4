"""Logs of a quadruped in MuJoCo, with other contact parameters than its file has."""

from pathlib import Path

import mujoco
import numpy as np

from truesim.files.logs import Log
from truesim.files.robots import load
from truesim.physics.model.columns import joint_position_columns, joint_velocity_columns

FEET = ("FL", "FR", "RL", "RR")
FRICTION, TIME_CONSTANT = 0.45, 0.03
"""Sliding friction and `solref[0]` [s] of the feet while a log is made."""
NOISE, VELOCITY_NOISE = 2e-4, 2e-3
"""Standard deviation of the noise of positions [m, rad] and of velocities [m/s, rad/s]."""


def record(scene: Path, seconds: float, seed: int = 0, *, velocities: bool = False) -> Log:
    """Log of joint and base positions while the legs step in pairs, with a random walk on top.

    Args:
        scene: Scene of a quadruped with position actuators, a keyframe, and feet with the names `FEET`.
        seconds: Duration [s].
        seed: Seed of the random walk and of the noise.
        velocities: True if the log has velocities too.
    """
    m = mujoco.MjModel.from_xml_path(str(scene))
    for foot in FEET:
        m.geom(foot).friction[0], m.geom(foot).solref[0] = FRICTION, TIME_CONSTANT
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    random = np.random.default_rng(seed)
    controls = d.ctrl + _gait(m, round(seconds / m.opt.timestep), random)
    positions, speeds = [], []
    for control in controls:
        d.ctrl[:] = control
        positions.append(np.array(d.qpos))
        speeds.append(np.array(d.qvel))
        mujoco.mj_step(m, d)
    model, joints = load(scene), range(m.njnt)
    columns = {}
    parts = [(joint_position_columns, positions, NOISE), (joint_velocity_columns, speeds, VELOCITY_NOISE)]
    for columns_of, rows, noise in parts[: 1 + velocities]:
        names = [name for j in joints for name in columns_of(model, j)]
        measured = np.stack(rows) + noise * random.normal(size=(len(rows), len(names)))
        columns |= dict(zip(names, measured.T, strict=True))
    columns |= {f"ctrl/{m.actuator(k).name}": controls[:, k] for k in range(m.nu)}
    return Log(name=f"trot-{seed}", time=m.opt.timestep * np.arange(len(positions)), columns=columns)


def _gait(m: mujoco.MjModel, steps: int, random: np.random.Generator) -> np.ndarray:
    """Changes of the position targets: diagonal legs lift in turn, hips sway, and all wander."""
    time = m.opt.timestep * np.arange(steps)
    out, walk = np.zeros((steps, m.nu)), np.zeros(m.nu)
    for t in range(steps):
        walk = 0.99 * walk + 0.02 * random.normal(size=m.nu)
        out[t] = walk
    for k in range(m.nu):
        name = m.actuator(k).name
        phase = 2 * np.pi * (2.5 * time + (0.5 if name[:2] in ("FR", "RL") else 0.0))
        if name.endswith("thigh"):
            out[:, k] += 0.25 * np.sin(phase)
        elif name.endswith("calf"):
            out[:, k] -= 0.35 * np.maximum(np.cos(phase), 0)
        else:
            out[:, k] += 0.1 * np.sin(2 * np.pi * 1.3 * time)
    return out
