import dataclasses

import numpy as np
import pytest

from tests.identification.regression.arms import ARMATURE, DAMPING, FRICTION, load_arm, prepared, record, true_arm
from truesim.identification.regression.arm import ArmEstimate
from truesim.identification.regression.choose import MAX_FOLD_SHARE, choose, fold
from truesim.identification.regression.entropic import BASIS, physical_prior
from truesim.identification.regression.equations import ArmBodies, equations
from truesim.identification.regression.errors import torque_errors
from truesim.identification.regression.signals import band_limited, filter_signals, rest_speeds
from truesim.physics.dynamics.regressor import base_parameters, inertial_parameters


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    model = load_arm(tmp_path_factory.mktemp("arm"))
    truth = true_arm(model)
    logs = prepared(model, record(truth))
    chosen = choose(model, logs)
    return model, truth, logs, chosen, ArmEstimate(model, chosen.best, chosen.samples, chosen.weight)


def test_filter_differentiates_exactly_in_its_band():
    t = np.arange(0, 8, 0.002)
    x = np.sin(2 * np.pi * 0.7 * t) + 0.3 * t
    inner = slice(400, -400)
    w = 2 * np.pi * 0.7
    found = filter_signals(x[None], 0.002, 6.0, range(3))
    expected = x, w * np.cos(w * t) + 0.3, -(w**2) * np.sin(w * t)
    for own, true, tolerance in zip(found, expected, (1e-5, 1e-3, 2e-2), strict=True):
        assert np.allclose(own[0, inner], true[inner], atol=tolerance)


def test_filter_removes_what_is_above_its_band():
    t = np.arange(0, 8, 0.002)
    (found,) = filter_signals(np.sin(2 * np.pi * 24 * t)[None], 0.002, 6.0, (0,))
    assert np.abs(found[0, 400:-400]).max() < 1e-4


def test_equations_hold_for_the_true_parameters(arm):
    model, truth, *_ = arm
    clean = prepared(model, record(truth, noise=0.0))
    samples = band_limited(model, clean, 6.0)
    theta = np.asarray(inertial_parameters(truth))[list(ArmBodies.of(model).free)].ravel()
    for _, j, rows in equations(model, samples):
        x = np.concatenate([theta, [ARMATURE[j], DAMPING[j], FRICTION[j]], np.zeros(6), [-1.0]])
        assert np.sqrt(np.mean((rows @ x) ** 2)) < 0.02 * np.sqrt(np.mean(rows[:, -1] ** 2))


def test_friction_and_armature_are_found_from_zeros_in_the_file(arm):
    *_, found = arm
    for field, truth in (("armature", ARMATURE), ("damping", DAMPING), ("frictionloss", FRICTION)):
        values = np.array([found.values[f"joints/j{j}.{field}"] for j in range(6)])
        allowed = 0.12 if field == "armature" else 0.05
        assert np.all(np.abs(values / np.array(truth) - 1) < allowed), (field, values)


def test_base_parameters_are_found(arm):
    model, truth, logs, _, found = arm
    samples = band_limited(model, logs, 6.0)
    rows = np.concatenate([r[:, :60] for _, _, r in equations(model, samples)])
    base = base_parameters(rows / np.linalg.norm(rows, axis=0).max(), 1e-6)
    free = list(ArmBodies.of(model).free)
    true, value = (
        base.combination @ np.asarray(inertial_parameters(m))[free].ravel() for m in (truth, found.written(model))
    )
    heavy = np.abs(true) > 0.5
    assert heavy.sum() >= 5
    assert np.abs(value / true - 1)[heavy].max() < 0.05


def test_torque_error_is_that_of_the_truth(arm):
    model, truth, _, _, found = arm
    other = prepared(model, record(truth, seed=7, name="other"))
    errors = {
        name: torque_errors(m, other) for name, m in (("file", model), ("fit", found.written(model)), ("true", truth))
    }
    mean = {name: np.mean([e.relative for e in each.values()]) for name, each in errors.items()}
    assert mean["fit"] < 1.1 * mean["true"]
    assert mean["file"] > 10 * mean["fit"]


def test_every_body_is_physical(arm):
    model, *_, found = arm
    theta = np.asarray(inertial_parameters(found.written(model)))[1:]
    assert np.linalg.eigvalsh(np.tensordot(theta, BASIS, axes=1)).min() > 0


def test_prior_of_a_file_without_inertia_is_physical():
    zero = np.zeros((1, 10))
    rod = np.array([[2.0, 0.4, 0, 0, 0.0, 0.08, 0.08, 0, 0, 0]])
    for theta in (zero, rod):
        assert np.linalg.eigvalsh(np.tensordot(physical_prior(theta), BASIS, axes=1)).min() > 0


@pytest.mark.slow
def test_intervals_cover_the_truth(tmp_path):
    model = load_arm(tmp_path)
    truth = true_arm(model)
    inside = []
    for seed in range(40):
        logs = prepared(model, record(truth, seed=seed))
        chosen = choose(model, logs)
        found = ArmEstimate(model, chosen.best, chosen.samples, chosen.weight)
        std, first = np.sqrt(np.diag(found.covariance)), 0
        for path, value in found.values.items():
            own = std[first : first + np.size(value)]
            first += np.size(value)
            for field, values in (("damping", DAMPING), ("frictionloss", FRICTION), ("armature", ARMATURE)):
                if path.endswith(field):
                    inside.append(abs(float(value) - values[int(path.split("/j")[1][0])]) < 1.96 * own[0])
    assert np.mean(inside) > 0.9


def test_every_joint_moves_in_several_folds(arm):
    """Also in a log that moves one joint after the other: one contiguous fold would be all that shows a joint."""
    model, _, logs, *_ = arm
    samples = band_limited(model, logs, 6.0)
    assert np.all(np.diff(fold(samples, rest_speeds(model))) >= 0)
    turn = np.arange(len(samples)) * model.nv // len(samples)
    v = np.where(turn[:, None] == np.arange(model.nv), samples.v, 0.0)
    alone = dataclasses.replace(samples, v=v)
    folds, moving = fold(alone, rest_speeds(model)), np.abs(v) > rest_speeds(model)
    shares = [moving[folds == k].sum(axis=0) / moving.sum(axis=0) for k in range(folds.max() + 1)]
    assert np.max(shares) <= MAX_FOLD_SHARE
