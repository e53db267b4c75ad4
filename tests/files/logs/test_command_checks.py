"""Mistakes that the correlation of commands and positions reveals, each named in one sentence."""

import dataclasses

import numpy as np
import pytest

from tests.identification.two_joint_arm import stream, xml
from truesim.core.errors import TruesimError
from truesim.files.logs import Log, prepare
from truesim.files.robots import loads
from truesim.identification import identify

ARM = loads(xml())


@pytest.fixture(scope="module")
def log():
    samples = stream(4.0)
    columns = {name: np.array([s[name] for s in samples]) for name in samples[0] if name != "time"}
    return Log(np.array([s["time"] for s in samples]), columns, "run.csv")


def _warnings(log, model=ARM):
    return [str(f) for f in prepare(log, model).findings if f.severity == "warning"]


def _with(log, **columns):
    return dataclasses.replace(log, columns={**log.columns, **{k.replace("__", "/"): v for k, v in columns.items()}})


def test_a_right_log_is_not_doubted(log):
    """Commands lead positions by some lag."""
    assert _warnings(log) == []


def test_swapped_columns(log):
    """Each command is said to drive the other joint."""
    said = _warnings(_with(log, ctrl__a1=log.columns["ctrl/a2"], ctrl__a2=log.columns["ctrl/a1"]))
    assert "drives qpos/elbow" in said[0]
    assert "swapped" in said[0]
    assert len(said) == 2


def test_a_flipped_sign(log):
    """Named with what to write."""
    (said,) = _warnings(_with(log, ctrl__a1=-log.columns["ctrl/a1"]))
    assert "sign = -1" in said


def test_torques_to_a_position_servo(log):
    """Noise that moves nothing is not a position."""
    torque = np.random.default_rng(0).normal(size=len(log.time))
    (said,) = _warnings(_with(log, ctrl__a1=torque))
    assert "is it a torque" in said


def test_positions_to_a_motor(log):
    """With the option that makes it a servo."""
    motors = xml().replace('kp="100" kv="8"', "").replace('kp="60" kv="5"', "").replace("<position", "<motor")
    said = _warnings(log, loads(motors))
    assert "looks like a position command" in said[0]
    assert "--servo" in said[0]


def test_a_dead_encoder_is_refused_before_the_fit(log):
    """In one sentence that names it, unless its channel is left out."""
    dead = _with(log, qpos__elbow=np.full(len(log.time), 0.3))
    with pytest.raises(TruesimError, match="qpos/elbow: dead encoder"):
        identify(ARM, [dead], ["joints/*.damping"])


def test_stamps_of_an_epoch_count_from_the_start(log):
    """Plots of the report keep their digits."""
    later = dataclasses.replace(log, time=log.time + 1.7e9)
    clean = prepare(later, ARM)
    assert clean.time[0] == 0
    np.testing.assert_allclose(np.diff(clean.time), np.diff(log.time), atol=1e-6)
