"""Test cases: latency and strength of a leg, from a lecture, and the servo of one joint."""

import dataclasses
from collections.abc import Mapping

import mujoco
import numpy as np

from experiments.one_joint_actuator import machine
from experiments.one_joint_actuator import unknowns as one_joint
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.problem.build import build
from truesim.identification.search import OpenLoop
from truesim.physics.model import paths

LEG = """
<mujoco model="leg"><option timestep="{step}" integrator="implicitfast"/>
  <worldbody><body name="leg"><joint name="knee" axis="0 1 0" damping="0.5"/>
    <inertial pos="0 0 -0.3" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>
  <actuator><general name="motor" joint="knee" gainprm="{strength}"/></actuator></mujoco>"""
RATE, FINE, SECONDS = 500, 20, 4.0
"""Sampling rate [Hz], steps of the real leg per sample, and length of the log [s]."""
STEP = 0.5e-3
"""Step of the simulator in the fit [s]."""
STRENGTH, LATENCY = 10.0, 5e-3
"""True torque at full command [N m], and true delay of commands [s]."""
FIRST_STRENGTH, FIRST_LATENCY = 2.0, 1e-3
"""Values in the robot's file."""
NOISE = 0.5e-3
"""Standard deviation of the encoder noise [rad]."""
GAIN, DELAY = "actuators/motor.gain", "actuators/motor.delay"


@dataclasses.dataclass(frozen=True)
class Case:
    """An identification problem with known truth."""

    name: str
    objective: OpenLoop
    truth: Mapping[str, float]
    """True values by path [SI units]."""
    allowed: Mapping[str, float]
    """Largest accepted errors by path [SI units]."""


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
    """Commands by zero-order hold, relative to the full command."""
    held = np.floor(np.clip(time, 0.0, None) * RATE + 1e-6) / RATE
    waves = [np.sin(2 * np.pi * f * held + phase) for f, phase in ((0.7, 0.0), (1.9, 1.0), (4.3, 2.0))]
    return np.where(time >= 0, sum(waves) / 6, 0.0)
