"""Joints of a URDF, such as those of a gripper, of which the logs know nothing."""

import numpy as np
import pytest

import truesim as ts
from tests.identification.regression.arms import arm_file, prepared, record, true_arm
from truesim.core.errors import NameUnknownError
from truesim.files.robots.hold import unrecorded_joints, with_held_joints
from truesim.identification.options import IdentifyOptions, read_options
from truesim.identification.reading import Silent, hold_unrecorded
from truesim.identification.torque_regression import regress_arm
from truesim.physics.model import paths

GRIPPER = (
    '<link name="finger"><inertial><origin xyz="0 0 0.02"/><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" '
    'izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="grip" type="prismatic"><parent link="link1"/>'
    '<child link="finger"/><axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="1"/></joint></robot>'
)


@pytest.fixture
def arm(tmp_path):
    file = arm_file(tmp_path, joints=4)
    plain = ts.load(file)
    file.write_text(file.read_text().replace("</robot>", GRIPPER))
    return plain, ts.load(file), record(true_arm(plain), seconds=8.0)


def test_a_joint_without_any_column_is_held(arm):
    _, model, log = arm
    assert unrecorded_joints(model, [log]) == ("grip",)
    held, options = hold_unrecorded(model, [log], IdentifyOptions(), Silent())
    assert held.joints.names == held.actuators.names == ("j0", "j1", "j2", "j3")
    assert "finger" in held.bodies.names
    assert read_options(options.document()).held == ("grip",)
    found = regress_arm(held, prepared(held, log))
    assert set(found.candidates["chosen friction"].values) >= {f"joints/j{j}.armature" for j in range(4)}


def test_held_joints_keep_values_and_file(arm, tmp_path):
    """Changed numbers stay, and the saved file has the joint as before."""
    _, model, _ = arm
    changed = paths.write(model, "joints/j2.damping", np.asarray(0.7))
    held = with_held_joints(changed, ("grip",))
    assert float(held.joints.damping[2]) == float(changed.joints.damping[2])
    ts.save(held, tmp_path / "saved.urdf")
    assert ts.load(tmp_path / "saved.urdf").joints.names == model.joints.names


def test_recorded_and_misspelled_joints_are_not_held(arm):
    plain, model, log = arm
    assert unrecorded_joints(plain, [log]) == ()
    odd = ts.Log(log.time, {**log.columns, "qpos/gripp": np.zeros(len(log.time))}, "odd")
    with pytest.raises(NameUnknownError, match="did you mean 'qpos/grip'"):
        unrecorded_joints(model, [odd])
