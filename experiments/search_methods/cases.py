"""What is identified: the lecture's pair of latency and strength, and the servo of one joint."""

import dataclasses
from collections.abc import Mapping

import mujoco
import numpy as np

from experiments.one_joint_actuator import __main__ as one_joint
from experiments.one_joint_actuator import machine
from truesim.data import Log
from truesim.formats import loads
from truesim.identify.build import build
from truesim.identify.search import OpenLoop
from truesim.model import paths

LEG = """
<mujoco model="leg"><option timestep="{step}" integrator="implicitfast"/>
  <worldbody><body name="leg"><joint name="knee" axis="0 1 0" damping="0.5"/>
    <inertial pos="0 0 -0.3" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>
  <actuator><general name="motor" joint="knee" gainprm="{strength}"/></actuator></mujoco>"""
RATE, FINE, SECONDS = 500, 20, 4.0
"""Samples a second, steps of the real leg within a sample, and the length of the log [s]."""
STEP = 0.5e-3
"""Step of the simulator in the fit [s]."""
STRENGTH, LATENCY = 10.0, 5e-3
"""Truth: torque of the full command [N m], and how late commands act [s]."""
FIRST_STRENGTH, FIRST_LATENCY = 2.0, 1e-3
"""What the robot's file says."""
NOISE = 0.5e-3
"""Of the encoder [rad]."""
GAIN, DELAY = "actuators/motor.gain", "actuators/motor.delay"


@dataclasses.dataclass(frozen=True)
class Case:
    """Something to identify, with known truth."""

    name: str
    objective: OpenLoop
    truth: Mapping[str, float]
    """By path [SI units]."""
    allowed: Mapping[str, float]
    """Largest error [SI units]."""


def lecture(threads: int = 1) -> Case:
    """Latency 5 ms and strength 10 N m, from 1 ms and 2 N m (Tan, Sim-to-Real: An Incomplete Overview, 2022)."""
    model = paths.write(loads(LEG.format(step=STEP, strength=FIRST_STRENGTH)), DELAY, FIRST_LATENCY)
    problem = build(model, [swung_leg()], [GAIN, DELAY])
    return Case(
        "latency and strength of the lecture",
        OpenLoop(problem, window=SECONDS, threads=threads),
        {GAIN: STRENGTH, DELAY: LATENCY},
        {GAIN: 0.01 * STRENGTH, DELAY: 0.5e-3},
    )


def servo(threads: int = 1, seconds: float = machine.SECONDS) -> Case:
    """Friction, armature, encoder bias and delay of a servo, from a chirp."""
    delay = 12.5e-3
    model = loads(machine.robot(one_joint.STEP, **machine.START))
    problem = build(model, [machine.recorded(delay, seconds=seconds)], list(one_joint.FREE.values()))
    truth = {**machine.TRUTH, "delay": delay}
    return Case(
        "servo of one joint",
        OpenLoop(problem, window=seconds, threads=threads),
        {path: truth[name] for name, path in one_joint.FREE.items()},
        {path: one_joint.allowed(name, truth[name]) for name, path in one_joint.FREE.items()},
    )


def swung_leg(seed: int = 0) -> Log:
    """A log of the real leg: stepped by MuJoCo at 10 kHz, driven by three sines, commands late."""
    step = 1 / (RATE * FINE)
    model = mujoco.MjModel.from_xml_string(LEG.format(step=step, strength=STRENGTH))
    data = mujoco.MjData(model)
    samples = int(SECONDS * RATE)
    angle = np.empty(samples)
    for k, command in enumerate(_command(np.arange(samples * FINE) * step - LATENCY)):
        if k % FINE == 0:
            angle[k // FINE] = data.qpos[0]
        data.ctrl[0] = command
        mujoco.mj_step(model, data)
    time = np.arange(samples) / RATE
    noise = np.random.default_rng(seed).normal(0.0, NOISE, samples)
    return Log(time, {"qpos/knee": angle + noise, "ctrl/motor": _command(time)}, "leg")


def _command(time: np.ndarray) -> np.ndarray:
    """Held over each sample, in parts of the full command."""
    held = np.floor(np.clip(time, 0.0, None) * RATE + 1e-6) / RATE
    waves = [np.sin(2 * np.pi * f * held + phase) for f, phase in ((0.7, 0.0), (1.9, 1.0), (4.3, 2.0))]
    return np.where(time >= 0, sum(waves) / 6, 0.0)
