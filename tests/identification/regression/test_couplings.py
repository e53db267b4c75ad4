import numpy as np
import pytest

import truesim as ts
from tests.identification.regression.arms import arm_file, changed, load_arm, prepared, record, true_arm
from truesim.files.logs import Log
from truesim.identification.regression.couplings import add_couplings
from truesim.identification.regression.errors import torque_errors
from truesim.identification.torque_regression import regress_arm
from truesim.physics.model.tendons import couplings

ARMATURE, DAMPING, FRICTION = 0.5, 2.0, 3.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arm")


@pytest.fixture(scope="module")
def model(folder):
    return load_arm(folder)


def with_motor(log: Log, sign: float) -> Log:
    """The log with the torques of a motor that turns with the last two joints."""
    step = log.time[1] - log.time[0]
    w = np.gradient(log.column("qpos/j4") + sign * log.column("qpos/j5"), step)
    w = np.convolve(np.pad(w, 4, mode="edge"), np.ones(9) / 9, mode="valid")
    a = np.convolve(np.pad(np.gradient(w, step), 4, mode="edge"), np.ones(9) / 9, mode="valid")
    torque = ARMATURE * a + DAMPING * w + FRICTION * np.tanh(w / 0.02)
    return changed(log, ctrl__j4=lambda x: x + torque, ctrl__j5=lambda x: x + sign * torque)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_motor_of_two_joints_is_found(model, sign):
    true = true_arm(model)
    train, other = (with_motor(record(true, seed=seed), sign) for seed in (1, 2))
    found = regress_arm(model, prepared(model, train))
    (name,) = found.added
    assert couplings(found.model)[name] == {"j4": 1.0, "j5": sign}
    values = next(iter(found.candidates.values())).values
    for field, expected in (("armature", ARMATURE), ("damping", DAMPING), ("frictionloss", FRICTION)):
        assert float(values[f"tendons/{name}.{field}"]) == pytest.approx(expected, rel=0.1)
    fitted = next(iter(found.candidates.values())).written(found.model)
    assert max(e.relative for e in torque_errors(fitted, prepared(model, other)).values()) < 0.05


def test_an_arm_without_such_a_motor_has_none(model):
    assert not couplings(add_couplings(model, prepared(model, record(true_arm(model)))))


def test_the_fit_keeps_the_motor(model, folder):
    true = true_arm(model)
    fit = ts.identify(arm_file(folder), [with_motor(record(true, seconds=20.0), 1.0)], preset="arm", out=folder / "fit")
    again = ts.Fit.load(folder / "fit")
    path = "tendons/j4_and_j5.frictionloss"
    assert float(again.values[path]) == pytest.approx(float(fit.values[path]), rel=1e-9)
    assert couplings(ts.load(folder / "fit" / "arm.urdf")) == {"j4_and_j5": {"j4": 1.0, "j5": 1.0}}
