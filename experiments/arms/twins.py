"""Simulated twins of public arms, recorded in the ways in which users record them.

`python -m experiments.arms.twins [--only NAME] [--keep FOLDER]`. Every twin takes a public URDF, changes all bodies,
and gives the joints motors with friction that remembers (a bristle model), so that joints at rest hold any torque
within their friction. Pinocchio computes the torques. Each twin is then identified by one command, as a user would,
and its torque error on a run that was not fitted to is compared with that of plain least squares on Pinocchio's
regressor, with Butterworth filters of its own.
"""

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pinocchio
from scipy.signal import butter, filtfilt

from experiments.arms.peer import configuration
from experiments.recorded import show
from truesim.core.typing import Float

ROBOTS = Path(pinocchio.__file__).parents[4] / "share/example-robot-data/robots"
BAND = 6.0
"""Band of the peer and of all errors [Hz]."""
REST = 0.02
"""Speed below which a joint counts as at rest [rad/s]."""
FINE = 1000.0
"""Rate at which torques are computed [Hz]."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """A robot and a way of recording it."""

    name: str
    urdf: str
    joints: int
    """Joints that are recorded, from the base on."""
    rate: float = 100.0
    """Samples per second."""
    seconds: float = 30.0
    """Length of a run."""
    noise: float = 0.03
    """Noise of the torques, relative to their rms."""
    step: float = 2 * np.pi / 2**16
    """Step of the encoders [rad]."""
    jitter: float = 0.0
    """Standard deviation of the time between samples, relative to it."""
    motion: str = "fourier"
    """`fourier`, `steps` (point to point with rests), or `sweeps` (one joint after the other)."""
    load: float = 0.05
    """Friction relative to the torque of gravity."""
    stribeck: float = 0.3
    """Friction at the onset of motion, relative to that in full motion."""
    quadratic: float = 0.0
    """Share of the viscous friction that grows with the square of the speed."""
    link_side: bool = False
    """Torque from sensors behind the gears: no armature, a tenth of the friction."""
    constants: float = 0.0
    """Standard deviation of the torque constants, which are unknown."""
    offset: float = 0.0
    """Standard deviation of encoder zeros [rad]."""
    stiffness: float = np.inf
    """Stiffness of the gears relative to the effort limits [1/rad]; positions are those of the motors."""
    payload: float = 0.0
    """Mass at the last link that the file does not have [kg]."""
    spring: float = 0.0
    """Torque of a counterbalance at joint 2, relative to its gravity."""
    ripple: float = 0.0
    """Torque ripple of the gears, relative to their friction, with period of a 50th of a turn."""
    gaps: int = 0
    """Pauses of the recorder in a run."""
    delay: float = 0.0
    """Time by which torques are late [s]."""
    options: tuple[str, ...] = ()
    """Words that the command needs."""


UR5, UR10 = "ur_description/urdf/ur5_robot.urdf", "ur_description/urdf/ur10_robot.urdf"
PANDA, XARM = "panda_description/urdf/panda.urdf", "xarm_description/urdf/xarm7.urdf"
Z1, JACO = "z1_description/urdf/z1.urdf", "kinova_description/robots/kinova.urdf"
TWINS = (
    Twin("ur10, 100 Hz", UR10, 6),
    Twin("ur5, 125 Hz, jitter, motor constants", UR5, 6, rate=125.0, jitter=0.2, constants=0.1),
    Twin("ur5, 20 s, 500 Hz, point to point", UR5, 6, rate=500.0, seconds=20.0, motion="steps"),
    Twin("ur10, single joints", UR10, 6, motion="sweeps", seconds=60.0),
    Twin("panda, link side, 1 kHz", PANDA, 7, rate=1000.0, link_side=True, noise=0.1, jitter=0.1),
    Twin("panda, motor side, elastic", PANDA, 7, rate=250.0, stiffness=60.0),
    Twin("xarm7, payload, coarse encoders", XARM, 7, payload=2.0, step=2 * np.pi / 4096),
    Twin("z1, quadratic friction, gaps", Z1, 6, quadratic=0.7, gaps=3, rate=200.0),
    Twin("jaco, zeros off, late torques", JACO, 6, offset=0.03, delay=0.008),
    Twin("ur10, counterbalance", UR10, 6, spring=0.8),
    Twin("ur5, ripple, strong Stribeck", UR5, 6, ripple=0.4, stribeck=1.0, rate=500.0),
    Twin("ur10, 10 s", UR10, 6, seconds=10.0),
    Twin("xarm7, 1 kHz, noise of 30 %", XARM, 7, rate=1000.0, noise=0.3),
)


@dataclasses.dataclass(frozen=True)
class Machine:
    """True values of a twin."""

    robot: pinocchio.Model
    armature: Float[np.ndarray, " joints"]
    damping: Float[np.ndarray, " joints"]
    friction: Float[np.ndarray, " joints"]
    constants: Float[np.ndarray, " joints"]
    zeros: Float[np.ndarray, " joints"]
    spring: Float[np.ndarray, " joints"]


def reduced(urdf: str, joints: int) -> pinocchio.Model:
    """The robot with its later joints locked."""
    robot = pinocchio.buildModelFromUrdf(str(ROBOTS / urdf))
    later = list(range(joints + 1, robot.njoints))
    return pinocchio.buildReducedModel(robot, later, pinocchio.neutral(robot)) if later else robot


def machine_of(twin: Twin, seed: int = 3) -> Machine:
    """A robot with other bodies than its file, and with motors."""
    rng, robot = np.random.default_rng(seed), reduced(twin.urdf, twin.joints)
    n, data = robot.nv, robot.createData()
    effort = np.where(robot.effortLimit > 0, np.minimum(robot.effortLimit, 400), 50.0)
    for k in range(1, robot.njoints):
        body = robot.inertias[k]
        moved = pinocchio.SE3(np.eye(3), 0.02 * rng.standard_normal(3))
        robot.inertias[k] = pinocchio.Inertia(
            body.mass * rng.uniform(0.8, 1.25), body.lever, body.inertia * rng.uniform(0.7, 1.4)
        ).se3Action(moved)
    if twin.payload:
        robot.inertias[n] += pinocchio.Inertia.FromSphere(twin.payload, 0.06).se3Action(
            pinocchio.SE3(np.eye(3), np.array([0.02, 0.0, 0.08]))
        )
    q = np.random.default_rng(1).uniform(-1, 1, (40, n))
    moved_inertia = np.mean([np.diag(pinocchio.crba(robot, data, configuration(robot, x))) for x in q], axis=0)
    weight = np.abs([pinocchio.computeGeneralizedGravity(robot, data, configuration(robot, x)) for x in q]).max(axis=0)
    own = 0.1 if twin.link_side else 1.0
    friction = own * effort * rng.uniform(0.04, 0.07, n)
    armature = 0.0 * effort if twin.link_side else np.maximum(moved_inertia * rng.uniform(0.3, 1, n), 4e-4 * effort)
    spring = np.zeros(n)
    spring[1] = twin.spring * weight[1]
    return Machine(
        robot, armature, own * effort * rng.uniform(0.05, 0.1, n), friction,
        np.exp(twin.constants * rng.standard_normal(n)), twin.offset * rng.standard_normal(n), spring,
    )  # fmt: skip


def reference(twin: Twin, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Fine stamps and positions of a run; positions are smooth."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, twin.seconds, 1 / FINE)
    q = np.zeros((len(t), n))
    if twin.motion == "fourier":
        for k in range(1, 6):
            s, c = 0.45 * rng.normal(size=(2, n)) / np.sqrt(k)
            w = 2 * np.pi * k / 10
            q += s * np.sin(w * t[:, None]) + c * (np.cos(w * t[:, None]) - 1)
    else:
        at, begin = np.zeros(n), 0.5
        while begin < twin.seconds - 1.5:
            active = np.arange(n) if twin.motion == "steps" else np.array([int(begin / twin.seconds * n)])
            goal, last = at.copy(), rng.uniform(0.7, 2.0)
            goal[active] = rng.uniform(-1.2, 1.2, len(active))
            s = np.clip((t - begin) / last, 0, 1)
            q += (goal - at) * (s**3 * (10 - 15 * s + 6 * s * s))[:, None]
            at, begin = goal, begin + last + rng.uniform(0.2, 1.0)
    return t, q


def bristles(v: np.ndarray, coulomb: np.ndarray, width: float) -> Float[np.ndarray, "samples joints"]:
    """Friction of a bristle model along a motion: a joint at rest keeps the torque with which it stopped."""
    z, out = np.zeros(v.shape[1]), np.empty_like(v)
    for k, (speed, bound) in enumerate(zip(v, coulomb, strict=True)):
        # exact for constant speed: dz/dt = v - |v| z, with z in units of its largest bend and bend of `width` rad
        z = np.sign(speed) + (z - np.sign(speed)) * np.exp(-np.abs(speed) / width / FINE)
        out[k] = bound * z
    return out


def record(twin: Twin, machine: Machine, seed: int) -> dict[str, Float[np.ndarray, " samples"]]:
    """Columns of a run."""
    robot, rng = machine.robot, np.random.default_rng(900 + seed)
    data, n = robot.createData(), robot.nv
    t, q = reference(twin, n, seed)
    v = np.gradient(q, 1 / FINE, axis=0)
    a = np.gradient(v, 1 / FINE, axis=0)
    full = [configuration(robot, x) for x in q]
    torque = np.array([pinocchio.rnea(robot, data, x, v[k], a[k]) for k, x in enumerate(full)])
    weight = np.array([pinocchio.computeGeneralizedGravity(robot, data, x) for x in full])
    torque += machine.spring * np.sin(q - 0.2)
    load = twin.load * (0.1 if twin.link_side else 1.0) * np.abs(weight)
    bound = machine.friction * (1 + twin.stribeck * np.exp(-((v / 0.1) ** 2))) + load
    friction = bristles(v, bound, 2e-4)
    viscous = machine.damping * ((1 - twin.quadratic) * v + twin.quadratic * v * np.abs(v))
    wave = twin.ripple * machine.friction * np.sin(50 * q + np.arange(n))
    link = torque.copy()
    torque += machine.armature * a + friction + viscous + wave
    effort = np.where(robot.effortLimit > 0, np.minimum(robot.effortLimit, 400), 50.0)
    seen = q if np.isinf(twin.stiffness) else q + link / (twin.stiffness * effort)
    torque = (torque + 0.01 * effort) / machine.constants
    steps = 1 / twin.rate * np.maximum(1 + twin.jitter * rng.standard_normal(int(twin.seconds * twin.rate)), 0.05)
    stamps = np.cumsum(steps)
    stamps = stamps[stamps < t[-1] - 0.05]
    for start in twin.seconds * (1 + np.arange(twin.gaps)) / (twin.gaps + 1):
        stamps = stamps[(stamps < start) | (stamps > start + 0.7)]
    columns = {"time": stamps}
    for j, name in enumerate(list(robot.names)[1:]):
        columns[f"qpos/{name}"] = twin.step * np.round(np.interp(stamps, t, seen[:, j]) / twin.step) + machine.zeros[j]
        exact = np.interp(stamps - twin.delay, t, torque[:, j])
        columns[f"ctrl/{name}"] = exact + twin.noise * np.std(torque[:, j]) * rng.standard_normal(len(stamps))
    return columns


@dataclasses.dataclass(frozen=True)
class Rows:
    """Equations of a run in the peer's band."""

    A: Float[np.ndarray, "samples joints columns"]
    torque: Float[np.ndarray, "samples joints"]
    v: Float[np.ndarray, "samples joints"]

    @classmethod
    def of(cls, robot: pinocchio.Model, columns: dict[str, np.ndarray]) -> "Rows":
        """Resample evenly, low-pass without phase, differentiate, and ask Pinocchio."""
        names, n, data = list(robot.names)[1:], robot.nv, robot.createData()
        period = float(np.median(np.diff(columns["time"])))
        t = np.arange(columns["time"][0], columns["time"][-1], period)
        b, a = butter(4, min(2 * BAND * period, 0.8))
        q, torque = (
            np.stack([filtfilt(b, a, np.interp(t, columns["time"], columns[f"{kind}/{x}"])) for x in names], axis=1)
            for kind in ("qpos", "ctrl")
        )
        v = np.gradient(q, period, axis=0)
        dv = np.gradient(v, period, axis=0)
        margin, every = round(0.2 / period), max(1, round(1 / (5 * BAND * period)))
        keep = slice(margin, -margin, every)
        q, v, dv, torque = q[keep], v[keep], dv[keep], torque[keep]
        A = np.zeros((len(q), n, 14 * n))
        for k in range(len(q)):
            full = configuration(robot, q[k])
            A[k, :, : 10 * n] = pinocchio.computeJointTorqueRegressor(robot, data, full, v[k], dv[k])
            for j in range(n):
                own = (dv[k, j], v[k, j], np.tanh(v[k, j] / REST), 1.0)
                A[k, j, 10 * n + 4 * j : 10 * n + 4 * j + 4] = own
        return cls(A, torque, v)

    def errors(self, x: Float[np.ndarray, " columns"]) -> Float[np.ndarray, " joints"]:
        """Relative torque error of each joint where it moves."""
        residual, moving = self.torque - self.A @ x, np.abs(self.v) > REST
        return np.array(
            [
                np.sqrt(np.mean(residual[m, j] ** 2) / np.mean(self.torque[m, j] ** 2)) if m.any() else np.nan
                for j, m in enumerate(moving.T)
            ]
        )


