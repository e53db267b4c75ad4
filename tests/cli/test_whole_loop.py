"""From logs to a policy by commands alone: `identify`, `posterior`, `train`, `play`."""

import csv

import numpy as np
import pytest

from truesim.bridges.real import RealEffects, RealEnv, StandInEnv
from truesim.cli import trained_policies
from truesim.core.precision import float32
from truesim.policies import make_task
from truesim.policies.draws import make_keys
from truesim.policies.episodes import begin
from truesim.policies.tasks.pendulum import PENDULUM_ROBOT


@pytest.fixture
def settings_of_jax(monkeypatch):
    """Leaves the compilation cache of this process alone."""
    monkeypatch.setattr(trained_policies, "use_compilation_cache", lambda: None)


def record(folder):
    """Two runs of 4 s of a pendulum that is a quarter heavier than its file."""
    task = make_task("pendulum-swingup")
    effects = RealEffects({"bodies/rod.mass": 1.25}, position_noise=1e-3, velocity_noise=0.01)
    real = RealEnv(StandInEnv(task, effects), period=task.period, folder=folder)
    for run in range(2):
        real.reset(seed=run)
        for k in range(200):
            real.step(np.array([np.sin(0.11 * k + run) * np.sin(0.013 * k)]))
    real.close()
    return [str(path) for path in real.logs]


@pytest.mark.slow
def test_from_logs_to_a_policy(truesim, tmp_path, settings_of_jax):
    """The samples that `posterior` writes are those that `train` draws from, and they hold the truth."""
    logs = record(tmp_path / "logs")
    (tmp_path / "pendulum.xml").write_text(PENDULUM_ROBOT)
    done = truesim("identify", "pendulum.xml", *logs, "--free", "bodies/rod.mass", "joints/*.damping", "--out", "fit")
    assert done.code == 0, done.output
    for kind in ("laplace", "mixture"):
        assert truesim("posterior", "fit", "--kind", kind, "--out", kind).code == 0
        with (tmp_path / kind / "samples.csv").open() as file:
            samples = list(csv.DictReader(file))
        masses = np.array([float(row["bodies/rod.mass"]) for row in samples])
        assert abs(masses.mean() - 1.25) < 0.02
        arguments = ("--robot", "fit", "--randomize", kind, "--steps", "20000", "--out", f"policy {kind}")
        assert truesim("train", "pendulum-swingup", *arguments).code == 0
        task = make_task("pendulum-swingup", tmp_path / "fit", trained_policies.randomization_of(tmp_path / kind))
        with float32():
            drawn = [float(begin(task, key).parameters["bodies/rod.mass"]) for key in make_keys(0, 5)]
        assert all(np.abs(masses - each).min() < 1e-6 for each in drawn)
        assert len(set(drawn)) > 1
    assert truesim("play", "policy mixture", "--episodes", "2").code == 0
