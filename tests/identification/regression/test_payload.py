"""Payload of an arm from logs with and without it."""

import numpy as np
import pytest

from tests.identification.regression.arms import load_arm, prepared, record, true_arm
from truesim.core.errors import TruesimError
from truesim.identification.regression.payload import identify_payload
from truesim.physics.model import paths

MASS, COM = 1.0, np.array([0.02, -0.03, 0.08])


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    model = load_arm(tmp_path_factory.mktemp("arm"))
    truth = true_arm(model)
    body = f"bodies/{model.bodies.names[-1]}"
    mass, com, inertia = (np.asarray(paths.read(truth, f"{body}.{f}")) for f in ("mass", "com", "inertia"))
    total = mass + MASS
    center = (mass * com + MASS * COM) / total
    carried = np.diag(inertia[:3])
    carried[[0, 0, 1], [1, 2, 2]] = carried[[1, 2, 2], [0, 0, 1]] = inertia[3:]
    for m, r in ((mass, com - center), (MASS, COM - center)):
        carried = carried + m * (r @ r * np.eye(3) - np.outer(r, r))
    carried = carried + np.diag([0.002, 0.003, 0.0015])
    six = carried[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    loaded = truth
    for field, value in (("mass", total), ("com", center), ("inertia", six)):
        loaded = paths.write(loaded, f"{body}.{field}", np.asarray(value))
    empty, full = record(truth, seed=0, name="empty"), record(loaded, seed=1, name="full")
    return model, prepared(model, empty), prepared(model, full)


def test_mass_and_center_are_found_with_intervals(logs):
    model, empty, full = logs
    found = identify_payload(model, empty, full, model.bodies.names[-1])
    assert found.mass == pytest.approx(MASS, rel=0.02)
    assert np.abs(found.com - COM).max() < 0.005
    assert abs(found.mass - MASS) < 1.96 * found.mass_std
    assert found.mass_std > 0.05 * found.mass, "an unknown torque constant is part of the interval"


def test_a_weighed_load_calibrates_the_torque_constants(logs):
    model, empty, full = logs
    found = identify_payload(model, empty, full, model.bodies.names[-1], weighed=1.1 * MASS)
    assert found.mass == pytest.approx(1.1 * MASS)
    assert found.scale == pytest.approx(1.1, rel=0.02)
    assert found.scale_std < 0.03


def test_unknown_bodies_and_masses_are_refused(logs):
    model, empty, full = logs
    with pytest.raises(TruesimError, match="did you mean 'link5'"):
        identify_payload(model, empty, full, "lnk5")
    with pytest.raises(TruesimError, match="must be positive"):
        identify_payload(model, empty, full, "link5", weighed=0.0)
