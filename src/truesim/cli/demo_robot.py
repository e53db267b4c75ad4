"""The "real" robot of the demo: the built-in arm in MuJoCo, with effects that the robot file does not have.

Its hand carries a tool, its joints have Coulomb friction with the Stribeck effect, commands are delayed, encoders are
noisy, and the integrator is another one with a quarter of the time step.
"""

from pathlib import Path

import mujoco
import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import write_log

TRUE_MASSES = {"forearm": 1.25, "hand": 1.15}
"""True masses [kg]; the file says 1.1 and 0.7."""
TRUE_DAMPING = (0.9, 0.9, 0.4, 0.15)
"""[N m s/rad]"""
TRUE_FRICTION = np.array([0.35, 0.5, 0.25, 0.08])
"""Coulomb friction [N m]; static friction is a third larger."""
TRUE_STRIBECK_VELOCITY = 0.05
"""[rad/s]"""
TRUE_DELAY = 0.008
"""Of the commands [s]."""
ENCODER_NOISE = 5e-4
"""Of the encoders [rad]."""
RUN_SECONDS, RUN_PERIOD, RUN_SUBSTEPS = 6.0, 0.002, 4


def record(robot: Path, log: Path, seed: int, seconds: float = RUN_SECONDS) -> None:
    """Move the real robot along sums of sines and write commands and measurements.

    Args:
        robot: The robot file; its servos are used.
        log: CSV to write.
        seed: Seed of the motion and the noise.
        seconds: Duration [s].
    """
    model, data = _real(robot)
    rng = np.random.default_rng(seed)
    time = np.arange(0, seconds, RUN_PERIOD)
    command = _motion(time, rng)
    delayed = np.stack([np.interp(time - TRUE_DELAY, time, column) for column in command.T], axis=1)
    data.qpos[:] = command[0]
    measured = np.empty_like(command)
    for k in range(len(time)):
        measured[k] = data.qpos
        data.ctrl[:] = delayed[k]
        for _ in range(RUN_SUBSTEPS):
            data.qfrc_applied[:] = _friction(data.qvel)
            mujoco.mj_step(model, data)
    measured += ENCODER_NOISE * rng.normal(size=measured.shape)
    names = [model.actuator(k).name for k in range(model.nu)]
    columns = {"time": time}
    columns |= {f"ctrl/{name}": command[:, k] for k, name in enumerate(names)}
    columns |= {f"sensor/{name}": measured[:, k] for k, name in enumerate(names)}
    write_log(log, columns)


def _real(robot: Path) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_path(str(robot))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = RUN_PERIOD / RUN_SUBSTEPS
    for name, mass in TRUE_MASSES.items():
        model.body_mass[model.body(name).id] = mass
    model.dof_damping.reshape(model.nv, -1)[:, 0] = TRUE_DAMPING
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    mujoco.mj_resetData(model, data)
    return model, data


def _motion(time: Float[np.ndarray, " samples"], rng: np.random.Generator) -> Float[np.ndarray, "samples 4"]:
    """Targets of the servos: a few sines each, starting from rest [rad]."""
    phase = 2 * np.pi * time[:, None, None] * rng.uniform(0.2, 1.2, (1, 4, 3)) + rng.uniform(0, 6, (1, 4, 3))
    swing = np.array([0.9, 0.5, 0.7, 0.7]) * np.sin(phase).mean(axis=-1)
    begin = np.minimum(time / 0.5, 1.0)[:, None]
    return np.array([0.0, 0.5, 0.8, 0.3]) + begin * swing


def _friction(v: Float[np.ndarray, " nv"]) -> Float[np.ndarray, " nv"]:
    """Coulomb friction with the Stribeck effect [N m]."""
    level = TRUE_FRICTION * (1 + np.exp(-((v / TRUE_STRIBECK_VELOCITY) ** 2)) / 3)
    return -level * np.tanh(v / 0.005)