def least_squares(rows: Rows) -> Float[np.ndarray, " columns"]:
    """Least squares of rows at which joints move, weighted by the torque and then by the residuals."""
    moving, weight = np.abs(rows.v) > REST, 1 / np.sqrt(np.mean(rows.torque**2, axis=0))
    x = np.zeros(rows.A.shape[-1])
    for _ in range(3):
        A = np.concatenate([weight[j] * rows.A[m, j] for j, m in enumerate(moving.T)])
        b = np.concatenate([weight[j] * rows.torque[m, j] for j, m in enumerate(moving.T)])
        scale = np.linalg.norm(A, axis=0) + 1e-12
        x = np.linalg.lstsq(A / scale, b, rcond=1e-4)[0] / scale
        residual = rows.torque - rows.A @ x
        weight = np.array([1 / np.sqrt(np.mean(residual[m, j] ** 2)) if m.any() else 1 for j, m in enumerate(moving.T)])
    return x


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    """Write a CSV file."""
    np.savetxt(path, np.stack(list(columns.values()), axis=1), "%.9g", ",", header=",".join(columns), comments="")
    return path


def identify(twin: Twin, folder: Path, train: Path, other: Path) -> tuple[dict, str, float]:
    """Run the command; its result, what it said, and its CPU time."""
    words = ["identify", str(ROBOTS / twin.urdf), str(train), "--preset", "arm", "--holdout", str(other)]
    out = folder / "fit"
    command = [sys.executable, "-m", "truesim", *words, *twin.options, "--out", str(out), "--force"]
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    file = out / "fit.json"
    return json.loads(file.read_text()) if file.exists() else {}, done.stderr + done.stdout, seconds


