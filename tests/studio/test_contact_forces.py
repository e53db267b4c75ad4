"""Contact forces along a motion: a resting ball presses with its weight, a lifted one with nothing."""

import numpy as np
import pytest

import truesim as ts
from truesim.scenes.motions import ShownMotion
from truesim.studio.contact_forces import ContactForces, contact_forces

BALL = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 0.1"/>
<body name="ball"><joint name="lift" type="slide" axis="0 0 1"/><geom type="sphere" size="0.1" mass="2"/></body>
</worldbody></mujoco>"""


def test_a_resting_ball_presses_with_its_weight(tmp_path):
    """The force of the first frames is the weight, upwards at the ground; in the air there is none."""
    (tmp_path / "ball.xml").write_text(BALL)
    model = ts.load(tmp_path / "ball.xml")
    simulator = ts.Simulator.of(model, contact=ts.RigidContact.of(model))
    height = np.array([0.1, 0.1, 0.1, 0.4, 0.4, 0.4])[:, None]
    found = contact_forces(simulator, ShownMotion("fitted", np.arange(6) * 0.1, height), np.zeros((6, 0)))
    total = found.force.sum(axis=1)
    assert np.abs(total[0]) == pytest.approx([0.0, 0.0, 2 * 9.81], abs=0.05)
    assert found.position[0, 0, 2] == pytest.approx(0.0, abs=2e-3)
    assert np.abs(total[4]).max() < 1e-3


def test_the_longest_line_has_a_fixed_length():
    """Lines are drawn relative to the largest force and the size of the scene."""
    force = np.zeros((2, 1, 3))
    force[0, 0, 2], force[1, 0, 2] = 10.0, 5.0
    found = ContactForces(np.zeros((2, 1, 3)), force)
    first, second = (found.lines(k, size=2.0) for k in range(2))
    assert first[0, 1, 2] == pytest.approx(0.5)
    assert second[0, 1, 2] == pytest.approx(0.25)
