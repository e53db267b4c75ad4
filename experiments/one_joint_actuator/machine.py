"""The "real" joint: stepped by MuJoCo at 20 kHz, with a late command, a biased encoder and noise.

The servo uses the true angle; only the log has the bias. The delay is exact and shares no code with delays in truesim:
MuJoCo gets the delayed command at each of its own steps.
"""

import mujoco
import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log

ROBOT = """
<mujoco model="one_joint"><option timestep="{step}" integrator="implicitfast" gravity="0 0 0"/>
  <worldbody><body name="link"><joint name="joint" axis="0 0 1" armature="{armature}" damping="{viscous}"
    frictionloss="{coulomb}"/><inertial pos="0 0 0" mass="1" diaginertia="1e-3 1e-3 1e-3"/></body></worldbody>
  <actuator><position name="servo" joint="joint" kp="85" kv="0.6"/></actuator></mujoco>"""
RATE, SECONDS, FINE = 400, 20.0, 50
"""Samples of the log per second, its length [s], and steps of the real machine within a sample."""
TRUTH = {"armature": 0.1, "viscous": 4.5, "coulomb": 0.05, "bias": 0.05}
"""Armature [kg m^2], viscous [N m s/rad] and Coulomb friction [N m], and bias of the encoder [rad]."""
START = {"armature": 0.05, "viscous": 2.0, "coulomb": 0.02}
"""Values in the robot's file."""
NOISE = 0.5e-3
"""Standard deviation of the encoder noise [rad]."""
AMPLITUDE = 0.6
"""Amplitude of the chirp from 0.1 to 10 Hz [rad]."""


def robot(step: float, armature: float, viscous: float, coulomb: float) -> str:
    """The robot's file, with a time step [s]."""
    return ROBOT.format(step=step, armature=armature, viscous=viscous, coulomb=coulomb)


def chirp(time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The command, held over each sample [rad]."""
    held = np.floor(np.clip(time, 0.0, None) * RATE + 1e-6) / RATE
    low, high = 0.1, 10.0
    return AMPLITUDE * np.sin(2 * np.pi * (low * held + (high - low) * held**2 / (2 * SECONDS)))


def recorded(delay: float, seed: int = 0, seconds: float = SECONDS) -> Log:
    """A log of the real joint, whose commands act `delay` seconds late."""
    step = 1 / (RATE * FINE)
    real = {name: TRUTH[name] for name in START}
    model = mujoco.MjModel.from_xml_string(robot(step, **real))
    data = mujoco.MjData(model)
    samples = int(seconds * RATE)
    late = chirp(np.arange(samples * FINE) * step - delay)
    angle = np.empty(samples)
    for k, command in enumerate(late):
        if k % FINE == 0:
            angle[k // FINE] = data.qpos[0]
        data.ctrl[0] = command
        mujoco.mj_step(model, data)
    time = np.arange(samples) / RATE
    noise = np.random.default_rng(seed).normal(0.0, NOISE, samples)
    return Log(
        time, {"qpos/joint": angle + TRUTH["bias"] + noise, "ctrl/servo": chirp(time)}, f"delay_{1e3 * delay:g}ms"
    )
