import dataclasses

import numpy as np
import pytest

from tests.identification.regression.arms import EFFORT, changed, load_arm, prepared, record, true_arm
from truesim.identification.regression import gains
from truesim.identification.regression.checks import check_torques
from truesim.identification.regression.equations import reduce
from truesim.identification.regression.estimate import ArmSystem, basic_terms, regress
from truesim.identification.regression.gains import doubted_gain
from truesim.identification.regression.limits import lift_effort_limits, lift_limits
from truesim.identification.regression.signals import band_limited
from truesim.physics.model import paths


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    model = load_arm(tmp_path_factory.mktemp("arm"))
    return model, record(true_arm(model))


def subjects(model, log):
    return [(finding.subject, finding.message) for finding in check_torques(model, prepared(model, log))]


def test_a_good_log_has_no_findings(arm):
    model, log = arm
    assert subjects(model, log) == []


@pytest.mark.parametrize("joint", range(6))
def test_a_flipped_sign_is_named(arm, joint):
    model, log = arm
    found = subjects(model, changed(log, **{f"ctrl__j{joint}": np.negative}))
    assert [(s, "sign" in m) for s, m in found] == [(f"j{joint}", True)]


def test_a_wrong_gear_ratio_is_named(arm):
    model, log = arm
    found = subjects(model, changed(log, ctrl__j1=lambda x: x / 2.5))
    assert [s for s, m in found if "gear ratio" in m] == ["j1"]


def test_percent_of_effort_is_named(arm):
    model, log = arm
    scaled = {f"ctrl__j{j}": lambda x, e=e: 100 * x / e for j, e in enumerate(EFFORT)}
    assert any("percent" in m for _, m in subjects(model, changed(log, **scaled)))


@pytest.mark.parametrize("gravity", [(9.81, 0, 0), (0, -9.81, 0), (0, 0, 9.81)])
def test_another_mount_is_named(arm, gravity):
    model, log = arm
    turned = dataclasses.replace(model, gravity=np.array(gravity, float))
    found = [m for s, m in subjects(turned, log) if s == "gravity"]
    assert len(found) == 1
    assert "-9.8" in found[0]


def test_a_wrong_encoder_zero_is_named(arm):
    model, log = arm
    found = subjects(model, changed(log, qpos__j2=lambda q: q + np.pi / 2))
    assert [s for s, m in found if "zero" in m] == ["j2"]
    assert any("-90 degrees" in m for _, m in found)


def test_the_sign_of_a_small_load_does_not_count(arm):
    model, _ = arm
    true = true_arm(model)
    path = "bodies/link5.com"
    inverted = paths.write(true, path, -np.asarray(paths.read(true, path)))
    assert subjects(model, record(inverted)) == []


def test_bounds_do_not_change_the_doubted_joint(arm):
    model, log = arm
    half = changed(log, ctrl__j1=lambda x: x / 2)
    samples = band_limited(model, prepared(model, half), 6.0).at_most(300)
    system = ArmSystem.of(model, reduce(model, samples, np.zeros(len(samples), int)), basic_terms(model.nv))
    found = regress(system, np.arange(1), gains.GAIN_WEIGHT)
    joints = np.arange(model.nv)
    every = {
        (j, k): gains.Trial.of(found, np.where(joints == j, k, 1.0)) for j in joints for k in gains.TRIED_GAINS[::4]
    }
    assert all(trial.bound <= trial.cost() for trial in every.values())
    best = min(
        (gains.Trial.of(found, np.where(joints == j, k, 1.0)).cost(), j) for j in joints for k in gains.TRIED_GAINS
    )
    joint, _, cost = gains.best_trial(found, np.inf)
    assert (cost, joint) == pytest.approx(best)


def test_a_joint_at_rest_and_a_one_way_joint_are_named(arm):
    model, log = arm
    still = changed(log, qpos__j5=lambda q: 0 * q, ctrl__j5=lambda x: 0 * x)
    assert ("j5", True) in [(s, "hardly moves" in m) for s, m in subjects(model, still)]


def test_limits_that_clip_the_log_are_lifted(arm):
    model, log = arm
    loud = changed(log, ctrl__j0=lambda x: 3 * x + 200)
    assert ("j0", True) in [(s, "effort limit" in m) for s, m in subjects(model, loud)]
    lifted = lift_effort_limits(model, prepared(model, loud))
    assert lifted.actuators.control_range[0, 1] > np.abs(loud.columns["ctrl/j0"]).max()
    assert np.array_equal(lifted.actuators.control_range[1], model.actuators.control_range[1])


def test_positions_beyond_the_files_range_lift_it(arm):
    """The robot was there, and a simulation must not be stopped."""
    model, log = arm
    far = changed(log, qpos__j1=lambda q: q + 7.0)
    assert ("j1", True) in [(s, "leaves the file's range" in m) for s, m in subjects(model, far)]
    lifted = lift_limits(model, prepared(model, far))
    assert lifted.joints.range[1, 1] > far.columns["qpos/j1"].max()
    assert lifted.joints.range[1, 0] == model.joints.range[1, 0]
    assert np.array_equal(lifted.joints.range[2], model.joints.range[2])


def test_torques_that_contradict_each_other_are_named(arm):
    """The masses of the file are wrong by a common factor, so that only the joints themselves tell."""
    model, log = arm
    samples = band_limited(model, prepared(model, changed(log, ctrl__j2=lambda x: 2 * x)), 6.0)
    found = doubted_gain(model, samples)
    assert found is not None
    assert found.joint == 2
    assert found.factor == pytest.approx(2.0, rel=0.25)
    assert doubted_gain(model, band_limited(model, prepared(model, log), 6.0)) is None
    passive = dataclasses.replace(samples, torque=samples.torque * (np.arange(model.nv) > 0))
    assert doubted_gain(model, passive) is None, "a passive joint has no torque to compare with"


def test_a_common_scale_is_named(arm):
    model, log = arm
    found = subjects(model, changed(log, **{f"ctrl__j{j}": lambda x: 0.3 * x for j in range(6)}))
    assert any(s == "torques" and "unit" in m for s, m in found)


def test_a_wrong_sign_contradicts_the_other_joints_without_any_friction(arm):
    model, log = arm
    samples = band_limited(model, prepared(model, changed(log, ctrl__j1=lambda x: -x)), 6.0)
    found = doubted_gain(model, samples)
    assert found is not None
    assert found.joint == 1
    assert found.factor < 0
