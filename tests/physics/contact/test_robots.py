"""Robots that stand: against MuJoCo, and for a long time."""

import mujoco
import numpy as np
import pytest

from benchmarks.robots import standing_quadruped_xml
from tests.physics.contact.scenes import FLOOR, Runner, rigid, scene

CROUCH = np.tile([0, 0.6, -1.2], 4)
STEPS = 2000


def test_a_quadruped_lands_on_its_feet_as_in_mujoco():
    """It rests within 2 mm and 0.01 rad of MuJoCo, whose contact is soft, and its feet carry its weight."""
    m = mujoco.MjModel.from_xml_string(standing_quadruped_xml())
    data = mujoco.MjData(m)
    data.qpos[2], data.qpos[7:], data.ctrl[:] = 0.4 * np.cos(0.6) + 0.06, CROUCH, CROUCH
    start = data.qpos.copy()
    for _ in range(STEPS):
        mujoco.mj_step(m, data)
    q, v, report = Runner(rigid(scene(standing_quadruped_xml())), STEPS)(q=start, command=CROUCH)
    assert np.all(report.converged)
    assert abs(q[-1, 2] - data.qpos[2]) < 2e-3
    np.testing.assert_allclose(q[-1, 3:7], data.qpos[3:7], atol=5e-3)
    np.testing.assert_allclose(q[-1, 7:], data.qpos[7:], atol=1e-2)
    np.testing.assert_allclose(v[-1], 0, atol=1e-6)
    weight = 9.81 * np.sum(m.body_mass)
    assert np.sum(report.force[-1, :, 0]) == pytest.approx(weight, rel=1e-6)


@pytest.mark.slow
def test_five_stacked_boxes_stand():
    """For 10 s no box moves by 0.1 mm."""
    size = '<geom type="box" size=".1 .1 .1" mass="1"/>'
    boxes = "".join(f'<body name="b{i}" pos="0 0 {0.1 + 0.2 * i}"><freejoint/>{size}</body>' for i in range(5))
    apart = "".join(f'<exclude body1="b{i}" body2="b{j}"/>' for i in range(5) for j in range(i + 2, 5))
    text = f"<mujoco><worldbody>{FLOOR}{boxes}</worldbody><contact>{apart}</contact></mujoco>"
    q, _, report = Runner(rigid(scene(text)), 5000)()
    places = q.reshape(5000, 5, 7)[:, :, :3]
    assert np.max(np.abs(places - [[0, 0, 0.1 + 0.2 * i] for i in range(5)])) < 1e-4
    assert np.all(report.converged)


def test_a_box_stands_on_the_end_of_a_cylinder():
    """A wide box on a standing cylinder: half a second without moving, its weight carried."""
    text = f"""<mujoco><worldbody>{FLOOR}
      <body pos="0 0 .2"><freejoint/><geom type="cylinder" size=".1 .2" mass="2"/></body>
      <body pos="0 0 .45"><freejoint/><geom type="box" size=".2 .15 .05" mass="1"/></body></worldbody></mujoco>"""
    q, _, report = Runner(rigid(scene(text)), 250)()
    places = q.reshape(250, 2, 7)
    assert np.max(np.abs(places[:, :, :3] - [[0, 0, 0.2], [0, 0, 0.45]])) < 1e-4
    assert np.max(np.abs(places[:, :, 4:])) < 1e-4
    assert np.all(report.converged)
    assert np.sum(report.force[-1, 4 + 4 :, 0]) == pytest.approx(9.81, rel=1e-6)