def main() -> None:
    """Identify the twins and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, help="folder for logs and fits")
    options = parser.parse_args()
    table = []
    for number, twin in enumerate(TWINS):
        if options.only not in twin.name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or Path(temporary)) / f"twin{number}"
            folder.mkdir(parents=True, exist_ok=True)
            machine, file = machine_of(twin), reduced(twin.urdf, twin.joints)
            runs = [record(twin, machine, seed) for seed in (1, 2)]
            paths = [write(folder / f"{name}.csv", x) for name, x in zip(("train", "other"), runs, strict=True)]
            rows = [Rows.of(file, x) for x in runs]
            peer = rows[1].errors(least_squares(rows[0]))
            fit, said, seconds = identify(twin, folder, *paths)
            (folder / "said.txt").write_text(said, encoding="utf-8")
            own = fit.get("torque_errors", {}).get("held_out", {})
            motion = [e["rmse"] for e in fit.get("errors", {}).get("held_out", {}).values()]
            table.append(
                (
                    twin.name,
                    100 * float(np.nanmean(peer)),
                    100 * float(np.mean([e["relative"] for e in own.values()])) if own else np.nan,
                    1e3 * float(np.median(motion)) if motion else np.nan,
                    seconds,
                    fit.get("status", said.strip().splitlines()[-1][:90] if said.strip() else "?"),
                )
            )
            show("", ("twin", "least squares [%]", "truesim [%]", "motion [mrad]", "CPU [s]", "status"), table[-1:])
    show("Twins", ("twin", "least squares [%]", "truesim [%]", "motion [mrad]", "CPU [s]", "status"), table)


if __name__ == "__main__":
    main()
