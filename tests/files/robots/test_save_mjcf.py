"""Changed numbers go back into the user's MJCF; nothing else in it moves."""

import re

import equinox as eqx
import jax
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files.robots.conftest import ARM, accelerations, changed, diff, differences
from truesim.files.robots import load, loads, save
from truesim.files.robots.sidecar import sidecar_path
from truesim.physics.model import paths


def saved(model, folder, name="arm.xml"):
    """Text and model of the file after saving; nothing may need the sidecar."""
    path = folder / name
    assert save(model, path) == ()
    assert not sidecar_path(path).exists()
    return path.read_bytes().decode(), load(path)


def test_an_unchanged_model_gives_the_same_bytes(arm, tmp_path):
    """Saving without a change writes the file as it was."""
    assert saved(arm, tmp_path)[0] == ARM


def test_only_changed_numbers_differ(arm, tmp_path):
    """A mass, an inertia, a damping and an armature: four numbers differ, each where the user wrote it."""
    model = changed(
        arm,
        {
            "bodies/upper.mass": 2.5,
            "bodies/hand.inertia": [3.2e-3, 2.5e-3, 1e-3, 1e-4, 0, -2e-4],
            "joints/shoulder.damping": 0.9,
            "joints/wrist.armature": 0.03,
        },
    )
    text, back = saved(model, tmp_path)
    expected = ARM.replace('mass="2.0"', 'mass="2.5"').replace("3e-3 2.5e-3", "0.0032 2.5e-3")
    expected = expected.replace('damping = "0.7"', 'damping = "0.9"')
    expected = expected.replace('frictionloss=".02"/>', 'frictionloss=".02" armature="0.03"/>')
    assert diff(expected, text) == []
    assert differences(model, back) == []


def test_mujoco_itself_sees_the_change(arm, tmp_path):
    """Accelerations in MuJoCo equal those of the original with the same fields overwritten, to 1e-12."""
    model = changed(
        arm,
        {
            "bodies/upper.mass": 2.5,
            "bodies/upper.inertia": [0.03, 0.025, 0.006, 0, 0, 0],
            "joints/shoulder.damping": 0.9,
            "joints/wrist.armature": 0.03,
        },
    )
    saved(model, tmp_path)
    reference = mujoco.MjModel.from_xml_string(ARM)
    reference.body("upper").mass = 2.5
    reference.body("upper").inertia = [0.03, 0.025, 0.006]
    reference.joint("shoulder").damping = 0.9
    reference.joint("wrist").armature = 0.03
    mujoco.mj_setConst(reference, mujoco.MjData(reference))
    ours = accelerations(mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml")))
    theirs = accelerations(reference)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.max(np.abs(theirs)))


ONE_LINE = {
    "default class": ("joints/joint1.stiffness", 4.0, '<joint axis="0 1 0"/>', '<joint axis="0 1 0" stiffness="4"/>'),
    "degrees": ("joints/shoulder.range", [-np.pi / 2, np.pi / 4], "range='-90 90'", "range='-90 45'"),
    "unnamed geom": (
        "geoms/geom3.friction",
        [0.5, 0.005, 0.0001],
        'pos=".01 .02 -.3"/>',
        'pos=".01 .02 -.3" friction="0.5 0.005 0.0001"/>',
    ),
    "body position": ("bodies/body2.position", [0, 0.1, -0.4], '<body pos="0 0 -.4"', '<body pos="0 0.1 -.4"'),
    "site": ("sites/tip.position", [0, 0, -0.2], 'pos="0 0 -.1"', 'pos="0 0 -0.2"'),
    "gravity": ("gravity", [0, 0, -1.62], 'gravity="0 0 -9.81"', 'gravity="0 0 -1.62"'),
    "gear": ("actuators/lift.gear", [6, 0, 0, 0, 0, 0], 'gear="5"', 'gear="6"'),
    "control range": ("actuators/servo.control_range", [-1, 2], 'ctrlrange="-1 1"', 'ctrlrange="-1 2"'),
    "general bias": ("actuators/law.bias", [0, -1, -0.5], 'biasprm="0 -1"', 'biasprm="0 -1 -0.5"'),
    "general gain": ("actuators/law.gain", 3.5, 'gainprm="3"', 'gainprm="3.5"'),
    "motor gain": (
        "actuators/lift.gain",
        1.25,
        '<motor name="lift" joint="shoulder" gear="5"/>',
        '<general name="lift" joint="shoulder" gear="5" gainprm="1.25" biastype="affine" biasprm="0 0 0"/>',
    ),
    "orientation": (
        "bodies/body2.orientation",
        [1, 0, 0, 0],
        '<body pos="0 0 -.4" euler="0 0 30" childclass="stiff">',
        '<body pos="0 0 -.4" childclass="stiff" quat="1 0 0 0">',
    ),
    "rotated principal axes": (
        "bodies/upper.inertia",
        [0.02, 0.02, 0.005, 0.001, 0, 0],
        'mass="2.0" diaginertia="0.02 0.02 0.005"/>',
        'mass="2.0" fullinertia="0.02 0.02 0.005 0.001 0 0"/>',
    ),
}


