"""Mistakes on the command line: for every verb one sentence, exit code 2, nothing written."""

import math

import pytest

from truesim.cli.verbs import VERB_TABLE

JOINTS = ("yaw", "pitch", "elbow", "wrist")
HEADER = ",".join(["time", *(f"qpos/{joint}" for joint in JOINTS), *(f"ctrl/{joint}" for joint in JOINTS)])
LAG = 2
"""Rows by which the joints follow their commands."""
ROWS = [(k / 100, *[math.sin((k - LAG) / 9)] * len(JOINTS), *[math.sin(k / 9)] * len(JOINTS)) for k in range(100)]
LOG = "\n".join([HEADER, *(",".join(f"{x:.6f}" for x in row) for row in ROWS)]) + "\n"
WRONG = {
    "no arguments": [(verb,) for verb in VERB_TABLE if verb not in ("cache", "demo", "studio")],
    "a missing robot": [
        ("inspect", "gone.xml"),
        ("simulate", "gone.xml", "--seconds", "1"),
        ("identify", "gone.xml", "run.csv", "--free", "a", "--out", "o"),
        ("evaluate", "gone.xml", "run.csv"),
        ("suggest", "gone.xml", "run.csv"),
        ("design", "gone.xml", "--free", "a", "--seconds", "1"),
        ("watch", "gone.xml", "run.csv", "--free", "a", "--patience", "0.1"),
    ],
    "a folder as a robot": [
        ("inspect", "empty"),
        ("simulate", "empty", "--seconds", "1"),
        ("identify", "empty", "run.csv", "--free", "a", "--out", "o"),
        ("evaluate", "empty", "run.csv"),
        ("suggest", "empty", "run.csv"),
        ("design", "empty", "--free", "a", "--seconds", "1"),
        ("watch", "empty", "run.csv", "--free", "a", "--patience", "0.1"),
    ],
    "a log as a robot": [
        ("inspect", "run.csv"),
        ("simulate", "run.csv", "--seconds", "1"),
        ("identify", "run.csv", "run.csv", "--free", "a", "--out", "o"),
        ("evaluate", "run.csv", "run.csv"),
        ("suggest", "run.csv", "run.csv"),
        ("design", "run.csv", "--free", "a", "--seconds", "1"),
        ("watch", "run.csv", "run.csv", "--free", "a", "--patience", "0.1"),
    ],
    "a robot or a folder as a log": [
        ("inspect", "arm.xml", "arm.xml"),
        ("inspect", "arm.xml", "empty"),
        ("simulate", "arm.xml", "--seconds", "1", "--controls", "arm.xml"),
        ("simulate", "arm.xml", "--seconds", "1", "--controls", "empty"),
        ("identify", "arm.xml", "arm.xml", "--free", "bodies/*.mass", "--out", "o"),
        ("identify", "arm.xml", "empty", "--free", "bodies/*.mass", "--out", "o"),
        ("evaluate", "arm.xml", "arm.xml"),
        ("evaluate", "arm.xml", "empty"),
        ("suggest", "arm.xml", "arm.xml"),
        ("watch", "arm.xml", "empty", "--free", "bodies/*.mass", "--patience", "0.1"),
    ],
    "a missing log": [
        ("inspect", "arm.xml", "gone.csv"),
        ("simulate", "arm.xml", "--seconds", "1", "--controls", "gone.csv"),
        ("identify", "arm.xml", "gone.csv", "--free", "bodies/*.mass", "--out", "o"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--validate", "gone.csv", "--out", "o"),
        ("evaluate", "arm.xml", "gone.csv"),
        ("suggest", "arm.xml", "gone.csv"),
        ("watch", "arm.xml", "gone.csv", "--free", "bodies/*.mass", "--patience", "0.1"),
    ],
    "a folder that is no fit": [
        ("posterior", "empty", "--out", "o"),
        ("calibrate", "empty", "--out", "o"),
        ("report", "empty"),
        ("evaluate", "empty", "run.csv"),
        ("suggest", "arm.xml", "run.csv", "--fit", "empty"),
        ("design", "arm.xml", "--free", "bodies/*.mass", "--seconds", "1", "--fit", "empty"),
    ],
    "a fit that does not exist": [
        ("posterior", "gone", "--out", "o"),
        ("calibrate", "gone", "--out", "o"),
        ("report", "gone"),
        ("suggest", "arm.xml", "run.csv", "--fit", "gone"),
        ("design", "arm.xml", "--free", "bodies/*.mass", "--seconds", "1", "--fit", "gone"),
    ],
    "a file as a fit": [
        ("posterior", "arm.xml", "--out", "o"),
        ("calibrate", "arm.xml", "--out", "o"),
        ("report", "arm.xml"),
        ("suggest", "arm.xml", "run.csv", "--fit", "arm.xml"),
    ],
    "files for options that do not exist": [
        ("inspect", "arm.xml", "run.csv", "--mapping", "gone.toml"),
        ("watch", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--mapping", "gone.toml", "--patience", "0.1"),
        ("identify", "arm.xml", "run.csv", "--blueprint", "gone.toml", "--out", "o"),
        ("evaluate", "arm.xml", "run.csv", "--per-log", "gone.json"),
        ("suggest", "arm.xml", "run.csv", "--per-log", "gone.json"),
    ],
    "wrong names": [
        ("simulate", "arm.xml", "--seconds", "1", "--contact", "rigit"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/hnd.mass", "--out", "o"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--actuator-model", "elbow=dc", "--out", "o"),
        ("evaluate", "arm.xml", "run.csv", "--channel", "qpos/elbo"),
        ("suggest", "arm.xml", "run.csv", "--channel", "qpos/elbo"),
        ("design", "arm.xml", "--free", "bodies/hnd.mass", "--seconds", "1", "--speed", "1"),
        ("watch", "arm.xml", "run.csv", "--free", "bodies/hnd.mass", "--patience", "0.1"),
    ],
    "wrong numbers": [
        ("simulate", "arm.xml", "--seconds", "soon"),
        ("simulate", "arm.xml", "--seconds", "-1"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--threads", "0", "--out", "o"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--workers", "ray", "--out", "o"),
        ("evaluate", "arm.xml", "run.csv", "--window", "0"),
        ("design", "arm.xml", "--free", "bodies/*.mass", "--seconds", "0", "--speed", "1"),
        ("design", "arm.xml", "--free", "bodies/*.mass", "--seconds", "1", "--speed", "fast"),
        ("posterior", "empty", "--out", "o", "--level", "2"),
        ("calibrate", "empty", "--out", "o", "--level", "2"),
        ("calibrate", "empty", "--out", "o", "--repeats", "1"),
        ("watch", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--first", "-1", "--patience", "0.1"),
    ],
    "output that exists": [
        ("simulate", "arm.xml", "--seconds", "1", "--out", "empty"),
        ("simulate", "arm.xml", "--seconds", "1", "--out", "run.csv"),
        ("design", "arm.xml", "--free", "bodies/*.mass", "--seconds", "1", "--out", "run.csv"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--out", "run.csv"),
        ("identify", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--out", "full"),
        ("suggest", "arm.xml", "run.csv", "--out", "full"),
        ("suggest", "arm.xml", "run.csv", "--out", "run.csv"),
        ("posterior", "empty", "--out", "run.csv"),
        ("posterior", "empty", "--out", "full"),
        ("calibrate", "empty", "--out", "full"),
        ("watch", "arm.xml", "run.csv", "--free", "bodies/*.mass", "--out", "run.csv", "--patience", "0.1"),
    ],
}


@pytest.mark.parametrize(
    "arguments", [pytest.param(a, id=f"{kind}: {' '.join(a)}") for kind in WRONG for a in WRONG[kind]]
)
def test_one_sentence(truesim, arm, tmp_path, arguments):
    """Exit code 2, one line that ends a sentence, no traceback, and the folder as before."""
    (tmp_path / "run.csv").write_text(LOG)
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    before = sorted(tmp_path.rglob("*"))
    outcome = truesim(*arguments)
    assert outcome.code == 2, outcome
    assert outcome.sentence.startswith("error: ")
    assert outcome.sentence[-1] in ".?"
    assert "Traceback" not in outcome.err
    assert "Unexpected" not in outcome.err
    assert sorted(tmp_path.rglob("*")) == before
