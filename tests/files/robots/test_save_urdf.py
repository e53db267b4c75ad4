"""Changed numbers go back into the user's URDF; what URDF cannot hold goes to the sidecar."""

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files.robots.conftest import LEG, accelerations, changed, diff, differences
from truesim.files.robots import load, loads, save
from truesim.files.robots.sidecar import sidecar_path
from truesim.physics.model import paths

FOUR = {
    "bodies/hip.mass": 3.5,
    "bodies/tip.inertia": [2e-4, 1e-4, 1.5e-4, 0, 0, 0],
    "joints/knee.damping": 0.45,
    "joints/knee.armature": 0.02,
}


def test_an_unchanged_model_gives_the_same_bytes(leg, tmp_path):
    """Saving without a change writes the file as it was, and no sidecar."""
    assert save(leg, tmp_path / "leg.urdf") == ()
    assert (tmp_path / "leg.urdf").read_bytes().decode() == LEG
    assert not sidecar_path(tmp_path / "leg.urdf").exists()


def test_only_changed_numbers_differ(leg, tmp_path):
    """A mass, an inertia and a damping differ where the user wrote them; the armature is in the sidecar."""
    model = changed(leg, FOUR)
    said = save(model, tmp_path / "leg.urdf")
    expected = LEG.replace('"3.0"', '"3.5"').replace('damping="0.3"', 'damping="0.45"')
    expected = expected.replace(
        'ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"',
        'ixx="0.0002" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="0.00015"',
    )
    assert diff(expected, (tmp_path / "leg.urdf").read_text()) == []
    assert [finding.subject for finding in said] == ["joints/knee.armature"]
    assert differences(model, load(tmp_path / "leg.urdf")) == []


def test_mujoco_itself_sees_the_change(leg, tmp_path):
    """MuJoCo's reading of the saved URDF, given the sidecar's armature, accelerates as our export to MJCF, to 1e-12."""
    model = changed(leg, FOUR)
    save(model, tmp_path / "leg.urdf")
    save(model, tmp_path / "leg.xml")
    spec = mujoco.MjSpec.from_file(str(tmp_path / "leg.urdf"))
    spec.compiler.fusestatic = False
    spec.joint("knee").armature = 0.02
    ours = mujoco.MjModel.from_xml_path(str(tmp_path / "leg.xml"))
    theirs = spec.compile()
    ours.actuator_gainprm[:] = 0
    a, b = accelerations(ours), accelerations(theirs)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.max(np.abs(b)))


ONE_PLACE = {
    "com": ("bodies/shin.com", [0, 0.01, -0.15], 'xyz="0 0 -0.15" rpy="0.3', 'xyz="0 0.01 -0.15" rpy="0.3'),
    "axis": ("joints/knee.axis", [0, 0.6, 0.8], '<axis xyz="0 1 0"/>', '<axis xyz="0 0.6 0.8"/>'),
    "limits": ("joints/knee.range", [-1.5, 0.75], 'upper="0.5"', 'upper="0.75"'),
    "friction": ("joints/knee.frictionloss", 0.2, 'friction="0.1"', 'friction="0.2"'),
    "origin": ("bodies/shin.position", [0, 0.1, -0.4], 'xyz="0 0.1 -0.3"', 'xyz="0 0.1 -0.4"'),
    "added dynamics": (
        "joints/toe.damping",
        0.05,
        '  <joint name="toe" type="continuous">\n',
        '  <joint name="toe" type="continuous">\n    <dynamics damping="0.05"/>\n',
    ),
    "added inertial": (
        "bodies/foot.mass",
        0.5,
        '  <link name="foot"/>\n',
        '  <link name="foot">\n    <inertial><origin xyz="0 0 0" rpy="0 0 0"/><mass value="0.5"/>'
        '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>\n  </link>\n',
    ),
    "added origin": (
        "bodies/tip.com",
        [0.01, 0, 0],
        "<inertial><mass",
        '<inertial><origin xyz="0.01 0 0"/><mass',
    ),
}


@pytest.mark.parametrize(("path", "value", "old", "new"), ONE_PLACE.values(), ids=ONE_PLACE)
def test_each_kind_of_number_has_its_place(leg, tmp_path, path, value, old, new):
    """One changed value is one changed place in the text, and reads back without a sidecar."""
    model = changed(leg, {path: value})
    assert save(model, tmp_path / "leg.urdf") == ()
    assert diff(LEG.replace(old, new), (tmp_path / "leg.urdf").read_text()) == []
    assert differences(model, load(tmp_path / "leg.urdf")) == []


def test_a_rotated_inertial_frame_keeps_its_angles(leg, tmp_path):
    """A new inertia is written in the axes of the file's own inertial frame; its rpy stays."""
    model = changed(leg, {"bodies/shin.inertia": np.asarray(leg.bodies.inertia[1]) * 1.5})
    assert save(model, tmp_path / "leg.urdf") == ()
    text = (tmp_path / "leg.urdf").read_text()
    assert [line.split()[1] for line in diff(LEG, text) if line[0] == "+"] == ["<inertia"]
    assert 'rpy="0.3 0 0.2"' in text
    assert differences(model, load(tmp_path / "leg.urdf")) == []


def test_a_floating_base_is_not_written(tmp_path):
    """The free joint that `floating_base` adds belongs to the load, not to the file."""
    model = changed(loads(LEG, path="leg.urdf", floating_base=True), {"bodies/hip.mass": 3.5})
    assert save(model, tmp_path / "leg.urdf") == ()
    assert diff(LEG.replace('"3.0"', '"3.5"'), (tmp_path / "leg.urdf").read_text()) == []
    assert differences(model, load(tmp_path / "leg.urdf", floating_base=True)) == []


NAMES = [str(path) for path in paths.paths(loads(LEG, path="leg.urdf"))]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.floats(0.05, 0.9), min_size=1, max_size=8))
def test_any_change_reads_back(tmp_path_factory, changes):
    """Whatever numbers change, the saved file with its sidecar gives the model back."""
    model = original = loads(LEG, path="leg.urdf")
    for path, factor in changes.items():
        value = np.asarray(paths.read(original, path)) * (1 + factor) + 0.01 * factor
        if path.endswith(("orientation", "axis")):
            value = value / np.linalg.norm(value)
        model = changed(model, {path: value})
    file = tmp_path_factory.mktemp("any") / "leg.urdf"
    save(model, file)
    assert differences(model, load(file)) == []
