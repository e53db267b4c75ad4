"""Fixed masses that the logs contradict are named, although the residual stays close to the noise."""

import re

import numpy as np
import pytest

from tests.identification.two_joint_arm import stream, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification import identify
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.status import Code

FREE = ("joints/*.damping", "joints/*.frictionloss", "joints/*.armature")


def _found(factor: float):
    """Diagnostics of fixed masses, for masses in the file that are wrong by a factor."""
    samples = stream(4.0)
    columns = {name: np.array([s[name] for s in samples]) for name in samples[0] if name != "time"}
    log = Log(np.array([s["time"] for s in samples]), columns, "run.csv")
    text = re.sub(r'mass="([^"]+)"', lambda m: f'mass="{float(m[1]) * factor}"', xml())
    return [d for d in identify(loads(text), [log], FREE).diagnostics if d.code is Code.FIXED_MASSES]


def test_right_masses_are_not_doubted():
    """The statistic is a chi-square: its limit is passed by chance in one of a million fits."""
    assert not _found(1.0)


@pytest.mark.parametrize("factor", [1.2])
def test_wrong_masses_are_named(factor):
    """Masses that are a fifth too large; the sentence says how far the estimates follow them."""
    (found,) = _found(factor)
    assert found.subjects[0] == "bodies/*.mass"
    assert found.ratio > 5
    assert f"1 % of it moves {found.subjects[1]} by" in explain(found)
