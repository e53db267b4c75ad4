"""`truesim plan`: a file of commands that `truesim simulate` plays, and mistakes."""

import numpy as np

from tests.control.robots import CART_POLE, PUSHER
from truesim.files.logs import read_log

TASK = """
steps = 40
[start.q]
hinge = 2.6
[costs.effort]
quantity = "command"
weight = 0.01
[costs.up]
quantity = "posture"
joints = ["hinge"]
target = { hinge = 3.14159 }
weight = 100
when = "final"
"""


def test_a_plan_can_be_played(truesim, tmp_path):
    """The commands lead the simulator along the planned motion; both are in one file."""
    (tmp_path / "robot.xml").write_text(CART_POLE)
    (tmp_path / "task.toml").write_text(TASK)
    done = truesim("plan", "robot.xml", "task.toml", "--threads", "2")
    assert done.code == 0, done.err
    assert "The plan is a local minimum." in done.out
    planned = read_log(tmp_path / "plan.csv")
    assert abs(planned.columns["qpos/hinge"][-1] - np.pi) < 0.05
    play = truesim("simulate", "robot.xml", "--seconds", "0.7", "--controls", "plan.csv", "--start-from-log")
    assert play.code == 0, play.err
    played = read_log(tmp_path / "traj.csv")
    same = played.time < planned.time[-1] - 0.01
    hinge = np.interp(played.time[same], planned.time, planned.columns["qpos/hinge"])
    np.testing.assert_allclose(played.columns["qpos/hinge"][same], hinge, atol=1e-6)


def test_contact_is_tightened(truesim, tmp_path):
    """A pusher moves a puck that it does not touch at first."""
    (tmp_path / "robot.xml").write_text(PUSHER)
    task = 'steps = 20\n[start.v]\npush = 1.0\n[costs.effort]\nquantity = "command"\nweight = 0.001\n'
    goal = (
        '[costs.puck]\nquantity = "posture"\njoints = ["puck"]\ntarget = { puck = 0.2 }\nweight = 100\nwhen = "final"\n'
    )
    (tmp_path / "task.toml").write_text(task + goal)
    done = truesim("plan", "robot.xml", "task.toml", "--contact", "rigid", "--tighten", "0.1", "0.01", "--seed", "1")
    assert done.code == 0, done.err
    assert read_log(tmp_path / "plan.csv").columns["qpos/puck"][-1] > 0.15
    wrong = truesim("plan", "robot.xml", "task.toml", "--force", "--contact", "none", "--tighten", "0.1")
    assert "Smoothing is that of rigid contact" in wrong.sentence


def test_mistakes_are_one_sentence(truesim, tmp_path):
    """A file that is there already, contact that is not, an unknown quantity, no starts."""
    (tmp_path / "robot.xml").write_text(CART_POLE)
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "plan.csv").write_text("")
    assert "exists already" in truesim("plan", "robot.xml", "task.toml").sentence
    assert "must be positive" in truesim("plan", "robot.xml", "task.toml", "--force", "--starts", "0").sentence
    (tmp_path / "touch.toml").write_text(TASK.replace('"command"', '"contact_distance"'))
    assert "need rigid contact" in truesim("plan", "robot.xml", "touch.toml", "--force").sentence
