"""The recording: an arm of three servos in MuJoCo, with delay, quantized encoders and jittered stamps."""

import dataclasses

import mujoco
import numpy as np

JOINTS = ("shoulder", "elbow", "wrist")
TRUTH = {"kp": 24.0, "kv": 0.6, "damping": 0.9, "frictionloss": 0.12, "armature": 0.03, "delay": 0.0365}
FILE = {"kp": 15.0, "kv": 0.6, "damping": 0.5, "frictionloss": 0.05, "armature": 0.01, "delay": 0.0}
"""Numbers of the robot file, from which the fit begins."""
FREE = ("joints/*.damping", "joints/*.frictionloss", "joints/*.armature", "actuators/*.kp", "actuators/*.delay")
COUNTS = 4096
"""Encoder steps a turn."""
JITTER = 0.0005
"""Standard deviation of the stamps [s]."""
LINKS = ((1.0, 0.3), (0.6, 0.25), (0.3, 0.15))
"""Mass [kg] and length [m] of each link."""


@dataclasses.dataclass(frozen=True)
class Recording:
    """What the recorder of a robot writes."""

    time: np.ndarray
    """Stamps [s]."""
    position: np.ndarray
    """Encoders [rad], one column a joint."""
    command: np.ndarray
    """Set points of the servos [rad]."""


def mjcf(values: dict[str, float]) -> str:
    """MJCF of the arm."""
    delay = f' delay="{values["delay"]}" nsample="24" interp="linear"' if values["delay"] else ""
    opened, motors = "", ""
    for k, (name, (mass, length)) in enumerate(zip(JOINTS, LINKS, strict=True)):
        place = LINKS[k - 1][1] if k else 0.0
        joint = " ".join(f'{field}="{values[field]}"' for field in ("damping", "frictionloss", "armature"))
        moment = mass * length**2 / 12
        opened += f"""<body name="{name}_link" pos="0 0 {-place}">
  <joint name="{name}" axis="0 1 0" range="-3 3" {joint}/>
  <inertial pos="0 0 {-length / 2}" mass="{mass}" diaginertia="{moment} {moment} .001"/>"""
        motors += f'\n<position name="{name}" joint="{name}" kp="{values["kp"]}" kv="{values["kv"]}"{delay}/>'
    return f"""<mujoco model="arm"><compiler angle="radian"/><option timestep=".002"/>
<worldbody>{opened}{"</body>" * len(JOINTS)}</worldbody><actuator>{motors}</actuator></mujoco>"""


def urdf() -> str:
    """URDF of the same arm, with the numbers of the robot file; it has no actuators."""
    links, joints = '<link name="base"/>', ""
    for k, (name, (mass, length)) in enumerate(zip(JOINTS, LINKS, strict=True)):
        parent, place = (f"{JOINTS[k - 1]}_link", LINKS[k - 1][1]) if k else ("base", 0.0)
        moment = mass * length**2 / 12
        links += f"""<link name="{name}_link"><inertial><origin xyz="0 0 {-length / 2}"/><mass value="{mass}"/>
  <inertia ixx="{moment}" iyy="{moment}" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
        joints += f"""<joint name="{name}" type="revolute"><origin xyz="0 0 {-place}"/><parent link="{parent}"/>
  <child link="{name}_link"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="20"/>
  <dynamics damping="{FILE["damping"]}" friction="{FILE["frictionloss"]}"/></joint>"""
    return f'<robot name="arm">{links}{joints}</robot>'


def record(seed: int, seconds: float = 10.0, rate: float = 100.0) -> Recording:
    """Move the true arm by random sines and record it.

    Args:
        seed: Of the motion and of the stamps.
        seconds: Length.
        rate: Samples a second.
    """
    model = mujoco.MjModel.from_xml_string(mjcf(TRUTH))
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    steps = round(1 / rate / model.opt.timestep)
    samples = np.arange(round(seconds * rate))
    frequency, phase = random.uniform(0.1, 1.2, (5, 3)), random.uniform(0, 2 * np.pi, (5, 3))
    sines = np.sin(2 * np.pi * frequency * samples[:, None, None] / rate + phase) - np.sin(phase)
    commands = 0.25 * np.clip(samples / rate, 0, 1)[:, None] * sines.sum(axis=1)
    positions = []
    for command in commands:
        positions.append(data.qpos.copy())
        data.ctrl = command
        mujoco.mj_step(model, data, steps)
    step = 2 * np.pi / COUNTS
    stamps = samples / rate + JITTER * random.normal(size=len(samples))
    return Recording(np.maximum.accumulate(stamps), np.round(np.array(positions) / step) * step, commands)
