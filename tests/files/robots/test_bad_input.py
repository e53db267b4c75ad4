"""Bad input is one sentence that names the element; what is only missing for drawing is set aside and listed."""

import dataclasses

import pytest

from tests.files.robots.conftest import ARM, LEG, changed
from truesim.core.errors import FileError, TruesimError
from truesim.files.robots import load, loads, save


def refused(text, message, path="robot.xml", **options):
    """Loading must fail with one sentence that matches."""
    with pytest.raises(FileError, match=message) as error:
        loads(text, path=path, **options)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_a_missing_file():
    """The file is named."""
    with pytest.raises(FileError, match=r"^There is no file 'nowhere\.xml'\.$"):
        load("nowhere.xml")


def test_a_folder_instead_of_a_file(tmp_path):
    """A folder is refused with the system's reason."""
    with pytest.raises(FileError, match="cannot be read: Is a directory"):
        load(tmp_path)


MJCF = {
    "broken XML": (ARM.replace("</body>", "</bdy>", 1), r"^robot.xml, line 23: broken XML \(mismatched tag\)"),
    "empty": ("", r"^robot.xml, line 1: broken XML \(no element found\)"),
    "other root": ("<html/>", "neither MJCF nor URDF: its root is <html>"),
    "NaN mass": (ARM.replace('"2.0"', '"nan"'), "line 13: inertial of body 'upper' has mass='nan', .* not a finite"),
    "infinite mass": (ARM.replace('"2.0"', '"inf"'), "has mass='inf', which is not a finite number"),
    "negative mass": (ARM.replace('"2.0"', '"-2"'), "inertial of body 'upper' has mass='-2', .* not be negative"),
    "zero mass": (
        ARM.replace('"2.0"', '"0"'),
        "element 'upper': mass and .* larger than 1e-15; give the body",
    ),
    "not a number": (ARM.replace('"2.0"', '"two"'), "line 13, element 'inertial': bad format in attribute 'mass'"),
    "triangle": (ARM.replace("0.02 0.02 0.005", "0.02 0.02 0.5"), r"element 'upper': inertia must satisfy A \+ B >= C"),
    "unknown attribute": (ARM.replace("gear=", "geer="), "line 28, element 'motor': .*unrecognized attribute: 'geer'"),
    "missing include": (ARM.replace("<worldbody>", '<include file="no.xml"/><worldbody>'), "opening file '.*no.xml'"),
    "unknown joint": (ARM.replace('joint="wrist" kp', 'joint="wirst" kp'), "element 'servo': .*wirst"),
}


@pytest.mark.parametrize(("text", "message"), MJCF.values(), ids=MJCF)
def test_bad_mjcf(text, message, capfd):
    """Each mistake names the line and the element, and MuJoCo prints nothing."""
    refused(text, message)
    assert capfd.readouterr() == ("", "")


def test_what_mujoco_says_is_noted(capfd, tmp_path, monkeypatch):
    """MuJoCo's warning about a number that we do not use becomes a note; it neither prints nor logs to a file."""
    monkeypatch.chdir(tmp_path)
    model = loads(ARM.replace("<worldbody>", '<custom><numeric name="n" data="nan"/></custom><worldbody>'))
    notes = [str(finding) for finding in model.findings if finding.severity == "note"]
    assert notes == ["robot.xml: MuJoCo says: XML contains a 'NaN'. Please check it carefully."]
    assert (capfd.readouterr(), list(tmp_path.iterdir())) == (("", ""), [])


URDF = {
    "negative mass": (LEG.replace('"3.0"', '"-3"'), "<inertial> of link 'hip' has mass -3 kg, .* not be negative"),
    "NaN mass": (LEG.replace('"3.0"', '"nan"'), "<mass> of link 'hip' has value='nan', which is not finite"),
    "not a number": (LEG.replace('"3.0"', '"x"'), "line 7: <mass> of link 'hip' has value='x', .* not a number"),
    "xacro": (LEG.replace('"3.0"', '"${m}"'), "expand the file with xacro first"),
    "two numbers": (LEG.replace("0 0.1 -0.3", "0 0.1"), "<origin> of joint 'knee' has xyz='0 0.1' with 2 number"),
    "joint type": (LEG.replace("revolute", "hinge"), "joint 'knee' has type 'hinge'; valid are revolute, continuous"),
    "unknown link": (LEG.replace('child link="tip"', 'child link="tp"'), "names the child link 'tp', which does not"),
    "two parents": (
        LEG.replace('child link="tip"', 'child link="foot"'),
        "'foot', which joint 'ankle' moves already",
    ),
    "two roots": (LEG.replace("</robot>", '<link name="x"/></robot>'), "one root link, but 'hip', 'x' all have no"),
    "loop": (
        '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="1" type="fixed"><parent link="b"/><child link="c"/></joint>'
        '<joint name="2" type="fixed"><parent link="c"/><child link="b"/></joint></robot>',
        "joints above link 'b' form a loop",
    ),
    "no name": (LEG.replace('<link name="foot"/>', "<link/>"), "line 30: a link has no name"),
    "axis": (LEG.replace('axis xyz="0 1 0"', 'axis xyz="0 0 0"'), "joint 'knee' has an axis of length zero"),
    "floating inside": (LEG.replace('"continuous"', '"floating"'), "joint 'toe' floats on a link"),
}


