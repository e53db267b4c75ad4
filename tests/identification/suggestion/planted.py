"""Machines with a flaw that their robot file does not know, moved and recorded in MuJoCo."""

from collections.abc import Callable

import mujoco
import numpy as np

from truesim.files.logs import Log

ARM2 = """
<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"><flag contact="disable"/></option>
<worldbody>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping=".15" armature=".02"/>
    <inertial pos="0 0 -.2" mass="1.2" diaginertia=".02 .02 .002"/>
    <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".08" armature=".01"/>
      <inertial pos="0 0 -.15" mass=".7" diaginertia=".008 .008 .001"/></body></body></worldbody>
<actuator><motor name="shoulder" joint="shoulder" gear="1"/><motor name="elbow" joint="elbow"/></actuator></mujoco>"""
"""Two links and two motors."""

ARM3 = """
<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"><flag contact="disable"/></option>
<worldbody>
  <body name="base" pos="0 0 .5"><joint name="yaw" axis="0 0 1" damping=".3" armature=".05"/>
    <inertial pos="0 0 .1" mass="2" diaginertia=".02 .02 .02"/>
    <body name="upper" pos="0 0 .2"><joint name="lift" axis="0 1 0" damping=".3" armature=".05"/>
      <inertial pos=".15 0 0" mass="1.5" diaginertia=".003 .02 .02"/>
      <body name="fore" pos=".3 0 0"><joint name="bend" axis="0 1 0" damping=".1" armature=".02"/>
        <inertial pos=".12 0 0" mass=".8" diaginertia=".001 .008 .008"/></body></body></body></worldbody>
<actuator><position name="yaw" joint="yaw" kp="60" kv="3"/><position name="lift" joint="lift" kp="90" kv="4"/>
  <position name="bend" joint="bend" kp="50" kv="2"/></actuator></mujoco>"""
"""Three links in space and three servos."""

POLE = """
<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"><flag contact="disable"/></option>
<worldbody><body name="pole" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping=".02" armature=".01"/>
  <inertial pos="0 0 -.3" mass=".8" diaginertia=".02 .02 .001"/></body></worldbody>
<actuator><motor name="hinge" joint="hinge"/></actuator></mujoco>"""
"""One link and a motor."""

Flaw = Callable[[mujoco.MjModel, mujoco.MjData], np.ndarray]
NOISE = 1e-4
"""Of the encoders [rad]."""


def recorded(
    text: str, seed: int, flaw: Flaw | None = None, *, size: float = 2.0, seconds: float = 6.0, lag: float = 0.0
) -> Log:
    """A log of a machine that moves along sums of sines.

    Args:
        text: Its MJCF.
        seed: Decides the motion and the noise.
        flaw: Generalized forces beyond the model [N m].
        size: Of the commands.
        seconds: How long [s].
        lag: Time constant with which commands take effect [s].
    """
    model = mujoco.MjModel.from_xml_string(text)
    data, rng, dt = mujoco.MjData(model), np.random.default_rng(seed), model.opt.timestep
    time = np.arange(0, seconds, dt)
    command = np.zeros((len(time), model.nu))
    for k in range(model.nu):
        f, a, p = rng.uniform(0.2, 2.5, 5), rng.uniform(0.3, 1, 5), rng.uniform(0, 6.28, 5)
        command[:, k] = size / 2 * np.sum(a * np.sin(2 * np.pi * np.outer(time, f) + p), axis=1) / (k + 1) ** 0.5
    if model.nu and model.actuator_biastype[0]:
        data.qpos[:] = command[0]
    measured, held = np.empty((len(time), model.nq)), command[0].copy()
    for k in range(len(time)):
        measured[k] = data.qpos
        held += (command[k] - held) * (1 - np.exp(-dt / lag) if lag else 1.0)
        data.ctrl[:] = held
        data.qfrc_applied[:] = 0 if flaw is None else flaw(model, data)
        mujoco.mj_step(model, data)
    measured += NOISE * rng.normal(size=measured.shape)
    columns = {f"qpos/{model.joint(j).name}": measured[:, j] for j in range(model.nq)}
    columns |= {f"ctrl/{model.actuator(k).name}": command[:, k] for k in range(model.nu)}
    return Log(time, columns, name=f"run{seed}")


def stribeck(joint: int, coulomb: float = 0.3, breakaway: float = 0.25, speed: float = 0.1) -> Flaw:
    """Dry friction that is highest at the onset of motion."""

    def force(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        v, out = data.qvel[joint], np.zeros(model.nv)
        out[joint] = -(coulomb + breakaway * np.exp(-((v / speed) ** 2))) * np.tanh(v / (speed / 5))
        return out

    return force


def drag(body: str, factor: float = 0.15) -> Flaw:
    """Force at the center of mass against the square of its velocity."""

    def force(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        k, J = model.body(body).id, np.zeros((3, model.nv))
        mujoco.mj_jacBodyCom(model, data, J, None, k)
        u = J @ data.qvel
        return -factor * np.linalg.norm(u) * J.T @ u

    return force


def geared(joint: int, part: float = 0.4) -> Flaw:
    """Dry friction that is a part of what the motor exerts."""

    def force(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        out = np.zeros(model.nv)
        out[joint] = -part * np.abs(data.ctrl[joint]) * np.tanh(data.qvel[joint] / 0.02)
        return out

    return force


def spring(joint: int, stiffness: float = 1.5, rest: float = 0.4) -> Flaw:
    """A spring between a link and the one before it."""

    def force(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
        out = np.zeros(model.nv)
        out[joint] = -stiffness * (data.qpos[joint] - rest)
        return out

    return force
