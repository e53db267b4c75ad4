"""Per-log values: known numbers, columns that give parameters, and free parameters."""

import json

import numpy as np
import pytest

from tests.identification.recorded import ARM, ARM_FREE, ARM_WRONG, arm_log
from tests.robots import robot
from truesim.core.errors import FileError, NameUnknownError, TruesimError
from truesim.identification.pipeline import identify
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.per_log import read_per_log, resolve

MODEL = robot(ARM)
LOGS = ("run1.csv", "run2.csv")


def test_a_log_wins_over_all_and_the_robot_fills_in():
    """`*` is for all logs; a log may be named with or without its ending; what is not said stays as in the file."""
    table = {"*": {"bodies/lower.mass": 2.0}, "run2": {"bodies/lower.mass": 3, "joints/elbow.damping": 0.7}}
    known = resolve(MODEL, LOGS, table)
    assert [str(t) for t in known.targets] == ["bodies/lower.mass", "joints/elbow.damping"]
    np.testing.assert_array_equal(known.values, [[2.0, 0.05], [3.0, 0.7]])


def test_patterns_columns_and_free_values():
    """Paths may be patterns; a column stands for a number in all logs; a free value is one unknown for each log."""
    table = {"*": {"joints/*.damping": "free", "actuators/a.gain": "column:volts"}}
    known = resolve(MODEL, LOGS, table)
    assert (known.columns, [str(t) for t in known.inputs]) == (("volts",), ["actuators/a.gain"])
    names = ["joints/shoulder.damping@run1.csv", "joints/elbow.damping@run1.csv"]
    assert [p.name for p in known.free] == [*names, *(n.replace("run1", "run2") for n in names)]


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ({"*": {"bodies/lower.mas": 1.0}}, "'mass'"),
        ({"*": {"bodies/lower.mass": "heavy"}}, 'a number, "free" or "column:<name>"'),
        ({"*": {"bodies/lower.mass": True}}, 'a number, "free"'),
        ({"*": {"bodies/lower.com": 1.0}}, r"several elements; give one of them, such as bodies/lower.com\[0\]"),
        ({"run1": {"bodies/lower.mass": "free"}}, "free for run1.csv but not for every log"),
        ({"run1": {"actuators/a.gain": "column:u"}, "run2": {"actuators/a.gain": "column:w"}}, "u in one log and w"),
    ],
)
def test_wrong_tables_teach(table, hint):
    """One sentence that names the log, the path or the value."""
    with pytest.raises(TruesimError, match=hint):
        resolve(MODEL, LOGS, table)


def test_a_wrong_log_teaches():
    """With the names that there are, those of held-out logs included."""
    table = {"c": {"bodies/lower.mass": 1.0}}
    with pytest.raises(NameUnknownError, match=r"no log named 'c'.* Valid: a, b"):
        identify(MODEL, [arm_log(0.2, name="a")], ARM_FREE, holdout=[arm_log(0.2, name="b")], per_log=table)


def test_files(tmp_path):
    """JSON, or a sentence."""
    path = tmp_path / "runs.json"
    with pytest.raises(FileError, match="no per-log file"):
        read_per_log(path)
    path.write_text("{")
    with pytest.raises(FileError, match="not JSON"):
        read_per_log(path)
    path.write_text(json.dumps({"run1": 3}))
    with pytest.raises(FileError, match="must hold"):
        read_per_log(path)
    path.write_text(json.dumps({"run1": {"bodies/lower.mass": 3}}))
    assert read_per_log(path) == {"run1": {"bodies/lower.mass": 3}}


def test_what_is_known_is_not_free():
    """A known value wins over a pattern that would free it, and a free one of its own over a shared one."""
    table = {
        "*": {"bodies/lower.mass": 0.6},
        "a": {"joints/elbow.damping": "free"},
        "b": {"joints/elbow.damping": "free"},
    }
    logs = [arm_log(0.2, name="a"), arm_log(0.2, seed=1, name="b")]
    problem = build(robot(ARM_WRONG), logs, ARM_FREE, ProblemOptions(per_log=table))
    shared, own = ["bodies/upper.mass", "joints/shoulder.damping"], ["joints/elbow.damping@a", "joints/elbow.damping@b"]
    assert problem.parameters.names == shared + own
    np.testing.assert_array_equal(problem.columns, [[0, 1, 2], [0, 1, 3]])


def test_logs_have_names_of_their_own():
    """Two logs of one name cannot be told apart."""
    with pytest.raises(TruesimError, match="Two logs are named log"):
        build(MODEL, [arm_log(0.2), arm_log(0.2)], ARM_FREE)
    with pytest.raises(TruesimError, match="no logs"):
        build(MODEL, [], ARM_FREE)
    with pytest.raises(NameUnknownError, match="'volts'"):
        build(MODEL, [arm_log(0.2)], ARM_FREE, ProblemOptions(per_log={"*": {"actuators/a.gain": "column:volts"}}))
