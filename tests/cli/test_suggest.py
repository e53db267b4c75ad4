"""`truesim suggest`: a table, a sentence, blueprints and a picture."""

import json

import pytest

from tests.identification.suggestion.planted import POLE, recorded, spring
from truesim.cli.suggest import suggest
from truesim.core.errors import TruesimError
from truesim.files.logs import write_log
from truesim.physics.blueprint import read_blueprint


def test_suggest_writes_a_folder(tmp_path, capsys):
    """A spring that the file does not know becomes a blueprint."""
    robot, log, out = tmp_path / "pole.xml", tmp_path / "run.csv", tmp_path / "out"
    robot.write_text(POLE)
    motion = recorded(POLE, 5, flaw=spring(0), seconds=3.0)
    write_log(log, {"time": motion.time, **motion.columns})
    suggest(robot, [log], out=out)
    said = capsys.readouterr().out
    assert "joint.spring_torque of hinge" in said
    assert read_blueprint(out / "blueprint-1.toml").rules[0].output == "joint.spring_torque"
    assert json.loads((out / "suggest.json").read_text())["needed"]
    assert (out / "suggest.html").is_file()
    with pytest.raises(TruesimError, match="not empty"):
        suggest(robot, [log], out=out)
