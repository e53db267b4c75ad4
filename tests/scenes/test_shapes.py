"""Shapes are closed, have the size of the file, and stay recognizable with fewer triangles."""

import numpy as np
import pytest

import truesim as ts
from truesim.files.robots.load import loads
from truesim.scenes import solids
from truesim.scenes.shapes import drawn_geoms, drawn_shapes
from truesim.scenes.simplify import simplify


def volume(vertices, faces) -> float:
    """Volume of a closed mesh by the divergence theorem; negative if its faces look inwards."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (solids.box(np.array([0.1, 0.2, 0.3])), 8 * 0.1 * 0.2 * 0.3),
        (solids.ellipsoid(np.array([0.1, 0.2, 0.3])), 4 / 3 * np.pi * 0.1 * 0.2 * 0.3),
        (solids.cylinder(0.1, 0.3), np.pi * 0.1**2 * 0.6),
        (solids.capsule(0.1, 0.3), np.pi * 0.1**2 * 0.6 + 4 / 3 * np.pi * 0.1**3),
    ],
)
def test_solids_have_their_volume(made, expected):
    """Every primitive encloses its volume with faces that look outwards."""
    assert volume(*made) == pytest.approx(expected, rel=0.04)


def test_simplified_meshes_keep_their_extent():
    """A fine sphere loses most triangles and little of its size."""
    angles = np.linspace(0, np.pi, 200)
    vertices, faces = solids.revolve(np.sin(angles), -np.cos(angles))
    few, fewer = simplify(vertices, faces, 1000)
    assert len(fewer) <= 1000 < len(faces)
    assert np.ptp(few, axis=0) == pytest.approx([2, 2, 2], rel=0.1)


ROBOT = """<mujoco><asset><material name="red" rgba="0.9 0.1 0.1 1"/></asset><worldbody>
<geom type="plane" size="0 0 1"/>
<body name="a"><joint axis="0 1 0"/><inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/>
  <geom name="collides" type="box" size="0.1 0.1 0.1"/>
  <geom name="shows" type="sphere" size="0.1" pos="0 0 0.5" contype="0" conaffinity="0" material="red"/></body>
<body name="b" pos="1 0 0"><joint axis="0 1 0"/><geom name="both" type="box" size="0.1 0.1 0.1"/></body>
</worldbody></mujoco>"""


def test_bodies_show_what_was_made_for_drawing():
    """Collision shapes are drawn where there is nothing else; materials give the color; planes are floors."""
    model = loads(ROBOT)
    assert [model.geoms.names[g] for g in drawn_geoms(model)] == ["geom0", "shows", "both"]
    shapes = drawn_shapes(model)
    assert [shape.is_floor for shape in shapes] == [True, False, False]
    assert shapes[1].color == pytest.approx((0.9, 0.1, 0.1, 1))
    assert shapes[1].vertices.mean(axis=0) == pytest.approx([0, 0, 0.5], abs=1e-3)


def test_a_robot_without_shapes_is_drawn_as_sticks(tmp_path):
    """There is always something to see."""
    (tmp_path / "robot.xml").write_text(
        '<mujoco><worldbody><body name="a" pos="0 0 1"><joint/><inertial pos="0 0 0.5" mass="1" diaginertia="1 1 1"/>'
        "</body></worldbody></mujoco>"
    )
    shapes = drawn_shapes(ts.load(tmp_path / "robot.xml"))
    assert {shape.body for shape in shapes} == {-1, 0}
