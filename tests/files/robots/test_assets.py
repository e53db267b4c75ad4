"""Files that a robot file refers to are copied with it."""

import shutil

import mujoco
import numpy as np

from tests.files.robots.conftest import changed
from truesim.files.robots import load
from truesim.files.robots.assets import save_with_assets

CUBE = (
    "\n".join(f"v {x} {y} {z}" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    + "\nf 1 2 4\nf 1 3 7\nf 5 6 8\nf 1 2 6\n"
)
ROBOT = """<mujoco><compiler meshdir="meshes"/><include file="parts/more.xml"/>
  <asset><mesh name="cube" file="cube.obj" scale=".1 .1 .1"/></asset>
  <worldbody><body name="box"><joint name="slide" type="slide"/><geom type="mesh" mesh="cube"/></body></worldbody>
</mujoco>"""
MORE = '<mujoco><worldbody><body name="other"><joint name="turn"/><geom size=".1"/></body></worldbody></mujoco>'
URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><mesh filename="{}"/></geometry></collision></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


def _robot(tmp_path, text, files):
    """A robot in `work/home` with these files, and an empty folder `away`."""
    for name, content in {"robot.xml": text, **files}.items():
        file = tmp_path / "work" / "home" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    (tmp_path / "away").mkdir()
    return tmp_path / "work" / "home" / "robot.xml"


def _tree(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_saved_robot_moves_with_its_files(tmp_path):
    """Meshes in the compiler's folder and included files; the copy opens in MuJoCo after the originals are gone."""
    model = load(_robot(tmp_path, ROBOT, {"meshes/cube.obj": CUBE, "parts/more.xml": MORE}))
    assert save_with_assets(model, tmp_path / "away" / "robot.xml") == ()
    assert _tree(tmp_path / "away") == {"robot.xml", "meshes/cube.obj", "parts/more.xml"}
    assert (tmp_path / "away" / "robot.xml").read_text() == ROBOT
    shutil.rmtree(tmp_path / "work")
    again = load(tmp_path / "away" / "robot.xml")
    assert again.bodies.names == model.bodies.names
    np.testing.assert_allclose(again.bodies.mass, model.bodies.mass)


def test_a_number_of_an_included_file_is_changed_there(tmp_path):
    """The copy of the included file has it, the original has not, and MuJoCo reads it."""
    robot = _robot(tmp_path, ROBOT, {"meshes/cube.obj": CUBE, "parts/more.xml": MORE})
    model = changed(load(robot), {"joints/turn.damping": 0.7})
    assert save_with_assets(model, tmp_path / "away" / "robot.xml") == ()
    expected = MORE.replace('name="turn"', 'name="turn" damping="0.7"')
    assert (tmp_path / "away" / "parts" / "more.xml").read_text() == expected
    assert (robot.parent / "parts" / "more.xml").read_text() == MORE
    assert 0.7 in mujoco.MjModel.from_xml_path(str(tmp_path / "away" / "robot.xml")).dof_damping


def test_references_out_of_the_folder_lead_to_copies(tmp_path):
    """`..` in a directory, in a file and in an include; nothing is written outside of the copy's folder."""
    text = ROBOT.replace('"meshes"', '"../assets"').replace("parts/more.xml", "../more.xml")
    text = text.replace("</asset>", '<mesh name="second" file="../deep/second.obj"/></asset>')
    files = {"../assets/cube.obj": CUBE, "../more.xml": MORE, "../deep/second.obj": CUBE}
    model = changed(load(_robot(tmp_path, text, files)), {"joints/turn.damping": 0.7})
    assert save_with_assets(model, tmp_path / "away" / "robot.xml") == ()
    shutil.rmtree(tmp_path / "work")
    assert _tree(tmp_path / "away") == {
        *("robot.xml", "parent/assets/cube.obj", "parent/more.xml", "parent/deep/second.obj"),
    }
    compiled = mujoco.MjModel.from_xml_path(str(tmp_path / "away" / "robot.xml"))
    assert compiled.nmesh == 2
    assert 0.7 in compiled.dof_damping


def test_meshes_of_a_urdf_are_copied_from_packages(tmp_path):
    """`package://` and `..` become paths beside the copy."""
    robot = _robot(tmp_path, "", {"../arm_description/meshes/cube.obj": CUBE}).with_name("robot.urdf")
    for address in ("package://arm_description/meshes/cube.obj", "../arm_description/meshes/cube.obj"):
        robot.write_text(URDF.format(address))
        model = load(robot)
        place = tmp_path / "away" / address[:2].strip("./p") / "robot.urdf"
        place.parent.mkdir(exist_ok=True)
        save_with_assets(model, place)
        assert load(place).geoms.names == model.geoms.names
        assert len(_tree(place.parent)) >= 2
