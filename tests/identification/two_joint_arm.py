"""A two-joint arm on position servos, stepped by MuJoCo, small enough for kernels to compile in seconds."""

import mujoco
import numpy as np

STEP, NOISE = 5e-3, 5e-4
"""Time between samples [s], and noise of the encoders [rad]."""
LOAD, LOWER = 0.1, 1.0
"""Mass of the load, and of the lower link [kg]."""
FREE = ("bodies/lower.mass", "joints/*.damping", "joints/*.frictionloss")


def xml(load: float = 0.0) -> str:
    """The arm as MJCF, with a load that sits at the lower link's center of mass [kg]."""
    mass = LOWER + load
    return f"""<mujoco><compiler angle="radian"/><option timestep="{STEP}" integrator="implicitfast"/><worldbody>
      <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping="0.5" frictionloss="0.2"
        armature="0.05" range="-2 2" limited="true"/>
        <inertial pos="0 0 -0.15" mass="1.5" diaginertia="0.02 0.02 0.002"/>
      <body name="lower" pos="0 0 -0.3"><joint name="elbow" axis="0 1 0" damping="0.3" frictionloss="0.1"
        armature="0.03" range="-2 2" limited="true"/>
        <inertial pos="0 0 -0.12" mass="{mass}" diaginertia="0.01 0.01 0.001"/></body>
      </body></worldbody><actuator>
      <position name="a1" joint="shoulder" kp="100" kv="8" forcerange="-40 40" ctrlrange="-2 2"/>
      <position name="a2" joint="elbow" kp="60" kv="5" forcerange="-20 20" ctrlrange="-2 2"/></actuator></mujoco>"""


def commands(seconds: float, seed: int = 0) -> np.ndarray:
    """Set points of an arm at work [rad]."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds / STEP))[:, None, None] * STEP
    frequency, phase = rng.uniform(0.2, 0.8, (3, 2)), rng.uniform(0, 2 * np.pi, (3, 2))
    return 0.35 * np.sin(2 * np.pi * frequency * time + phase).sum(axis=1)


def stream(seconds: float, seed: int = 0, picked: float | None = None, substeps: int = 1) -> list[dict[str, float]]:
    """Samples of the arm, which picks up its load at some time [s], with some steps of MuJoCo each."""
    given = commands(seconds, seed)
    first = len(given) if picked is None else round(picked / STEP)
    angles, state = [], (given[0], np.zeros(2))
    for text, part in ((xml(), given[:first]), (xml(LOAD), given[first:])):
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.timestep = STEP / substeps
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = state
        for command in part:
            angles.append(data.qpos.copy())
            data.ctrl[:] = command
            mujoco.mj_step(model, data, substeps)
        state = data.qpos.copy(), data.qvel.copy()
    noisy = np.array(angles) + NOISE * np.random.default_rng(seed).normal(size=(len(given), 2))
    names = ("qpos/shoulder", "qpos/elbow", "ctrl/a1", "ctrl/a2")
    rows = np.concatenate([noisy, given], axis=1).tolist()
    return [{"time": k * STEP, **dict(zip(names, row, strict=True))} for k, row in enumerate(rows)]
