"""Three machines recorded in MuJoCo: a pendulum, an arm with a payload, and a joint with friction."""

import dataclasses
from collections.abc import Callable

import mujoco
import numpy as np

from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.problem.build import build
from truesim.identification.problem.problem import Problem
from truesim.physics.model.columns import command_columns, position_columns

HEADER = '<mujoco><compiler angle="radian"/><option timestep="0.005" {}><flag contact="disable"/></option><worldbody>'
PENDULUM = (
    HEADER.format('integrator="RK4"')
    + """<body name="bob"><joint name="pivot" axis="0 1 0" damping=".02"/>
  <inertial pos="0 0 -.4" mass="1" diaginertia=".004 .004 .004"/></body></worldbody>
<actuator><motor name="motor" joint="pivot"/></actuator></mujoco>"""
)
ARM = (
    HEADER.format("")
    + """<body name="upper"><joint name="shoulder" axis="0 1 0" damping=".3"/>
  <inertial pos="0 0 -.2" mass="1" diaginertia=".01 .01 .001"/>
  <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".2"/>
    <inertial pos="0 0 -.15" mass=".6" diaginertia=".006 .006 .001"/>
    <body name="payload" pos="0 0 -.3"><inertial pos="0 0 0" mass=".3" diaginertia="1e-4 1e-4 1e-4"/></body>
  </body></body></worldbody>
<actuator><position name="a" joint="shoulder" kp="30" kv="2"/>
  <position name="b" joint="elbow" kp="15" kv="1"/></actuator></mujoco>"""
)
JOINT = (
    HEADER.format("")
    + """<body name="wheel"><joint name="axle" axis="0 0 1" damping=".2" frictionloss=".3" armature=".02"/>
  <inertial pos="0 0 0" mass="1" diaginertia=".03 .03 .03"/></body></worldbody>
<actuator><motor name="motor" joint="axle"/></actuator></mujoco>"""
)


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine, its controls and its free parameters."""

    text: str
    control: Callable[[np.ndarray], np.ndarray]
    """Controls, as rows, at times [s]."""
    free: tuple[str, ...]
    noise: float
    """Standard deviation of the noise of positions [rad]."""

    def problem(self, seconds: float, seed: int = 0) -> Problem:
        """The estimation problem of one recording."""
        return build(loads(self.text), [self.recorded(seconds, seed)], self.free)

    def recorded(self, seconds: float, seed: int) -> Log:
        """Positions and commands, with noise."""
        real = mujoco.MjModel.from_xml_string(self.text)
        data = mujoco.MjData(real)
        time = real.opt.timestep * np.arange(round(seconds / real.opt.timestep))
        u, q = self.control(time).reshape(len(time), real.nu), np.empty((len(time), real.nq))
        for k in range(len(time)):
            q[k] = data.qpos
            data.ctrl[:] = u[k]
            mujoco.mj_step(real, data)
        q += self.noise * np.random.default_rng(seed).normal(size=q.shape)
        model = loads(self.text)
        names = [*position_columns(model), *command_columns(model)]
        return Log(time, dict(zip(names, np.concatenate([q, u], axis=1).T, strict=True)), "simulated")


def _goals(t: np.ndarray) -> np.ndarray:
    return np.stack([0.8 * np.sin(3 * t) + 0.3 * np.sin(8 * t), np.sin(5 * t) - 0.4 * np.sin(11 * t)], axis=1)


MACHINES = {
    "pendulum, mass and length": Machine(
        PENDULUM,
        lambda t: 1.5 * np.sin(4 * t) + 1.0 * np.sin(9 * t),
        ("bodies/bob.mass", "bodies/bob.com[2]"),
        2e-3,
    ),
    "arm, payload": Machine(ARM, _goals, ("bodies/payload.mass", "bodies/payload.com[2]"), 1e-3),
    "joint, friction": Machine(
        JOINT,
        lambda t: 0.9 * np.sin(3 * t) + 0.6 * np.sin(7 * t),
        ("joints/axle.damping", "joints/axle.frictionloss", "joints/axle.armature"),
        1e-3,
    ),
}
"""The machines by name."""
