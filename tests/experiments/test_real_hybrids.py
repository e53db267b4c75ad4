"""Hybrids of recorded robots: what is held out takes no part, and the proposed port lowers its error."""

import os
from pathlib import Path

import pytest

from experiments.real_hybrids.cases import chosen, servo
from experiments.real_hybrids.command import fitted, hybrid, suggested
from experiments.recorded import BESIDE

pytestmark = pytest.mark.skipif(
    not (Path(os.environ.get("TRUESIM_DATA", BESIDE)) / "xl330_servo").is_dir(),
    reason="the recordings are not there; set TRUESIM_DATA to the data folder",
)


def test_held_out_runs_take_no_part(tmp_path):
    """No run of any case is both fitted to and held out, and all are there."""
    cases = chosen([], tmp_path)
    assert [case.name.split()[0] for case in cases] == ["Qube", "XL330,", "XL330,", "XL330,", "DFKI", "DFKI"]
    for case in cases:
        assert len(case.logs) > 0
        assert len(case.held_out) > 0
        assert not set(case.logs) & set(case.held_out)
        assert all(path.is_file() for path in (case.robot, *case.logs, *case.held_out))
        assert not any(str(path) in case.options for path in case.held_out)


@pytest.mark.slow
def test_the_proposed_port_of_the_servo(tmp_path):
    """The hybrid at the port that comes first is at least a fifth better at a gain that was not fitted to."""
    case = servo(400, tmp_path)
    before = fitted(case, tmp_path / "analytic")
    suggested(case, tmp_path / "analytic", tmp_path / "suggested")
    after = hybrid(case, tmp_path / "suggested" / "blueprint-1.toml", 0, tmp_path / "hybrid")
    assert after["qpos/arm"]["rmse"] < 0.8 * before["qpos/arm"]["rmse"]
    assert after["qpos/arm"]["median"] < 0.8 * before["qpos/arm"]["median"]