@pytest.mark.parametrize(("text", "message"), URDF.values(), ids=URDF)
def test_bad_urdf(text, message):
    """Each mistake names the line and the element."""
    refused(text, message, path="leg.urdf")


def test_a_floating_base_needs_something_to_float():
    """MJCF and a URDF whose root is the ground refuse a floating base, and say what to do."""
    refused(ARM, "give the root body a <freejoint/> instead", floating_base=True)
    refused(LEG.replace('"hip"', '"world"'), "link 'world' is the ground and cannot float", floating_base=True)


MESH = """<mujoco><asset><mesh name="shell" file="gone.stl"/><texture name="wood" type="2d" file="gone.png"/>
  <material name="m" texture="wood"/><hfield name="land" file="gone.bin" size="1 1 1 1"/></asset>
  <worldbody><geom type="hfield" hfield="land"/><body name="box">{inertial}<joint/>
  <geom type="mesh" mesh="shell" material="m"/></body></worldbody></mujoco>"""


def test_a_missing_mesh_for_drawing_is_listed():
    """A mesh, a texture and a height field that only drawing and contact need are set aside."""
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    model = loads(MESH.format(inertial=inertial), path="/nowhere/box.xml")
    assert [str(finding) for finding in model.findings] == [
        "mesh 'shell': file '/nowhere/gone.stl' is not there: 1 geom(s) left out",
        "hfield 'land': file '/nowhere/gone.bin' is not there: 1 geom(s) left out",
        "texture 'wood': file '/nowhere/gone.png' is not there",
    ]
    assert model.bodies.mass.tolist() == [1.0]


def test_a_missing_mesh_that_gives_the_inertia_is_refused():
    """Without the mesh there is no inertia: mesh, file and body are named."""
    message = r"^The inertia of body 'box' comes from mesh 'shell', but its file '/nowhere/gone\.stl' is not there"
    refused(MESH.format(inertial=""), message, path="/nowhere/box.xml")


def test_bad_shapes_of_a_urdf_are_listed():
    """Shapes without size, without geometry, or of another kind are set aside with a warning."""
    shapes = """<visual><geometry><box size="1 2"/></geometry></visual><visual><geometry/></visual><visual/>
      <collision><geometry><cone/></geometry></collision>
      <collision><geometry><sphere radius="0"/></geometry></collision>
      <visual><geometry><mesh filename="package://no/such.stl"/></geometry></visual>
      <visual><geometry><mesh filename="hull.dae"/></geometry></visual>"""
    model = loads(LEG.replace('<link name="foot"/>', f'<link name="foot">{shapes}</link>'), path="leg.urdf")
    said = [str(finding) for finding in model.findings]
    for message in (
        "link 'foot': a visual is left out: it has size='1 2' with 2 number(s) instead of 3",
        "2 x link ('foot'): a visual without geometry is left out",
        "link 'foot': a collision is left out: it has the shape <cone>, which URDF does not know",
        "link 'foot': a collision is left out: it has a sphere whose size is not positive",
        "mesh 'package://no/such.stl': the file is not there: it is left out",
        "mesh 'hull.dae': format '.dae' cannot be read: it is left out",
    ):
        assert message in said
    assert len(model.geoms.names) == 1


def test_a_mesh_that_mujoco_cannot_read_is_listed(tmp_path):
    """A broken mesh file does not stop the load."""
    (tmp_path / "bad.stl").write_bytes(b"solid nothing")
    text = LEG.replace('<cylinder radius="0.03" length="0.3"/>', '<mesh filename="bad.stl"/>')
    model = loads(text, path=tmp_path / "leg.urdf")
    assert any(f.subject == "mesh 'bad.stl'" and "MuJoCo cannot read it" in f.message for f in model.findings)


def test_saving_refuses_what_it_cannot_do(arm, tmp_path):
    """An unknown suffix, a missing folder and a model without source are one sentence each."""
    with pytest.raises(FileError, match=r"Cannot tell the format of 'arm\.json': end it in \.xml"):
        save(arm, tmp_path / "arm.json")
    with pytest.raises(FileError, match="There is no folder"):
        save(arm, tmp_path / "no" / "arm.xml")
    with pytest.raises(TruesimError, match="did not come from a file or text"):
        save(dataclasses.replace(arm, source=None), tmp_path / "arm.xml")
    with pytest.raises(TruesimError, match=r"bodies/hand\.mass is nan; only finite numbers can be saved"):
        save(changed(arm, {"bodies/hand.mass": float("nan")}), tmp_path / "arm.xml")
    joints = dataclasses.replace(arm.joints, limited=(False,) * 3)
    with pytest.raises(TruesimError, match="The 'limited' of the joints differ from the file; only numbers"):
        save(dataclasses.replace(arm, joints=joints), tmp_path / "arm.xml")
