"""Arms like a UR10e and a Panda whose torques MuJoCo computes: errors and intervals of the regression.

`python -m experiments.arms.simulated [--quick] [--draws N]`. The true arms have full inertias, armature of 10 kg m^2 at
the first joint, Stribeck and load-dependent friction and offsets. The logs have positions at 100 Hz, quantized to 16
bits per turn, and torques with noise of 5 %. The fit starts at a file with other masses and zeros for armature and
friction.
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path

import mujoco
import numpy as np

from experiments.recorded import show
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.files.robots import load
from truesim.identification.problem.build import prepare_logs
from truesim.identification.regression.arm import unknowns_covariance
from truesim.identification.regression.choose import Chosen, stribeck_speed
from truesim.identification.regression.equations import (
    ARMATURE_TERM,
    DAMPING_TERM,
    FRICTION_TERM,
    LOAD_TERM,
    OFFSET_TERM,
    STRIBECK_TERM,
    ArmBodies,
)
from truesim.identification.regression.errors import torque_errors
from truesim.identification.regression.signals import STRIBECK_SPEEDS
from truesim.identification.torque_regression import regress_arm
from truesim.physics.dynamics.regressor import base_parameters, inertial_parameters
from truesim.physics.model import paths
from truesim.physics.model.model import Model

RATE, NOISE, TURN = 100.0, 0.05, 2**16
"""Samples per second, noise relative to the torque, and steps of an encoder in one turn."""
SECONDS, PERIOD = 30.0, 10.0
"""Length of a run and period of its Fourier series [s]."""
ONSET = 0.005
"""Speed over which the true friction builds up [rad/s]."""
STRIBECK = 0.1
"""True Stribeck velocity [rad/s]."""


@dataclasses.dataclass(frozen=True)
class ArmDesign:
    """Geometry and true values of an arm, joint by joint."""

    name: str
    offsets: tuple[tuple[float, float, float], ...]
    axes: tuple[str, ...]
    masses: tuple[float, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    stiction: tuple[float, ...]
    load: tuple[float, ...]
    bias: tuple[float, ...]
    """Offset of each torque [N m]."""


UR10E = ArmDesign(
    "UR10e-like",
    ((0, 0, 0.18), (0, 0.14, 0), (0.6, 0, 0), (0.55, 0, 0), (0, 0.12, 0), (0, 0, 0.11)),
    ("0 0 1", "0 1 0", "0 1 0", "0 1 0", "0 0 1", "0 1 0"),
    (7.8, 13.0, 3.9, 2.0, 2.0, 0.6),
    (10.0, 8.0, 3.0, 0.6, 0.5, 0.4),
    (30.0, 25.0, 12.0, 3.0, 2.5, 2.0),
    (16.0, 12.0, 8.0, 3.0, 2.8, 2.5),
    (6.0, 0.0, 0.0, 1.0, 0.0, 0.8),
    (0.0, 0.06, 0.07, 0.0, 0.0, 0.0),
    (1.5, -2.0, 1.0, 0.3, -0.2, 0.1),
)
PANDA = ArmDesign(
    "Panda-like",
    ((0, 0, 0.33), (0, 0, 0), (0, -0.32, 0), (0.08, 0, 0), (-0.08, 0.38, 0), (0, 0, 0), (0.09, 0, 0)),
    ("0 0 1", "0 1 0", "0 0 1", "0 -1 0", "0 0 1", "0 -1 0", "0 0 1"),
    (5.0, 4.0, 3.5, 3.5, 3.2, 1.7, 1.3),
    (10.0, 4.0, 2.0, 1.5, 0.4, 0.3, 0.2),
    (12.0, 10.0, 8.0, 6.0, 2.0, 1.5, 1.2),
    (6.0, 6.0, 4.0, 4.0, 1.5, 1.2, 1.0),
    (2.0, 0.0, 1.2, 0.0, 0.5, 0.0, 0.0),
    (0.0, 0.05, 0.0, 0.06, 0.0, 0.0, 0.0),
    (0.5, -0.5, 0.3, -0.3, 0.2, 0.1, -0.1),
)


def robot_file(folder: Path, design: ArmDesign) -> Path:
    """URDF of the arm with zeros for armature and friction."""
    text, parent = [f'<robot name="{design.name}"><link name="base"/>'], "base"
    for k, (mass, axis) in enumerate(zip(design.masses, design.axes, strict=True)):
        later = design.offsets[k + 1] if k + 1 < len(design.offsets) else (0.0, 0.0, 0.08)
        r = np.array(later, float) / 2
        inertia = mass * max(float(np.linalg.norm(r)), 0.05) ** 2 * np.array([0.5, 0.6, 0.45])
        text.append(
            f'<link name="link{k}"><inertial><origin xyz="{r[0]} {r[1]} {r[2]}"/><mass value="{mass}"/><inertia '
            f'ixx="{inertia[0]}" iyy="{inertia[1]}" izz="{inertia[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>'
            f'<origin xyz="{" ".join(map(str, design.offsets[k]))}"/><axis xyz="{axis}"/>'
            f'<limit lower="-6.3" upper="6.3" effort="{20 * design.friction[k]}" velocity="3"/></joint>'
        )
        parent = f"link{k}"
    path = folder / "arm.urdf"
    path.write_text("\n".join([*text, "</robot>"]), encoding="utf-8")
    return path


def true_model(model: Model, design: ArmDesign) -> Model:
    """The arm with other masses, centers and full inertias, and with armature, friction and offsets."""
    rng = np.random.default_rng(5)
    for name in model.bodies.names[1:]:
        path, factor = f"bodies/{name}", float(rng.uniform(0.8, 1.25))
        com = np.asarray(paths.read(model, f"{path}.com")) + 0.02 * rng.standard_normal(3)
        moments = factor * np.asarray(paths.read(model, f"{path}.inertia"))[:3]
        turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        J = turn @ np.diag(moments) @ turn.T
        six = np.array([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])
        mass = np.asarray(factor * np.asarray(paths.read(model, f"{path}.mass")))
        for field, value in (("mass", mass), ("com", com), ("inertia", six)):
            model = paths.write(model, f"{path}.{field}", value)
    for j, name in enumerate(model.joints.names):
        own = {
            "armature": design.armature[j],
            "damping": design.damping[j],
            "frictionloss": design.friction[j],
            "stiction": design.stiction[j],
            "stribeck_velocity": STRIBECK,
            "load_friction": design.load[j],
        }
        for field, value in own.items():
            model = paths.write(model, f"joints/{name}.{field}", np.asarray(value))
        model = paths.write(model, f"actuators/{model.actuators.names[j]}.offset", np.asarray(-design.bias[j]))
    return model


def motion(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Time, and position, velocity and acceleration of a Fourier series."""
    rng, t = np.random.default_rng(seed), np.arange(0, SECONDS, 1 / RATE)
    x = np.zeros((3, len(t), n))
    for k in range(1, 6):
        w = 2 * np.pi * k / PERIOD
        s, c = rng.normal(size=(2, n)) * 0.45 / np.sqrt(k)
        sine, cosine = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        x += np.stack([s * sine + c * cosine, w * (s * cosine - c * sine), -(w**2) * (s * sine + c * cosine)])
    return t, x


