"""The cases: a robot file with a wrong start, a noisy log, bounds and the truth."""

import dataclasses
import json
import os
from pathlib import Path

import mujoco
import numpy as np

from truesim.files.logs import Log, read_log
from truesim.files.robots import load
from truesim.identification.fit import Fit
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.stages import solve_problem
from truesim.physics.model import paths
from truesim.physics.model.model import Model

NAMES = ("pendulum2_4s", "pendulum2_10s", "arm7_servo", "arm7_torque")
LAST_LINK = ("bodies/link7.mass", "bodies/link7.com", "bodies/link7.inertia", "joints/*.damping", "joints/*.armature")
"""Ten inertial parameters of the arm's last link, and two numbers for each joint."""
OFF = 1.5
"""Factor by which their start values are wrong."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One problem with its true values."""

    name: str
    file: Path
    """The robot at its start."""
    log: Log
    paths: tuple[str, ...]
    truth: np.ndarray
    bounds: dict[str, tuple[float, float]]
    start: tuple[np.ndarray, np.ndarray]
    """Initial configuration and velocity of the recording."""
    noise: np.ndarray
    """Standard deviation of each sensor's noise."""

    @property
    def model(self) -> Model:
        """The robot at its start."""
        return load(self.file)

    @property
    def true_model(self) -> Model:
        """The robot as it was recorded."""
        model = self.model
        for path, value in zip(self.paths, self.truth, strict=True):
            model = paths.write(model, path, value)
        return model


def data_folder() -> Path:
    """`$TRUESIM_DATA/sysid_cases`, or the data beside the repository."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("TRUESIM_DATA", beside)) / "sysid_cases"


def read_case(folder: Path, name: str) -> Case:
    """A case of the folder."""
    known = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return Case(
        name=name,
        file=folder / f"{name}.xml",
        log=read_log(folder / f"{name}.csv"),
        paths=tuple(known["parameters"]),
        truth=np.array(known["truth"]),
        bounds=dict(zip(known["parameters"], zip(known["lower"], known["upper"], strict=True), strict=True)),
        start=(np.array(known["initial_qpos"]), np.array(known["initial_qvel"])),
        noise=np.array(known["noise_std"]),
    )


def problem_of(case: Case, log: Log | None = None, like: Problem | None = None) -> Problem:
    """Estimation problem of a case, optionally with another log."""
    found = build(case.model, [log or case.log], case.paths, ProblemOptions(bounds=case.bounds))
    return dataclasses.replace(found, like=like)


def fitted(problem: Problem) -> Fit:
    """Fit of a problem."""
    return Fit.of(solve_problem(problem))


def errors(fit: Fit, truth: np.ndarray) -> np.ndarray:
    """Relative error of every estimate."""
    return np.abs(np.array([float(e.value) for e in fit.estimates]) / truth - 1)


def covered(fit: Fit, truth: np.ndarray) -> np.ndarray:
    """True for each number whose 95 % interval covers its true value."""
    low, high = (np.concatenate([np.ravel(getattr(e, end)) for e in fit.estimates]) for end in ("low", "high"))
    return (low <= truth) & (truth <= high)


def clean_signal(case: Case) -> np.ndarray:
    """Measurements without noise, simulated by MuJoCo with the true values."""
    truth = _true_mujoco(case)
    data = mujoco.MjData(truth)
    data.qpos[:], data.qvel[:] = case.start
    controls = case.log.hold([f"ctrl/{truth.actuator(i).name}" for i in range(truth.nu)], case.log.time)
    measurements = np.empty((len(controls), truth.nsensordata))
    for k, control in enumerate(controls):
        data.ctrl[:] = control
        mujoco.mj_forward(truth, data)
        measurements[k] = data.sensordata
        mujoco.mj_step(truth, data)
    return measurements


def with_noise(case: Case, clean: np.ndarray, seed: int) -> Log:
    """The log with fresh noise on its clean signal."""
    names = [name for name in case.log.columns if name.startswith("sensor/")]
    noisy = clean + case.noise * np.random.default_rng(seed).normal(size=clean.shape)
    return dataclasses.replace(case.log, columns={**case.log.columns, **dict(zip(names, noisy.T, strict=True))})


def last_link(case: Case) -> tuple[Problem, np.ndarray]:
    """Problem of the last link's full inertia and all damping and armature from a wrong start, with the true values."""
    true = case.true_model
    found = build(true, [case.log], LAST_LINK)
    truth = np.concatenate([np.ravel(p.start) for p in found.parameters])
    wrong = true
    for parameter in found.parameters:
        wrong = paths.write(wrong, parameter.targets[0].path, OFF * parameter.start)
    return build(wrong, [case.log], LAST_LINK), truth


def _true_mujoco(case: Case) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_path(str(case.file))
    for path, value in zip(case.paths, case.truth, strict=True):
        name, _, field = path.partition("/")[2].rpartition(".")
        if field == "mass":
            model.body(name).mass = value
        else:
            getattr(model, f"dof_{field}").reshape(model.nv, -1)[model.joint(name).dofadr[0], 0] = value
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model