@pytest.mark.parametrize(("path", "value", "old", "new"), ONE_LINE.values(), ids=ONE_LINE)
def test_each_kind_of_number_has_its_place(arm, tmp_path, path, value, old, new):
    """One changed value is one changed place in the text, and reads back."""
    model = changed(arm, {path: value})
    text, back = saved(model, tmp_path)
    assert diff(ARM.replace(old, new), text) == []
    assert differences(model, back) == []


def test_a_geom_may_change_without_the_mass(arm, tmp_path):
    """A body whose inertia comes from a geom keeps its mass when only the geom's size changes."""
    model = changed(arm, {"geoms/geom3.size": [0.06, 0, 0]})
    text, back = saved(model, tmp_path)
    assert 'size="0.06"' in text
    assert text.count("<inertial") == ARM.count("<inertial") + 1
    assert differences(model, back) == []


def test_position_servo_keeps_its_words(arm, tmp_path):
    """A stiffer servo is still a `<position>`; only kp changes."""
    model = changed(arm, {"actuators/servo.gain": 25.0, "actuators/servo.bias": [0, -25, -0.4]})
    assert diff(ARM.replace('kp="20"', 'kp="25"'), saved(model, tmp_path)[0]) == []


def test_inertia_from_geoms_becomes_one_element(arm, tmp_path):
    """A mass that came from geoms is given by one added `inertial`, in the file's indentation."""
    model = changed(arm, {"bodies/body2.mass": 3.0})
    text, back = saved(model, tmp_path)
    added = diff(ARM, text)
    assert len(added) == 1
    assert added[0].startswith("+         <inertial pos=")
    assert ' mass="3" ' in added[0]
    assert differences(model, back) == []


@pytest.mark.parametrize("ignored", ["", '<inertial pos="9 9 9" mass="99" diaginertia="9 9 9"/>'])
def test_inertiafromgeom_true_still_takes_effect(tmp_path, ignored):
    """Where the compiler overrides inertials it is told not to, and every other body keeps its mass."""
    text = f"""<mujoco><compiler inertiafromgeom="true"/><worldbody>
      <body name="a">{ignored}<joint/><geom size=".1"/><body name="b"><joint/><geom size=".2"/></body></body>
    </worldbody></mujoco>"""
    model = changed(loads(text, path="two.xml"), {"bodies/b.mass": 5.0})
    text, back = saved(model, tmp_path)
    assert 'inertiafromgeom="auto"' in text
    assert differences(model, back) == []


def test_settotalmass_follows(tmp_path):
    """With `settotalmass`, one mass changes: the total is set anew and no other body moves."""
    text = """<mujoco><compiler settotalmass="10"/><worldbody>
      <body name="a"><joint/><geom size=".1"/><body name="b"><joint/><geom size=".2"/></body></body>
    </worldbody></mujoco>"""
    model = loads(text, path="two.xml")
    heavier = changed(model, {"bodies/b.mass": model.bodies.mass[1] + 1})
    text, back = saved(heavier, tmp_path)
    assert text.count("<inertial") == 1
    assert float(re.search('settotalmass="(.*?)"', text)[1]) == pytest.approx(11, rel=1e-15)
    assert differences(heavier, back) == []


