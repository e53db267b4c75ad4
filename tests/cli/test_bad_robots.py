"""Robot files that are wrong: one sentence each, exit code 2, no traceback."""

import pytest

BODY = '<body name="arm"><joint name="j"/>{}</body>'
INERTIAL = '<inertial pos="0 0 0" mass="{}" diaginertia="{}"/>'
MESH = '<mujoco><asset><mesh name="m" file="gone.stl"/></asset><worldbody>{}</worldbody></mujoco>'


def mjcf(inertial: str) -> str:
    return f"<mujoco><worldbody>{BODY.format(inertial)}</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<mujoco><worldbody></mujoco>", ["broken XML", "line 1"]),
        ("<html/>", ["neither MJCF nor URDF", "<html>"]),
        (mjcf(INERTIAL.format("nan", "1 1 1")), ["arm", "mass"]),
        (mjcf(INERTIAL.format("-1", "1 1 1")), ["arm", "mass"]),
        (mjcf(INERTIAL.format("1", "1 1 -1")), ["arm", "inertia"]),
        (MESH.format(BODY.format('<geom type="mesh" mesh="m"/>')), ["gone.stl"]),
        (mjcf('<geom size=".1"/>').replace("</mujoco>", '<actuator><motor joint="k"/></actuator></mujoco>'), ["k"]),
    ],
)
@pytest.mark.parametrize("verb", [["inspect"], ["simulate", "--seconds", 1]])
def test_one_sentence_and_exit_code_two(truesim, tmp_path, text, words, verb):
    """The sentence names what is wrong."""
    (tmp_path / "robot.xml").write_text(text)
    outcome = truesim(verb[0], "robot.xml", *verb[1:])
    assert outcome.code == 2, outcome
    assert "Traceback" not in outcome.out + outcome.err
    for word in words:
        assert word in outcome.sentence


@pytest.mark.parametrize("inside", ["", '<body><geom size=".1"/></body>'], ids=["empty", "no joint"])
def test_nothing_that_moves(truesim, tmp_path, inside):
    """A scene without joints can be inspected; a simulation says what is missing."""
    (tmp_path / "part.xml").write_text(f"<mujoco><worldbody>{inside}</worldbody></mujoco>")
    assert truesim("inspect", "part.xml").code == 0
    outcome = truesim("simulate", "part.xml", "--seconds", 1)
    assert outcome.code == 2
    assert "part.xml has no joints" in outcome.sentence


def test_a_missing_file(truesim):
    """A file that is not there is named."""
    outcome = truesim("inspect", "nowhere.urdf")
    assert outcome.code == 2
    assert "nowhere.urdf" in outcome.sentence


def test_a_mesh_for_drawing_only_may_be_missing(truesim, tmp_path):
    """A missing visual is listed and does not stop a load."""
    visual = BODY.format(INERTIAL.format("1", "1 1 1") + '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/>')
    (tmp_path / "robot.xml").write_text(MESH.format(visual))
    outcome = truesim("inspect", "robot.xml")
    assert outcome.code == 0, outcome.err
    assert "gone.stl" in outcome.out
