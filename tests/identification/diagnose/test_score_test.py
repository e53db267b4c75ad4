"""A wrong number that is not free is named, and nothing is called certain because of it."""

import json

import numpy as np
import pytest

from tests.identification.two_joint_arm import stream, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification import Fit, identify
from truesim.identification.diagnose.estimates import Flag
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code, Status
from truesim.identification.online import Watcher

FREE = ("joints/*.damping", "joints/*.frictionloss")


def _log(seconds: float = 6.0) -> Log:
    samples = stream(seconds)
    names = [name for name in samples[0] if name != "time"]
    columns = {name: np.array([s[name] for s in samples]) for name in names}
    return Log(np.array([s["time"] for s in samples]), columns, "run.csv")


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory):
    """A fit of friction and damping to a robot whose file has ten times the gains of its servos."""
    text = xml().replace('kp="100"', 'kp="1000"').replace('kp="60"', 'kp="600"')
    return identify(loads(text), [_log()], FREE, out=tmp_path_factory.mktemp("forgotten") / "fit")


def test_a_forgotten_gain_is_named_first(forgotten):
    """The gain explains what remains, at about its true value, and the status says that the model does not fit."""
    best = forgotten.diagnosis.alternatives[0]
    assert forgotten.status is Status.DOES_NOT_FIT
    assert best.pattern == "actuators/*.kp"
    assert best.explained > 0.8
    assert 40 < best.found[0] < best.found[1] < 150
    assert forgotten.diagnostics[0].code is Code.FIXED_PARAMETER
    assert "Freeing actuators/*.kp would remove" in explain(forgotten.diagnostics[0])


def test_intervals_reach_the_truth_where_the_model_does_not_fit(forgotten):
    """Intervals that a misfit made wrong are widened and flagged; the truth is inside most of them."""
    truth = {"joints/shoulder": (0.5, 0.2), "joints/elbow": (0.3, 0.1)}
    inside = 0
    for e in forgotten.estimates:
        joint, _, field = e.path.rpartition(".")
        inside += e.low <= truth[joint][field == "frictionloss"] <= e.high
    assert inside >= 3
    assert any(flag.kind is Flag.WIDENED for e in forgotten.estimates for flag in e.flags)


def test_a_posterior_carries_the_warning(forgotten):
    """So do a loaded fit and the page: nothing in the folder calls the values certain."""
    loaded = Fit.load(forgotten.folder)
    assert loaded.diagnosis.alternatives[0].pattern == "actuators/*.kp"
    assert "model does not fit" in loaded.posterior().warnings[0]
    assert json.loads((forgotten.folder / "fit.json").read_text())["alternatives"][0]["explained"] > 0.8
    page = forgotten.report().read_text()
    assert "are identifiable" not in page
    assert "Free actuators/*.kp" in page


def test_a_right_model_is_not_doubted():
    """With the right gains the same logs give a converged fit, and no test is made."""
    fit = identify(loads(xml()), [_log(4.0)], FREE)
    assert fit.status is Status.CONVERGED
    assert fit.diagnosis.alternatives == ()
    assert fit.warnings == ()


def test_a_watched_stream_says_that_the_model_does_not_fit():
    """The load is not free: the stream's own estimate is doubted, and its interval is wider."""
    text = xml().replace('kp="100"', 'kp="500"').replace('kp="60"', 'kp="300"')
    watcher = Watcher(loads(text), ["bodies/lower.mass"])
    for sample in stream(3.0):
        watcher.feed(sample)
    assert watcher.misfit[0].code is Code.FIXED_PARAMETER
    assert watcher.misfit[0].subjects[0] == "actuators/*.kp"
    assert watcher.recursion.state()["shift"].any()