def test_windows_line_ends_and_encoding_stay(tmp_path):
    """CRLF, single quotes and Latin-1 characters survive an edit byte for byte."""
    text = ARM.replace("\n", "\r\n").replace("'1.0'", "'1.0' encoding='ISO-8859-1'").replace("own arm", "Löwenarm")
    (tmp_path / "in.xml").write_bytes(text.encode("latin-1"))
    model = changed(load(tmp_path / "in.xml"), {"bodies/body2.mass": 3.0, "joints/shoulder.damping": 0.8})
    assert save(model, tmp_path / "in.xml") == ()
    written = (tmp_path / "in.xml").read_bytes().decode("latin-1")
    assert "Löwenarm" in written
    assert written.count("\r\n") == written.count("\n") == text.count("\n") + 1
    assert len(diff(text, written)) == 3


PART = '<mujoco><body name="b"><joint name="j"/><geom size=".1"/></body></mujoco>'
INCLUDING = """<mujoco><worldbody><include file="part.xml"/><body name="c"><joint/><geom size=".1"/></body></worldbody>
</mujoco>"""


@pytest.fixture
def including(tmp_path):
    """A robot with two joints, the first in an included file, both changed."""
    (tmp_path / "part.xml").write_text(PART)
    (tmp_path / "main.xml").write_text(INCLUDING)
    return changed(load(tmp_path / "main.xml"), {"joints/j.damping": 2.0, "joints/joint1.damping": 3.0})


def test_what_an_include_holds_is_changed_there(including, tmp_path):
    """In the robot's own file, numbers are edited where they stand, and no sidecar is needed."""
    assert save(including, tmp_path / "main.xml") == ()
    assert (tmp_path / "main.xml").read_text() == INCLUDING.replace("<joint/>", '<joint damping="3"/>')
    assert (tmp_path / "part.xml").read_text() == PART.replace('"j"/>', '"j" damping="2"/>')
    assert differences(including, load(tmp_path / "main.xml")) == []


def test_another_file_gets_an_included_file_of_its_own(including, tmp_path):
    """A file beside the robot's own does not change what the robot includes."""
    assert save(including, tmp_path / "fitted.xml") == ()
    assert (tmp_path / "part.xml").read_text() == PART
    assert (tmp_path / "fitted.part.xml").read_text() == PART.replace('"j"/>', '"j" damping="2"/>')
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "fitted.xml")).dof_damping.tolist() == [2.0, 3.0]


def test_a_frame_is_not_mistaken_for_the_body(tmp_path):
    """A pose inside a `<frame>` is kept in the sidecar; other numbers of the same element are edited."""
    text = """<mujoco><worldbody><frame pos="1 0 0"><body name="b"><joint name="j"/><geom size=".1"/></body></frame>
    </worldbody></mujoco>"""
    model = changed(loads(text, path="f.xml"), {"bodies/b.position": [2, 0, 0], "joints/j.damping": 2.0})
    said = save(model, tmp_path / "f.xml")
    assert [finding.subject for finding in said] == ["bodies/b.position"]
    assert (tmp_path / "f.xml").read_text() == text.replace('name="j"', 'name="j" damping="2"')
    assert differences(model, load(tmp_path / "f.xml")) == []


def test_what_a_scaled_frame_multiplies_is_left_alone(tmp_path):
    """Numbers that MuJoCo scales after reading stay as the user wrote them; the sidecar keeps the wanted ones."""
    text = """<mujoco><worldbody><frame scale="2"><body name="b"><joint name="j" damping=".1"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body></frame></worldbody></mujoco>"""
    model = changed(loads(text, path="f.xml"), {"bodies/b.mass": 5.0, "joints/j.damping": 2.0})
    save(model, tmp_path / "f.xml")
    assert (tmp_path / "f.xml").read_text() == text
    assert differences(model, load(tmp_path / "f.xml")) == []


