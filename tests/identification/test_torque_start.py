"""Trajectory fits that a regression of joint torques starts, and bounds that are not guessed from zeros."""

import dataclasses

import numpy as np
import pytest

import truesim as ts
from tests.identification.regression.arms import ARMATURE, DAMPING, FRICTION, load_arm, prepared, record, true_arm
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code
from truesim.identification.problem.build import assemble
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.regression.machine import joint_sizes
from truesim.identification.torque_start import Compared, regress_free
from truesim.physics.model import paths

OWN = ("joints/*.armature", "joints/*.damping", "joints/*.frictionloss")
SEVERAL = 1.3
"""Factor by which the log's torque constant of a joint is wrong."""


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    model = load_arm(tmp_path_factory.mktemp("arm"))
    truth = true_arm(model)
    return model, truth, prepared(model, record(truth, seconds=20.0, noise=0.02))


def regressed(model, logs, free, **options):
    problem = assemble(model, logs, free, ProblemOptions(reach=joint_sizes(model, logs), **options))
    theta = regress_free(problem, logs)
    assert theta is not None
    return {p.name: np.asarray(v) for p, v in zip(problem.parameters, problem.parameters.values(theta), strict=True)}


def test_joint_parameters_are_regressed_with_known_bodies(arm):
    model, truth, logs = arm
    for name in model.bodies.names[1:]:
        for field in ("mass", "com", "inertia"):
            path = f"bodies/{name}.{field}"
            model = paths.write(model, path, paths.read(truth, path))
    found = regressed(model, logs, OWN)
    for field, values in (("armature", ARMATURE), ("damping", DAMPING), ("frictionloss", FRICTION)):
        ratio = np.array([found[f"joints/j{j}.{field}"] for j in range(6)]) / values
        assert np.abs(ratio - 1).max() < (0.1 if field == "armature" else 0.05), (field, ratio)


def test_torque_constants_are_regressed_with_known_bodies(arm):
    _, truth, logs = arm
    log = dataclasses.replace(logs[0], columns=dict(logs[0].columns))
    log.columns["ctrl/j1"] = log.columns["ctrl/j1"] / SEVERAL
    found = regressed(truth, [log], ("actuators/j1.gain", "actuators/j2.gain"))
    assert found["actuators/j1.gain"] == pytest.approx(SEVERAL, rel=0.02)
    assert found["actuators/j2.gain"] == pytest.approx(1.0, rel=0.02)


def test_sizes_follow_the_machine_and_not_the_zeros_of_the_file(arm):
    model, _, logs = arm
    sizes = joint_sizes(model, logs)
    parameters = assemble(model, logs, OWN, ProblemOptions(reach=sizes)).parameters
    high = {p.name: float(np.max(p.high)) for p in parameters}
    for j in range(6):
        assert high[f"joints/j{j}.armature"] > 1.5 * ARMATURE[j]
        assert high[f"joints/j{j}.damping"] > 1.5 * DAMPING[j]
        assert high[f"joints/j{j}.frictionloss"] > 1.5 * FRICTION[j]
    assert "joints/j0.damping" not in joint_sizes(paths.write(model, "joints/j0.damping", np.asarray(2.0)), logs)


def test_parameters_without_effect_on_torques_start_nothing(arm):
    model, _, logs = arm
    problem = assemble(model, logs, ("actuators/*.delay",), ProblemOptions())
    assert regress_free(problem, logs) is None


def test_errors_are_compared_by_motion_and_torque():
    good, poor = Compared(motion=-5.0, torque=-3.0), Compared(motion=-4.0, torque=-2.0)
    assert good.is_better(poor)
    assert not poor.is_better(good)
    assert not Compared(motion=-4.9, torque=-9.0).is_better(good), "a torque error does not make up for motion"
    assert good.is_better(Compared(motion=np.inf, torque=-9.0))


PENDULUM = """<robot name="rig"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.2"/>
<mass value="1"/><inertia ixx="0.02" iyy="0.02" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-9" upper="9" effort="40" velocity="9"/></joint></robot>"""


def test_a_free_fit_starts_from_its_torques_and_says_so(tmp_path):
    """The true armature, friction and damping are far beyond bounds that would be guessed from zeros in the file."""
    (tmp_path / "rig.urdf").write_text(PENDULUM)
    model = ts.load(tmp_path / "rig.urdf")
    truth = model
    for field, value in (("armature", 0.9), ("damping", 8.0), ("frictionloss", 6.0)):
        truth = paths.write(truth, f"joints/hinge.{field}", np.asarray(value))
    logs = [record(truth, seconds=8.0, seed=k, noise=0.01, name=f"run{k}") for k in range(2)]
    fit = ts.identify(model, logs[:1], OWN, holdout=logs[1:])
    note = next(d for d in fit.diagnostics if d.code is Code.TORQUE_START)
    assert "regression of joint torques" in explain(note)
    assert fit.values["joints/hinge.damping"] == pytest.approx(8.0, rel=0.1)
    assert fit.values["joints/hinge.frictionloss"] == pytest.approx(6.0, rel=0.1)
    errors = next(iter(fit.errors["held_out"].values()))
    assert errors.median < 0.02
