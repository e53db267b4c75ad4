"""A seven-joint arm with position servos, simulated by MuJoCo, for the experiments with streams and designs."""

import mujoco
import numpy as np

from truesim.core.typing import Float

STEP = 1e-3
"""Time between samples, and step of the machine [s]."""
NOISE = 1e-3
"""Standard deviation of the encoders' noise [rad]."""
LENGTHS = (0.16, 0.18, 0.2, 0.2, 0.18, 0.12, 0.1)
"""Lengths of the links [m]."""
MASSES = (3.5, 3.2, 2.8, 2.3, 1.8, 1.2, 0.7)
"""[kg]"""
GAINS = (600.0, 600.0, 400.0, 400.0, 200.0, 100.0, 50.0)
"""Gains of the servos [N m/rad]; their damping gain is a fifteenth of it [N m s/rad]."""
FORCES = (90.0, 90.0, 60.0, 60.0, 30.0, 15.0, 8.0)
"""Torque limit of each servo [N m]."""
DAMPING = (2.0, 2.0, 1.5, 1.2, 0.8, 0.5, 0.3)
"""[N m s/rad]"""
FRICTION = (0.8, 0.8, 0.6, 0.5, 0.3, 0.2, 0.1)
"""Coulomb friction [N m]."""
ARMATURE = (0.2, 0.2, 0.15, 0.12, 0.08, 0.05, 0.03)
"""[kg m^2]"""
RANGE = 2.0
"""Range of each joint to either side [rad]."""
HAND = LENGTHS[-1]
"""Distance of the load from the last joint [m]."""


def xml(payload: float = 0.0, step: float = STEP) -> str:
    """The arm as MJCF, with a small load in its hand [kg] and a time step [s]."""
    load = f'<body name="load" pos="0 0 {HAND}"><geom type="sphere" size="0.005" mass="{payload}"/></body>'
    body = load if payload else ""
    for i in reversed(range(7)):
        length, mass = LENGTHS[i], MASSES[i]
        slender = mass * (length**2 / 12 + 0.05**2 / 4)
        body = f"""<body name="link{i + 1}" pos="0 0 {LENGTHS[i - 1] if i else 0.15}">
          <joint name="j{i + 1}" axis="{"0 1 0" if i % 2 else "0 0 1"}" range="{-RANGE} {RANGE}" limited="true"
            damping="{DAMPING[i]}" frictionloss="{FRICTION[i]}" armature="{ARMATURE[i]}"/>
          <inertial pos="{0.03 if i % 2 == 0 else 0} 0.01 {length / 2}" mass="{mass}"
            diaginertia="{slender} {slender} {mass * 0.05**2 / 2}"/>{body}</body>"""
    servos = "".join(
        f'<general name="a{i + 1}" joint="j{i + 1}" biastype="affine" gainprm="{k}" biasprm="0 {-k} {-k / 15}"'
        f' forcerange="{-f} {f}" ctrlrange="{-RANGE} {RANGE}"/>'
        for i, (k, f) in enumerate(zip(GAINS, FORCES, strict=True))
    )
    return f"""<mujoco model="arm"><compiler angle="radian"/><option timestep="{step}" integrator="implicitfast">
      <flag contact="disable"/></option><worldbody>{body}</worldbody><actuator>{servos}</actuator></mujoco>"""


def played(
    machines: list[tuple[str, int]], commands: Float[np.ndarray, "samples 7"], seed: int = 0
) -> Float[np.ndarray, "samples 7"]:
    """Joint angles with encoder noise while servos follow commands [rad].

    Args:
        machines: MJCF texts, each with its number of samples.
        commands: Set points [rad].
        seed: Seed of the noise.
    """
    angles, state, first = [], (commands[0], np.zeros(7)), 0
    for text, samples in machines:
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = state
        for command in commands[first : first + samples]:
            angles.append(data.qpos.copy())
            data.ctrl[:] = command
            mujoco.mj_step(model, data)
        state, first = (data.qpos.copy(), data.qvel.copy()), first + samples
    return np.array(angles) + NOISE * np.random.default_rng(seed).normal(size=(first, 7))


def wandering(seconds: float, seed: int = 0) -> Float[np.ndarray, "samples 7"]:
    """Set points of an arm at work: slow sums of sines, different for each joint [rad]."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds / STEP)) * STEP
    frequency, phase = rng.uniform(0.1, 0.6, (3, 7)), rng.uniform(0, 2 * np.pi, (3, 7))
    return 0.4 * np.sin(2 * np.pi * frequency * time[:, None, None] + phase).sum(axis=1)
