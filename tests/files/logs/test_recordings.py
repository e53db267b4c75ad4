"""Real recordings: every one is read, matched and prepared, and raises no false alarm."""

import os
from pathlib import Path

import numpy as np
import pytest

from truesim.files.logs import matching, motion, prepare, read_log, sampling
from truesim.files.robots import load

DATA = Path(os.environ.get("TRUESIM_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
CASES = [
    ("dfki_double_pendulum/rig_C.xml", "dfki_double_pendulum/C*.csv"),
    ("qube/rig.xml", "qube/*.csv"),
    ("emps/rig.xml", "emps/*.csv"),
    ("xl330_servo/rig.xml", "xl330_servo/*.csv"),
    ("cube_toss/rig.xml", "cube_toss/0[0-2]*.csv"),
    *((f"sysid_cases/{name}.xml", f"sysid_cases/{name}.csv") for name in ("pendulum2_4s", "arm7_servo", "arm7_torque")),
]


@pytest.mark.parametrize(("robot", "pattern"), CASES, ids=[pattern for _, pattern in CASES])
def test_recordings_are_understood(robot, pattern):
    """Columns match by name, angles are not taken for degrees, and the motion is known nearly everywhere."""
    if not (DATA / robot).is_file():
        pytest.skip(f"the recordings are not at {DATA}; set TRUESIM_DATA to the data folder")
    model = load(DATA / robot)
    paths = sorted(DATA.glob(pattern))
    assert paths
    for path in paths:
        log = read_log(path)
        matching(log, model).check(log.name)
        assert 100 < sampling(log).rate < 1100
        clean = prepare(log, model)
        assert not [finding for finding in clean.findings if finding.severity == "warning"], clean.findings
        assert np.mean(motion(clean, model).complete) > 0.99
