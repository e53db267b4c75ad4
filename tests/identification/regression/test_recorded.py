"""Regression of a real arm, where its recordings are beside the repository."""

import os
from pathlib import Path

import numpy as np
import pytest

import truesim as ts
from truesim.identification.problem.build import prepare_logs
from truesim.identification.regression.errors import torque_errors
from truesim.identification.torque_regression import regress_arm

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
DATA = Path(os.environ.get("TRUESIM_DATA", BESIDE)) / "kinova_gen3"
HELD_OUT = {"excitation_2.csv": 0.059, "sweep_fast_2.csv": 0.092}
"""Largest mean relative torque error in a band of 5 Hz."""


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the recordings are not at {DATA}")
def test_kinova_torques_of_other_runs_are_predicted():
    model = ts.load(DATA / "robot.urdf")
    files = [f for f in sorted(DATA.glob("*.csv")) if f.name not in HELD_OUT]
    found = regress_arm(model, prepare_logs(model, [ts.read_log(f) for f in files]))
    fitted = next(iter(found.candidates.values())).written(found.model)
    for name, most in HELD_OUT.items():
        errors = torque_errors(fitted, prepare_logs(model, [ts.read_log(DATA / name)]), 5.0)
        assert np.mean([e.relative for e in errors.values()]) < most