def record(file: Path, truth: Model, seed: int, name: str) -> Log:
    """Log of the true arm: torques of MuJoCo's inverse dynamics, friction, offsets and noise."""
    m = mujoco.MjModel.from_xml_path(str(file))
    for b, body in enumerate(truth.bodies.names):
        k = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, body)
        if k < 0:
            continue
        xx, yy, zz, xy, xz, yz = np.asarray(truth.bodies.inertia)[b]
        values, vectors = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        vectors[:, 0] *= np.sign(np.linalg.det(vectors))
        m.body_mass[k], m.body_ipos[k] = np.asarray(truth.bodies.mass)[b], np.asarray(truth.bodies.com)[b]
        m.body_inertia[k] = values
        mujoco.mju_mat2Quat(m.body_iquat[k], vectors.ravel())
    m.dof_armature[:], m.dof_damping[:] = np.asarray(truth.joints.armature), np.asarray(truth.joints.damping)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    mujoco.mj_setConst(m, mujoco.MjData(m))
    data, joints = mujoco.MjData(m), truth.joints
    t, (q, v, a) = motion(m.nv, seed)
    torque, weight = np.empty_like(q), np.empty_like(q)
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], 0.0, 0.0
        mujoco.mj_inverse(m, data)
        weight[k] = data.qfrc_inverse
        data.qvel[:], data.qacc[:] = v[k], a[k]
        mujoco.mj_inverse(m, data)
        torque[k] = data.qfrc_inverse
    dry = np.asarray(joints.frictionloss) + np.asarray(joints.stiction) * np.exp(-((v / STRIBECK) ** 2))
    dry = dry + np.asarray(joints.load_friction) * np.abs(weight)
    torque += dry * np.tanh(v / ONSET) - np.asarray(truth.actuators.offset)
    rng = np.random.default_rng(1000 + seed)
    torque += NOISE * np.sqrt(np.mean(torque**2, axis=0)) * rng.standard_normal(torque.shape)
    step = 2 * np.pi / TURN
    columns = {f"qpos/{x}": step * np.round(q[:, j] / step) for j, x in enumerate(joints.names)}
    columns |= {f"ctrl/{x}": torque[:, j] for j, x in enumerate(truth.actuators.names)}
    return Log(t, columns, name)


