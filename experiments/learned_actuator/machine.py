"""The "real" machine: a link whose motor has saturation, lag, delay and friction."""

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.physics.model.model import Model

RATE, SUBSTEPS = 400, 10
"""Sampling rate [Hz], and steps of the machine per sample."""
INERTIA, GRAVITY = 0.06, 2.0
"""Inertia of the link about its joint [kg m^2], and its gravity torque m g l [N m]."""
KP, KD, SATURATION = 20.0, 1.0, 6.0
"""Gains of the servo [N m/rad, N m s/rad], and torque limit of the motor [N m]."""
LAG, DELAY = 0.008, 0.005
"""[s]"""
COULOMB, BREAKAWAY, STRIBECK, VISCOUS = 0.35, 0.25, 0.08, 0.05
"""Coulomb friction [N m], additional breakaway friction [N m], Stribeck speed [rad/s], viscous friction [N m s/rad]."""
NOISE = 1e-4
"""Standard deviation of the encoder noise [rad]."""

ARM = 0.2
"""Distance of the link's center of mass from its joint [m]."""
MASS = GRAVITY / 9.81 / ARM
OWN = INERTIA - MASS * ARM**2
"""Inertia about the center of mass [kg m^2]."""
AMPLE = 12.0
"""Torque limit in the model, which the motor does not reach [N m]."""
ROBOT = f"""
<mujoco><compiler angle="radian"/><option timestep="{1 / RATE}"><flag contact="disable"/></option><worldbody>
  <body name="link"><joint name="joint" axis="0 1 0"/>
    <inertial pos="0 0 -{ARM}" mass="{MASS}" diaginertia="{OWN} {OWN} .001"/></body></worldbody>
<actuator><position name="servo" joint="joint" kp="{KP}" kv="{KD}" forcerange="-BOUND BOUND"/></actuator></mujoco>"""
"""The model: the link with an ideal servo."""


def robot(bound: float = AMPLE) -> Model:
    """The model with an ideal servo, up to a bound of its torque [N m]."""
    return loads(ROBOT.replace("BOUND", f"{bound:g}"))


def recorded(target: Float[np.ndarray, " samples"], seed: int, push: float = 0.0) -> Log:
    """Log of commands and measurements, with the true torque of the actuator, friction included.

    Args:
        target: Commanded position of every sample [rad].
        seed: Seed of the noise and of the disturbances.
        push: Standard deviation of random torques on the link [N m].
    """
    rng, dt = np.random.default_rng(seed), 1 / RATE / SUBSTEPS
    pushes = push * np.repeat(rng.normal(size=len(target) // 40 + 1), 40)
    late, line = round(DELAY / dt), []
    q, v, torque = float(target[0]), 0.0, 0.0
    rows = np.empty((len(target), 2))
    for k, goal in enumerate(target):
        total = 0.0
        rows[k, 0] = q
        for _ in range(SUBSTEPS):
            line.append(np.clip(KP * (goal - q) - KD * v, -SATURATION, SATURATION))
            asked = line[-1 - late] if len(line) > late else line[0]
            torque += (asked - torque) * (1 - np.exp(-dt / LAG))
            friction = (COULOMB + BREAKAWAY * np.exp(-((v / STRIBECK) ** 2))) * np.tanh(v / 0.01) + VISCOUS * v
            acting = torque - friction
            total += acting / SUBSTEPS
            v += dt * (acting - GRAVITY * np.sin(q) + pushes[k]) / INERTIA
            q += dt * v
        line = line[-late - 1 :]
        rows[k, 1] = total
    measured = rows[:, 0] + NOISE * rng.normal(size=len(target))
    columns = {"qpos/joint": measured, "ctrl/servo": target, "torque/servo": rows[:, 1]}
    return Log(np.arange(len(target)) / RATE, columns, name=f"run{seed}")


def excitation(seconds: float, seed: int) -> Float[np.ndarray, " samples"]:
    """Commands: a chirp, a sum of sines and steps [rad]."""
    rng, time = np.random.default_rng(seed), np.arange(0, seconds, 1 / RATE)
    chirp = 0.3 * np.sin(2 * np.pi * (0.2 * time + 0.5 * 6.0 / seconds * time**2))
    f, a, p = rng.uniform(0.1, 5.0, 8), rng.uniform(0.1, 0.4, 8), rng.uniform(0, 6.28, 8)
    sines = np.sum(a / (1 + f / 2) * np.sin(2 * np.pi * np.outer(time, f) + p), axis=1)
    steps = 0.3 * np.repeat(rng.normal(size=len(time) // 100 + 1), 100)[: len(time)]
    return chirp + sines + steps


def policy_like(seconds: float, seed: int) -> Float[np.ndarray, " samples"]:
    """Commands like those of a policy: a noisy gait at 50 Hz [rad]."""
    rng, count = np.random.default_rng(seed), int(seconds * 50)
    time = np.arange(count) / 50
    phase = np.cumsum(2 * np.pi * rng.uniform(1.0, 2.5) * (1 + 0.2 * rng.normal(size=count)) / 50)
    gait = 0.5 * np.sin(phase) + 0.2 * np.sin(2 * phase + 1) + 0.3 * np.sin(0.7 * time)
    return np.repeat(gait + 0.08 * rng.normal(size=count), RATE // 50)
