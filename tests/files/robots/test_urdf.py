"""What a URDF becomes: joints of every type, motors, packages, and a list of what is not simulated."""

import numpy as np
import pytest

from tests.files.robots.conftest import LEG
from truesim.files.robots import load, loads, save
from truesim.files.robots.urdf_geometry import find_file


def said(model):
    return {str(finding): finding.severity for finding in model.findings}


def test_joints_and_motors(leg):
    """Limits, effort, damping and friction are the file's; each moving joint has a motor bounded by its effort."""
    assert leg.joints.names == ("knee", "toe")
    assert leg.joints.range[0].tolist() == [-1.5, 0.5]
    assert (leg.joints.limited, leg.joints.force_limited) == ((True, False), (True, False))
    assert leg.joints.force_range[0].tolist() == [-40, 40]
    assert (leg.joints.damping[0], leg.joints.frictionloss[0]) == (0.3, 0.1)
    assert leg.actuators.names == ("knee", "toe")
    assert leg.actuators.control_range[0].tolist() == [-40, 40]
    assert leg.actuators.control_limited == (True, False)
    assert leg.actuators.gain.tolist() == [1, 1]
    assert said(leg)["2 x joint ('knee', 'toe'): URDF has no actuators: a motor of the same name drives it"] == "note"
    assert said(leg)["joint 'knee': velocity limit"] == "not simulated"


def test_massless_links_keep_their_zeros(leg):
    """A fixed link without inertial is a body of mass zero, not merged into its parent."""
    assert leg.bodies.names == ("hip", "shin", "foot", "tip")
    assert leg.bodies.mass.tolist() == [3.0, 1.2, 0.0, 0.1]
    assert not np.any(leg.bodies.inertia[2])


def test_a_floating_base_is_one_free_joint():
    """The root link gets a free joint whose name is not taken."""
    model = loads(LEG, floating_base=True)
    assert (model.joints.names[0], model.joints.kinds[0].name, model.nv) == ("floating_base", "free", 8)
    taken = loads(LEG.replace('"toe"', '"floating_base"'), floating_base=True)
    assert taken.joints.names == ("floating_base_", "knee", "floating_base")


def test_a_floating_joint_under_the_world_is_free():
    """A `floating` joint on the ground needs no option."""
    text = LEG.replace('"hip"', '"world"').replace("revolute", "floating")
    model = loads(text)
    assert [kind.name for kind in model.joints.kinds] == ["free", "hinge"]
    assert "world" not in model.bodies.names


def test_a_planar_joint_moves_in_its_plane():
    """Planar becomes two slides and a hinge, normal to each other, and is noted."""
    model = loads(LEG.replace("continuous", "planar").replace('<origin xyz="0.05 0 0"/>', '<axis xyz="0 0 2"/>'))
    assert model.joints.names == ("knee", "toe_x", "toe_y", "toe_angle")
    np.testing.assert_allclose(model.joints.axis[1:] @ model.joints.axis[1:].T, np.eye(3), atol=1e-15)
    assert model.joints.axis[3].tolist() == [0, 0, 1]
    assert any("planar: simulated as two slides and a hinge" in message for message in said(model))


def test_mimic_joints_are_listed_and_have_no_motor():
    """A mimic joint moves on its own; the finding says so."""
    model = loads(LEG.replace('<origin xyz="0.05 0 0"/>', '<mimic joint="knee" multiplier="2"/>'))
    assert model.actuators.names == ("knee",)
    assert said(model)["joint 'toe': mimic of joint 'knee': it moves on its own and has no motor"] == "not simulated"


def test_names_given_twice_are_mended():
    """The second joint of a name is renamed, the second link of a name ignored; both are warned of."""
    model = loads(LEG.replace('"toe"', '"knee"').replace("</robot>", '<link name="tip"/></robot>'))
    assert model.joints.names == ("knee", "knee_")
    assert said(model)["joint 'knee': is given twice: the second is called 'knee_'"] == "warning"
    assert said(model)["link 'tip': is given twice: the first counts"] == "warning"


def test_other_elements_are_listed_once_per_kind():
    """Transmissions, plugins and sensors are counted, not dropped in silence."""
    extra = '<gazebo/><gazebo reference="x"/><transmission name="t"/>'
    findings = said(loads(LEG.replace("</robot>", f"{extra}</robot>")))
    assert findings["2 x gazebo: <gazebo> is not simulated"] == "not simulated"
    assert findings["transmission 't': <transmission> is not simulated"] == "not simulated"


def test_unphysical_inertias_are_kept_and_warned_of():
    """An inertia that breaks the triangle inequality, or is negative, loads with the file's numbers."""
    for izz, why in (("0.5", "break the triangle inequality"), ("-0.5", "negative principal moment")):
        model = loads(LEG.replace('izz="0.025"', f'izz="{izz}"'))
        assert model.bodies.inertia[0].tolist() == [0.02, 0.03, float(izz), 0, 0, 0]
        warnings = [message for message, severity in said(model).items() if severity == "warning"]
        assert len(warnings) == 1
        assert "link 'hip': no rigid body has this inertia" in warnings[0]
        assert why in warnings[0]


def test_limits_that_cannot_hold_are_warned_of():
    """Equal limits would weld the joint in one simulator and free it in another: it moves freely, and that is said."""
    model = loads(LEG.replace('lower="-1.5"', 'lower="0.5"'))
    assert model.joints.limited == (False, False)
    assert any(message.startswith("joint 'knee': its lower limit") for message in said(model))


@pytest.mark.parametrize("how", ["folder above", "manifest above", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"])
def test_packages_are_found(tmp_path, monkeypatch, how):
    """`package://` finds its folder by name, by manifest, and in ROS's search paths."""
    home = tmp_path / {"manifest above": "src", "AMENT_PREFIX_PATH": "install/share/bot"}.get(how, "bot")
    robots = home / "urdf" if "above" in how else tmp_path / "elsewhere"
    for folder in (home / "meshes", robots):
        folder.mkdir(parents=True)
    mesh = home / "meshes" / "a b.stl"
    mesh.touch()
    if how == "manifest above":
        (home / "package.xml").write_text("<package><name>bot</name></package>")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path) if how == "ROS_PACKAGE_PATH" else "")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install") if how == "AMENT_PREFIX_PATH" else "")
    assert find_file("package://bot/meshes/a%20b.stl", robots / "bot.urdf") == mesh
    assert find_file("package://bot/meshes/none.stl", robots / "bot.urdf") is None
    assert find_file(f"file://{mesh}", robots / "bot.urdf") == mesh


def test_the_format_is_told_by_the_root_element(tmp_path):
    """A URDF in a file called `.xml` is a URDF."""
    (tmp_path / "leg.xml").write_text(LEG)
    assert load(tmp_path / "leg.xml").source.format == "urdf"


def test_a_urdf_called_xml_stays_a_urdf(tmp_path):
    """Saving over the user's own file keeps its format, whatever its suffix says."""
    (tmp_path / "leg.xml").write_text(LEG)
    save(load(tmp_path / "leg.xml"), tmp_path / "leg.xml")
    assert (tmp_path / "leg.xml").read_text() == LEG
