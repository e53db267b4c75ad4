"""Logs recorded in MuJoCo, and the robots that made them."""

from collections.abc import Callable

import mujoco
import numpy as np

from tests.robots import robot
from truesim.files.logs import Log
from truesim.physics.model.columns import command_columns, position_columns

ARM = """
<mujoco><compiler angle="radian"/><option timestep="0.00390625"><flag contact="disable"/></option><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" damping=".1"/>
    <inertial pos="0 0 -.2" mass="1" diaginertia=".01 .01 .001"/>
    <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".05"/>
      <inertial pos="0 0 -.15" mass=".6" diaginertia=".006 .006 .001"/></body></body>
</worldbody><actuator><motor name="a" joint="shoulder"/><motor name="b" joint="elbow"/></actuator></mujoco>"""
"""A planar arm of two links."""
ARM_FREE = ("bodies/*.mass", "joints/*.damping")
ARM_TRUTH = np.array([1.0, 0.6, 0.1, 0.05])
ARM_WRONG = (
    ARM.replace('mass="1"', 'mass="1.6"').replace('mass=".6"', 'mass=".4"').replace('damping=".1"', 'damping=".2"')
)
"""The same arm with other masses and damping: where searches start."""


def record(
    text: str,
    control: Callable[[float], list[float]],
    seconds: float,
    *,
    every: int = 1,
    noise: float = 0.0,
    seed: int = 0,
    start: tuple[list[float], list[float]] | None = None,
    name: str = "log",
) -> Log:
    """Positions and commands of a robot in MuJoCo.

    Args:
        text: MJCF.
        control: Controls at a time [s], held from sample to sample.
        seconds: Length [s].
        every: Steps from sample to sample.
        noise: Standard deviation of the noise on positions [rad, m].
        seed: Of the noise.
        start: First configuration and velocity, else at rest as the file draws it.
        name: Of the log.
    """
    truth = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(truth)
    if start is not None:
        data.qpos[:], data.qvel[:] = start
    step = truth.opt.timestep * every
    time = step * np.arange(round(seconds / step))
    q, u = np.empty((len(time), truth.nq)), np.empty((len(time), truth.nu))
    for k, t in enumerate(time):
        q[k], u[k] = data.qpos, control(t)
        data.ctrl[:] = u[k]
        for _ in range(every):
            mujoco.mj_step(truth, data)
    q += noise * np.random.default_rng(seed).normal(size=q.shape)
    model = robot(text)
    names = [*position_columns(model), *command_columns(model)]
    return Log(time, dict(zip(names, np.concatenate([q, u], axis=1).T, strict=True)), name)


def wave(t: float) -> list[float]:
    """Torques that move the arm about."""
    return [1.5 * np.sin(3.0 * t) + np.sin(7.1 * t), 0.6 * np.sin(4.3 * t + 1) + 0.3 * np.sin(11.0 * t)]


def arm_log(seconds: float = 2.0, noise: float = 1e-3, seed: int = 0, name: str = "log") -> Log:
    """The arm, moving about."""
    return record(ARM, wave, seconds, noise=noise, seed=seed, name=name)
