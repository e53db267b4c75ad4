"""`truesim design`: a file of commands that `truesim simulate` plays, and mistakes."""

import numpy as np

from tests.identification.two_joint_arm import xml
from truesim.files.logs import read_log

WHAT = ("--free", "bodies/lower.mass", "joints/*.damping", "--seconds", "1")
QUICK = ("--starts", "1", "--iterations", "2")


def test_a_design_can_be_played(truesim, tmp_path):
    """The commands move the robot as the file says, and intervals are stated before and after."""
    (tmp_path / "robot.xml").write_text(xml(), encoding="utf-8")
    done = truesim("design", "robot.xml", *WHAT, "--speed", "1.5", *QUICK, "--noise", "0.0005")
    assert done.code == 0, done.err
    assert "95 % before" in done.out
    plan = read_log(tmp_path / "excitation.csv")
    assert np.abs(plan.columns["qvel/elbow"]).max() <= 1.5
    play = truesim("simulate", "robot.xml", "--seconds", "1", "--controls", "excitation.csv", "--start-from-log")
    assert play.code == 0, play.err
    motion = read_log(tmp_path / "traj.csv")
    at = np.searchsorted(motion.time, plan.time - 1e-9)
    inside = at < len(motion.time)
    played = motion.columns["qpos/elbow"][at[inside]]
    np.testing.assert_allclose(played, plan.columns["qpos/elbow"][inside], atol=1e-6)
    again = truesim("design", "robot.xml", *WHAT, "--speed", "1.5")
    assert "exists already" in again.sentence


def test_mistakes_are_one_sentence(truesim, tmp_path):
    """No speed, an unknown joint, an unknown criterion, no fit."""
    (tmp_path / "robot.xml").write_text(xml(), encoding="utf-8")
    assert "no limit of the speed" in truesim("design", "robot.xml", *WHAT).sentence
    assert "did you mean 'elbow'" in truesim("design", "robot.xml", *WHAT, "--speed", "elbo=1").sentence
    wrong = truesim("design", "robot.xml", *WHAT, "--speed", "1", "--criterion", "volum")
    assert "did you mean 'volume'" in wrong.sentence
    assert "not the folder of a fit" in truesim("design", "robot.xml", *WHAT, "--speed", "1", "--fit", ".").sentence
