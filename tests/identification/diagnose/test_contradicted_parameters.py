"""Fixed parameters that the logs contradict are named, although the residual stays close to the noise."""

import re

import numpy as np

from tests.identification.two_joint_arm import stream, xml
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification import identify
from truesim.identification.diagnose.estimates import Flag
from truesim.identification.diagnose.messages import explain
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Code, ResidualSize, Status

FREE = ("joints/*.damping", "joints/*.frictionloss", "joints/*.armature")


def _fit(change, substeps: int = 1):
    """A fit to a recording of the arm, with a robot file that is changed."""
    samples = stream(4.0, substeps=substeps)
    columns = {name: np.array([s[name] for s in samples]) for name in samples[0] if name != "time"}
    log = Log(np.array([s["time"] for s in samples]), columns, "run.csv")
    return identify(loads(change(xml())), [log], FREE)


def _masses(factor: float):
    return lambda text: re.sub(r'mass="([^"]+)"', lambda m: f'mass="{float(m[1]) * factor}"', text)


def _contradicted(fit):
    return [d for d in fit.diagnostics if d.code is Code.CONTRADICTED]


def test_right_masses_are_not_doubted():
    """The statistic is a chi-square: its limit is passed by chance in one of a million fits."""
    fit = _fit(_masses(1.0))
    assert not _contradicted(fit)
    assert fit.status is Status.CONVERGED


def test_a_long_time_step_is_no_wrong_parameter():
    """Its error looks like wrong armatures, whose gradient vanishes with the step."""
    fit = _fit(_masses(1.0), substeps=16)
    assert not _contradicted(fit)


def test_wrong_masses_are_named():
    """Masses that are a fifth too large; the status says so too, and the sentence how far the estimates follow them."""
    fit = _fit(_masses(1.2))
    (found,) = _contradicted(fit)
    assert fit.status is Status.DOES_NOT_FIT
    assert abs(found.value) > 2
    assert {Flag.WIDENED, Flag.MISFIT} & {flag.kind for e in fit.estimates for flag in e.flags}
    assert "model does not fit" in fit.warnings[0]
    assert found.subjects[0] == "bodies/*.mass"
    assert found.ratio > 5
    assert f"With it free, {found.subjects[1]} would change by" in explain(found)


def test_the_bulk_of_residuals_decides():
    """A few impacts may leave larger residuals than a missing effect that acts in every sample."""
    impacts, backlash = ResidualSize(0.03, 9.0, 1.0), ResidualSize(0.001, 4.9, 4.5)
    assert [size.exceeds(DiagnoseOptions()) for size in (impacts, backlash)] == [False, True]
