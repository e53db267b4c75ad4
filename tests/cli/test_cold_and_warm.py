"""A fit that finds its kernels in the cache equals the one that compiled them, to the bit."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.identification.two_joint_arm import FREE, stream, xml
from truesim.files.logs import write_log


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders and output of two processes that make the same fit, the first with an empty cache."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "arm.xml").write_text(xml())
    samples = stream(3.0)
    write_log(folder / "run.csv", {name: np.array([s[name] for s in samples]) for name in samples[0]})
    return [_identify(folder, name) for name in ("cold", "warm")]


def _identify(folder, name):
    command = ["identify", "arm.xml", "run.csv", "--free", *FREE, "--out", name]
    environment = {**os.environ, "TRUESIM_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "truesim", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / name, done.stdout + done.stderr


def test_the_second_run_compiles_nothing(runs):
    """The summary of the first run has a time for lowering and for compiling, that of the second has neither."""
    (_, cold), (_, warm) = runs
    assert "compiling" in cold
    assert "lowering" in cold
    assert "compiling" not in warm
    assert "lowering" not in warm


def test_estimates_and_intervals_are_the_same_bits(runs):
    """Everything that a fit says of its parameters, its errors and its status."""
    first, second = (json.loads((folder / "fit.json").read_text()) for folder, _ in runs)
    assert len(first["parameters"]) == 5
    for key in ("parameters", "status", "errors"):
        assert first[key] == second[key]
