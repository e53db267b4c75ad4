"""`truesim posterior` and `truesim calibrate` on a small fit."""

import json

import numpy as np
import pytest

from tests.identification.recorded import ARM_WRONG, arm_log
from truesim.files.logs import write_log
from truesim.files.robots import load
from truesim.identification.posterior import calibration


@pytest.fixture
def fitted(truesim, tmp_path):
    """The folder of a fit of the planar arm."""
    (tmp_path / "arm.xml").write_text(ARM_WRONG)
    log = arm_log()
    write_log(tmp_path / "run.csv", {"time": log.time, **log.columns})
    outcome = truesim("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "joints/*.damping", "--out", "fit")
    assert outcome.code == 0, outcome.err
    return tmp_path / "fit"


def test_from_a_fit_to_robots_and_coverage(truesim, fitted, tmp_path):
    """Ranges hold the fit's intervals, samples and robot files differ, and calibration goes on where it stopped."""
    outcome = truesim("posterior", "fit", "--out", "post", "--samples", "200", "--variants", "2", "--seed", "3")
    assert outcome.code == 0, outcome.err
    ranges = json.loads((tmp_path / "post" / "ranges.json").read_text())["ranges"]
    for parameter in json.loads((fitted / "fit.json").read_text())["parameters"]:
        found = ranges[parameter["path"]]
        width = parameter["high"] - parameter["low"]
        np.testing.assert_allclose(
            [found["low"], found["high"]], [parameter["low"], parameter["high"]], atol=0.1 * width
        )
    samples = (tmp_path / "post" / "samples.csv").read_text().splitlines()
    assert (len(samples), samples[0].split(",")[0]) == (201, "bodies/upper.mass")
    masses = [load(tmp_path / "post" / "variants" / f"arm_{k}.xml").bodies.mass[1] for k in range(2)]
    assert masses[0] != masses[1]
    assert (tmp_path / "post" / "posterior.html").is_file()

    assert "not empty" in truesim("posterior", "fit", "--out", "post").sentence
    assert "laplace" in truesim("posterior", "fit", "--out", "other", "--kind", "laplas").sentence

    assert truesim("calibrate", "fit", "--out", "cal", "--repeats", "3").code == 0
    journal = tmp_path / "cal" / "repeats.jsonl"
    before = journal.read_text()
    journal.write_text(before[:-20])
    outcome = truesim("calibrate", "fit", "--out", "cal", "--repeats", "3")
    assert "Continuing after 2 repeats" in outcome.err
    assert journal.read_text() == before
    assert "joint 95 % region" in outcome.out


def test_ctrl_c_keeps_what_has_ended(truesim, fitted, tmp_path, monkeypatch):
    """The third repeat is interrupted: a sentence, no traceback, and two repeats are there to go on from."""
    solve, begun = calibration.solve_problem, []

    def interrupted(*arguments, **options):
        begun.append(1)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return solve(*arguments, **options)

    monkeypatch.setattr(calibration, "solve_problem", interrupted)
    outcome = truesim("calibrate", "fit", "--out", "cal", "--repeats", "4")
    assert outcome.code == 130
    assert "the same command continues" in outcome.err
    assert outcome.err.strip().endswith("Interrupted.")
    assert len((tmp_path / "cal" / "repeats.jsonl").read_text().splitlines()) == 3
    assert "belongs to other work" in truesim("calibrate", "fit", "--out", "cal", "--seed", "1").err


def test_a_mixture_says_how_well_it_fits(truesim, fitted):
    """Kernels, and by how much densities differ; numbers that make no sense are named."""
    outcome = truesim("posterior", "fit", "--out", "post", "--kind", "mixture", "--kernels", "2")
    assert outcome.code == 0, outcome.err
    assert "density typically differs" in outcome.out
    assert "--kernels is 0" in truesim("posterior", "fit", "--out", "other", "--kernels", "0").sentence
    assert "--starts is 0" in truesim("posterior", "fit", "--out", "other", "--starts", "0").sentence


def test_the_folder_of_a_fit_is_enough(truesim, fitted, tmp_path, monkeypatch):
    """From another folder, without the robot file and the logs that it was fitted to."""
    (tmp_path / "run.csv").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "fit").rename(tmp_path / "elsewhere" / "moved")
    monkeypatch.chdir(tmp_path / "elsewhere")
    outcome = truesim("posterior", "moved", "--out", "post")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "elsewhere" / "post" / "samples.csv").is_file()