def test_replicas_are_not_edited_in_place_of_each_other(tmp_path):
    """One of several copies of the same text cannot change there; a named body outside the copies can."""
    text = """<mujoco><worldbody>
      <replicate count="3" offset="1 0 0"><body name="r"><joint name="k"/><geom size=".1"/></body></replicate>
      <body name="own"><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>"""
    model = changed(loads(text, path="r.xml"), {"joints/k1.damping": 5.0, "joints/j.damping": 2.0})
    said = save(model, tmp_path / "r.xml")
    assert [finding.subject for finding in said] == ["joints/k1.damping"]
    assert (tmp_path / "r.xml").read_text() == text.replace('<joint name="j"/>', '<joint name="j" damping="2"/>')
    assert differences(model, load(tmp_path / "r.xml")) == []


def test_an_inertia_that_mujoco_refuses_goes_to_the_sidecar(arm, tmp_path):
    """An unphysical inertia would make the file unreadable; the rest of the changes is still written."""
    model = changed(arm, {"bodies/upper.inertia": [0.1, 0.1, 0.9, 0, 0, 0], "joints/wrist.damping": 0.2})
    said = save(model, tmp_path / "arm.xml")
    assert [finding.subject for finding in said] == ["bodies/upper.inertia"]
    assert differences(model, load(tmp_path / "arm.xml")) == []
    mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))


def test_float32_models_do_not_rewrite_the_file(arm, tmp_path):
    """A model computed in float32 changes only the numbers that differ beyond float32's rounding."""
    model = jax.tree.map(lambda x: x.astype(np.float32) if eqx.is_array(x) else x, arm)
    model = paths.write(model, "joints/shoulder.damping", np.float32(0.9))
    text, _ = saved(model, tmp_path)
    assert diff(ARM.replace('"0.7"', '"0.9"'), text) == []


NAMES = [str(path) for path in paths.paths(loads(ARM, path="arm.xml"))]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), st.floats(0.05, 0.9), min_size=1, max_size=8))
def test_any_change_reads_back(tmp_path_factory, changes):
    """Whatever numbers change, the saved file with its sidecar gives the model back."""
    model = original = loads(ARM, path="arm.xml")
    for path, factor in changes.items():
        value = np.asarray(paths.read(original, path)) * (1 + factor) + 0.01 * factor
        if path.endswith(("orientation", "axis")):
            value = value / np.linalg.norm(value)
        model = changed(model, {path: value})
    file = tmp_path_factory.mktemp("any") / "arm.xml"
    save(model, file)
    assert differences(model, load(file)) == []


@pytest.mark.parametrize(("delay", "held"), [(0.0113, 0.0113), (0.008, 0.008), (0.0011, 0.002), (0.0004, 0.0)])
def test_a_delay_is_written_as_mujocos_own(tmp_path, delay, held):
    """MuJoCo delays by one step at least: shorter delays are rounded there, and exact in the sidecar."""
    text = """<mujoco><option timestep=".002"/><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="m" joint="a"/></actuator></mujoco>"""
    save(changed(loads(text, path="r.xml"), {"actuators/m.delay": delay}), tmp_path / "r.xml")
    compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
    assert compiled.actuator_delay.tolist() == [held]
    assert load(tmp_path / "r.xml").actuators.delay.tolist() == [delay]
    assert sidecar_path(tmp_path / "r.xml").exists() == (held != delay)


def test_a_delay_that_the_file_holds_is_changed_there(tmp_path):
    """MJCF's own delay of an actuator is read, and written where it stands."""
    text = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="m" joint="a" delay="0.01" nsample="8" interp="linear"/></actuator></mujoco>"""
    (tmp_path / "r.xml").write_text(text)
    model = load(tmp_path / "r.xml")
    assert model.actuators.delay.tolist() == [0.01]
    save(changed(model, {"actuators/m.delay": 0.008}), tmp_path / "r.xml")
    assert (tmp_path / "r.xml").read_text() == text.replace("0.01", "0.008")
    assert load(tmp_path / "r.xml").actuators.delay.tolist() == [0.008]
