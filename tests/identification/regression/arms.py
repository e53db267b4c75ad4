"""Simulated arms: torques of a known motion with full inertias, armature, friction, offsets and noise."""

import dataclasses

import numpy as np

import truesim as ts
from truesim.files.logs import Log
from truesim.identification.problem.build import prepare_logs
from truesim.identification.regression.errors import rigid_torques
from truesim.identification.regression.signals import rest_speeds
from truesim.physics.model import paths
from truesim.physics.model.model import Model

LENGTHS = ((0.0, 0.0, 0.18), (0.0, 0.14, 0.0), (0.6, 0.0, 0.0), (0.55, 0.0, 0.0), (0.0, 0.12, 0.0), (0.0, 0.0, 0.11))
AXES = ("0 0 1", "0 1 0", "0 1 0", "0 1 0", "0 0 1", "0 1 0")
MASSES = (7.8, 13.0, 3.9, 2.0, 2.0, 0.6)
EFFORT = (330.0, 330.0, 150.0, 56.0, 56.0, 56.0)
ARMATURE = (10.0, 8.0, 3.0, 0.6, 0.5, 0.4)
DAMPING = (30.0, 25.0, 12.0, 3.0, 2.5, 2.0)
FRICTION = (16.0, 15.0, 8.0, 3.0, 2.8, 2.5)


def arm_file(folder, joints: int = 6):
    """URDF of an arm like a UR10e, without armature and friction."""
    text = ['<robot name="arm"><link name="base"/>']
    parent = "base"
    for k in range(joints):
        m, r = MASSES[k], np.array(LENGTHS[k + 1] if k + 1 < len(LENGTHS) else (0.0, 0.0, 0.08)) / 2
        size = max(float(np.linalg.norm(r)), 0.04)
        inertia = m * size**2 * np.array([0.5, 0.6, 0.45])
        text.append(
            f'<link name="link{k}"><inertial><origin xyz="{r[0]} {r[1]} {r[2]}"/><mass value="{m}"/><inertia '
            f'ixx="{inertia[0]}" iyy="{inertia[1]}" izz="{inertia[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>'
            f'<origin xyz="{" ".join(map(str, LENGTHS[k]))}"/><axis xyz="{AXES[k]}"/>'
            f'<limit lower="-6.3" upper="6.3" effort="{EFFORT[k]}" velocity="2"/></joint>'
        )
        parent = f"link{k}"
    path = folder / "arm.urdf"
    path.write_text("".join([*text, "</robot>"]))
    return path


def true_arm(model: Model, seed: int = 0, load: float = 1.0) -> Model:
    """The arm with other masses, centers of mass and inertias than its file, armature and friction."""
    rng = np.random.default_rng(seed)
    for name in model.bodies.names:
        if name == "base":
            continue
        factor = float(np.exp(0.2 * rng.standard_normal())) * load
        path = f"bodies/{name}"
        mass, com = paths.read(model, f"{path}.mass"), np.asarray(paths.read(model, f"{path}.com"))
        model = paths.write(model, f"{path}.mass", np.asarray(factor * mass))
        model = paths.write(model, f"{path}.com", com + 0.02 * rng.standard_normal(3))
        model = paths.write(model, f"{path}.inertia", factor * np.asarray(paths.read(model, f"{path}.inertia")))
    for j, name in enumerate(model.joints.names):
        for field, values in (("armature", ARMATURE), ("damping", DAMPING), ("frictionloss", FRICTION)):
            model = paths.write(model, f"joints/{name}.{field}", np.asarray(values[j]))
    return model


def record(
    model: Model, seconds: float = 30.0, seed: int = 0, noise: float = 0.05, rate: float = 100.0, name: str = "run"
) -> Log:
    """Log of a Fourier excitation: quantized positions and noisy torques [N m]."""
    rng = np.random.default_rng(seed)
    t, n = np.arange(0, seconds, 1 / rate), model.nv
    q, v, a = np.zeros((3, len(t), n))
    for k in range(1, 6):
        w = 2 * np.pi * 0.1 * k
        s, c = rng.normal(size=(2, n)) * 0.45 / np.sqrt(k)
        q += s * np.sin(w * t[:, None]) + c * np.cos(w * t[:, None])
        v += w * (s * np.cos(w * t[:, None]) - c * np.sin(w * t[:, None]))
        a -= w**2 * (s * np.sin(w * t[:, None]) + c * np.cos(w * t[:, None]))
    torque = rigid_torques(model, q, v, a) + np.asarray(model.joints.armature) * a
    dry = np.asarray(model.joints.frictionloss) * np.tanh(v / rest_speeds(model))
    torque += np.asarray(model.joints.damping) * v + dry - np.asarray(model.actuators.offset)
    torque += noise * np.sqrt(np.mean(torque**2, axis=0)) * rng.standard_normal(torque.shape)
    step = 2 * np.pi / 2**16
    columns = {f"qpos/{x}": step * np.round(q[:, j] / step) for j, x in enumerate(model.joints.names)}
    columns |= {f"ctrl/{x}": torque[:, j] for j, x in enumerate(model.joints.names)}
    return Log(t, columns, name)


def prepared(model: Model, *logs: Log) -> list[Log]:
    """Prepared logs."""
    return prepare_logs(model, logs)


def changed(log: Log, **changes) -> Log:
    """The log with columns changed by functions; `__` stands for `/`."""
    columns = dict(log.columns)
    for key, change in changes.items():
        columns[key.replace("__", "/")] = change(columns[key.replace("__", "/")])
    return dataclasses.replace(log, columns=columns)


def load_arm(folder) -> Model:
    """Model of the file."""
    return ts.load(arm_file(folder))