def true_unknowns(truth: Model, chosen: Chosen) -> Float[np.ndarray, " size"]:
    """The true values of the unknowns of a regression."""
    system, joints = chosen.best.system, truth.joints
    x = np.zeros(system.size)
    free = list(ArmBodies.of(truth).free)
    x[: system.prior.size] = np.asarray(inertial_parameters(truth))[free].ravel()
    for j, place in enumerate(system.places):
        fields = ((ARMATURE_TERM, "armature"), (DAMPING_TERM, "damping"), (FRICTION_TERM, "frictionloss"))
        for term, field in (*fields, (LOAD_TERM, "load_friction")):
            if place[term] >= 0:
                x[place[term]] = np.asarray(getattr(joints, field))[j]
        if place[OFFSET_TERM] >= 0:
            x[place[OFFSET_TERM]] = -np.asarray(truth.actuators.offset)[j]
        for k in range(len(STRIBECK_SPEEDS)):
            if place[STRIBECK_TERM + k] >= 0:
                x[place[STRIBECK_TERM + k]] = np.asarray(joints.frictionloss)[j] + np.asarray(joints.stiction)[j]
    return x


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Figures of one draw."""

    base_error: float
    """Largest relative error of base parameters with a relative standard deviation below 1 %: combinations of inertial
    parameters, armature, damping, Coulomb friction and offsets."""
    base_count: int
    friction_error: float
    """Largest relative error of a joint's friction over its speeds."""
    inside: tuple[int, int]
    """Base parameters and terms of friction inside of their 95 % intervals, and their number."""
    torque_ratio: float
    """Torque error on another run relative to that of the truth."""
    chosen: str


def measure(file: Path, model: Model, truth: Model, seed: int) -> Outcome:
    """Fit one draw and compare it with the truth."""
    train = prepare_logs(model, [record(file, truth, seed, "train")])
    other = prepare_logs(model, [record(file, truth, 500 + seed, "other")])
    found = regress_arm(model, train)
    chosen = found.chosen
    best, x = chosen.best, true_unknowns(truth, chosen)
    covariance = unknowns_covariance(best, chosen.times, chosen.weight)
    total = np.tensordot(best.noise**-2.0, best.system.grams.sum(axis=0)[:, :-1, :-1], axes=1)
    scale = np.sqrt(np.maximum(np.diag(total), 1e-12 * np.diag(total).max()))
    values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
    rows = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    base = base_parameters(rows, 1e-3)
    S = base.combination * scale / scale[list(base.independent)][:, None]
    estimate, true, std = S @ best.x, S @ x, np.sqrt(np.diag(S @ covariance @ S.T))
    extra = [place for place in best.system.places[:, STRIBECK_TERM:].ravel() if place >= 0]
    sharp = (std < 0.01 * np.abs(estimate)) & ~np.isin(base.independent, extra)
    within = np.abs(estimate - true) < 1.96 * std
    fitted = next(iter(found.candidates.values())).written(found.model)
    errors = [np.mean([e.relative for e in torque_errors(m, other).values()]) for m in (fitted, truth)]
    speeds = [stribeck_speed(best.system.terms, j) for j in range(model.nv)]
    return Outcome(
        base_error=float(np.abs(estimate / true - 1)[sharp].max(initial=0.0)),
        base_count=int(sharp.sum()),
        friction_error=max(_friction_error(fitted, truth, j) for j in range(model.nv)),
        inside=(int(within.sum()), len(within)),
        torque_ratio=float(errors[0] / errors[1]),
        chosen="".join("-" if s is None else "s" for s in speeds)
        + " "
        + "".join("l" if t else "-" for t in best.system.terms[:, LOAD_TERM]),
    )


def _friction_error(fitted: Model, truth: Model, j: int) -> float:
    """Error of the friction of a joint over speeds of 0.05 to 1.5 rad/s without load, relative to its rms."""
    v = np.linspace(0.05, 1.5, 50)

    def curve(model: Model) -> np.ndarray:
        own = {f: float(np.asarray(getattr(model.joints, f))[j]) for f in ("frictionloss", "stiction", "damping")}
        onset = float(np.asarray(model.joints.stribeck_velocity)[j])
        return own["frictionloss"] + own["stiction"] * np.exp(-((v / onset) ** 2)) + own["damping"] * v

    return float(np.sqrt(np.mean((curve(fitted) - curve(truth)) ** 2) / np.mean(curve(truth) ** 2)))


def main() -> None:
    """Fit all draws of both arms and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="two draws of each arm")
    parser.add_argument("--draws", type=int, default=40)
    options = parser.parse_args()
    rows = []
    for design in (UR10E, PANDA):
        with tempfile.TemporaryDirectory() as folder:
            file = robot_file(Path(folder), design)
            model = load(file)
            truth = true_model(model, design)
            found = [measure(file, model, truth, seed) for seed in range(2 if options.quick else options.draws)]
        inside, number = np.sum([f.inside for f in found], axis=0)
        base, friction = ([100 * getattr(f, name) for f in found] for name in ("base_error", "friction_error"))
        figures = (
            ("base parameters, largest error [%]", "3", max(base)),
            ("base parameters, median over draws of the largest error [%]", "3", float(np.median(base))),
            ("base parameters with sd < 1 %", "", float(np.mean([f.base_count for f in found]))),
            ("friction, largest error [%]", "5", max(friction)),
            ("friction, median over draws of the largest error [%]", "5", float(np.median(friction))),
            ("inside of 95 % intervals [%]", ">= 90", 100 * inside / number),
            ("held-out torque error over the truth's, largest", "1.1", max(f.torque_ratio for f in found)),
            ("terms of the first draw", "", found[0].chosen),
        )
        rows += [(design.name, *figure) for figure in figures]
    show("Simulated arms", ("arm", "figure", "required", "reached"), rows)


if __name__ == "__main__":
    main()
