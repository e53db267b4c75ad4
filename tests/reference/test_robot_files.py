"""Every robot of gymnasium and of example-robot-data loads unedited, with the numbers that Pinocchio reads."""

import importlib.util
import os
import re
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest

from truesim.files.robots import load
from truesim.files.robots.frames import full_inertia, matrix_of_quaternion
from truesim.physics.model.kinds import HINGE
from truesim.physics.model.model import Model

SITE = Path(importlib.util.find_spec("gymnasium").submodule_search_locations[0]).parent  # type: ignore[union-attr, index]
MJCF = sorted((SITE / "gymnasium/envs/mujoco/assets").glob("*.xml"))
URDF = sorted((SITE / "cmeel.prefix/share/example-robot-data/robots").rglob("*.urdf"))
TOLERANCE = 1e-9
"""Both read the same decimals; only the order of a few multiplications differs."""
UNPHYSICAL = {
    **{"alex_psyonic_hands": 4, "allegro_left_hand": 4, "allegro_right_hand": 4, "anymal-kinova": 1},
    **{"anymal_b_simple_description/anymal": 1, "anymal_c_simple_description/anymal": 5, "b1-z1": 1, "b1": 1},
    **{"go1": 1, "hyq_no_sensors": 5, "icub": 7, "icub_reduced": 7, "pr2": 2, "romeo_laas_small": 5},
    **{"romeo_small": 2, "tiago": 2, "tiago_dual": 2, "tiago_no_hand": 2},
}
"""How many links of each file have an inertia that no rigid body has."""


def test_all_files_are_there():
    """The packages still ship the 14 MJCF and 69 URDF files that this test is about."""
    assert (len(MJCF), len(URDF)) == (14, 69)


@pytest.mark.parametrize("file", MJCF, ids=lambda file: file.stem)
def test_mjcf_gives_the_numbers_of_mujoco(file, recwarn, capfd, tmp_path, monkeypatch):
    """Masses, centers of mass, joints and actuators are MuJoCo's own; its warnings neither print nor log to a file."""
    monkeypatch.chdir(tmp_path)
    model = load(file)
    assert (len(recwarn), capfd.readouterr(), list(tmp_path.iterdir())) == (0, ("", ""), [])
    reference = mujoco.MjModel.from_xml_path(os.fspath(file))
    np.testing.assert_array_equal(model.bodies.mass, reference.body_mass[1:])
    np.testing.assert_array_equal(model.bodies.com, reference.body_ipos[1:])
    np.testing.assert_array_equal(model.joints.axis, reference.jnt_axis)
    np.testing.assert_array_equal(model.joints.damping, reference.dof_damping[reference.jnt_dofadr])
    np.testing.assert_array_equal(model.actuators.gain, reference.actuator_gainprm[:, 0])
    assert (model.nq, model.nv) == (reference.nq, reference.nv)


@pytest.mark.parametrize("file", URDF, ids=lambda file: f"{file.parents[1].name}-{file.stem}")
def test_urdf_gives_the_numbers_of_pinocchio(file, capfd):
    """Each link's mass, center of mass, inertia and frame, and each joint's axis, are those that Pinocchio reads."""
    model = load(file)
    assert capfd.readouterr() == ("", "")
    text = file.read_text()
    if file.stem == "ur3":
        assert [str(finding) for finding in model.findings] == ["robot: has no links"]
        return
    moving = re.sub(r"""type\s*=\s*["']fixed["']""", 'type="continuous"', text)
    reference = pinocchio.buildModelFromXML(moving)
    for b, name in enumerate(model.bodies.names):
        frame = reference.frames[reference.getFrameId(name, pinocchio.BODY)]
        joint = frame.parentJoint
        assert frame.placement.isIdentity(), f"{name}: each link has its own joint once no joint is fixed"
        _compare(f"{name}: mass", model.bodies.mass[b], reference.inertias[joint].mass)
        if model.bodies.mass[b] > 0:  # Pinocchio forgets the center of a massless link
            _compare(f"{name}: com", model.bodies.com[b], reference.inertias[joint].lever, scale=1.0)
        _compare(f"{name}: inertia", full_inertia(model.bodies.inertia[b]), reference.inertias[joint].inertia)
        if joint:
            R, placement = matrix_of_quaternion(model.bodies.orientation[b]), reference.jointPlacements[joint]
            _compare(f"{name}: orientation", R, placement.rotation)
            _compare(f"{name}: position", model.bodies.position[b], placement.translation, scale=1.0)
    _compare_axes(model, reference)


def _compare(what, ours, theirs, scale=0.0):
    """Equal to `TOLERANCE` of the largest entry, or of `scale` where that is larger."""
    size = max(np.max(np.abs(theirs)), scale)
    assert np.max(np.abs(np.asarray(ours) - theirs)) <= TOLERANCE * size, f"{what}: {ours} is not {theirs}"


def _compare_axes(model: Model, reference: pinocchio.Model) -> None:
    data = reference.createData()
    pinocchio.computeJointJacobians(reference, data, pinocchio.neutral(reference))
    for j, name in enumerate(model.joints.names):
        joint = reference.getJointId(name)
        jacobian = pinocchio.getJointJacobian(reference, data, joint, pinocchio.LOCAL)
        column = jacobian[:, reference.joints[joint].idx_v]
        axis = column[3:] if model.joints.kinds[j] == HINGE else column[:3]
        _compare(f"{name}: axis", model.joints.axis[j], axis)


def test_unphysical_inertias_are_warned_of():
    """Exactly the links whose inertia no rigid body has are named in a warning, in 18 of the files."""
    counts = {}
    for file in URDF:
        messages = [str(f) for f in load(file).findings if f.severity == "warning" and "no rigid body" in f.message]
        links = sum(message.split("no rigid body")[0].count("'") // 2 for message in messages)
        if links:
            key = f"{file.parents[1].name}/{file.stem}" if file.stem == "anymal" else file.stem
            counts[key.replace("urdf/", "").replace("robots/", "")] = links
    assert counts == UNPHYSICAL


def test_missing_visuals_are_listed():
    """A robot whose meshes cannot be read loads, and says which were left out."""
    file = next(f for f in URDF if f.stem == "romeo_laas_small")
    messages = [finding.message for finding in load(file).findings]
    assert "format '.mesh' cannot be read: it is left out" in messages
