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


def test_torques_that_resemble_positions(log):
    """Gravity makes torques agree with positions, but not as well as commands do: all servos say so."""
    names = {"ctrl__a1": "qpos/shoulder", "ctrl__a2": "qpos/elbow"}
    random = np.random.default_rng(0)
    torques = {
        u: 0.5 * log.columns[q] + 0.7 * np.std(log.columns[q]) * random.normal(size=len(log.time))
        for u, q in names.items()
    }
    said = _warnings(_with(log, **torques))
    assert len(said) == 2
    assert all("is it a torque" in sentence for sentence in said)


@pytest.mark.parametrize("kind", ["noise", "half"])
def test_an_encoder_that_is_nearly_dead(log, kind):
    """Some counts of noise, or no motion from the middle of the log on."""
    q = log.columns["qpos/elbow"]
    noise = 1e-3 * np.random.default_rng(0).integers(-1, 2, len(q))
    (said,) = _warnings(_with(log, qpos__elbow=noise if kind == "noise" else np.where(log.time < 2.0, q, q[0])))
    assert said.startswith("qpos/elbow")
    assert "a broken encoder, or a blocked joint" in said


def test_a_gripper_that_holds_something_is_not_doubted(log):
    """A joint that stands still for a while under a constant command."""
    hold = log.time < 1.5
    columns = {
        name: np.where(hold, log.columns[name.replace("__", "/")][0], log.columns[name.replace("__", "/")])
        for name in ("qpos__elbow", "ctrl__a2")
    }
    assert _warnings(_with(log, **columns)) == []


def test_measured_positions_as_commands(log):
    """The log would say that the servo follows without any error."""
    (said,) = _warnings(_with(log, ctrl__a2=log.columns["qpos/elbow"]))
    assert "the measured position" in said


def test_a_wrong_zero_of_an_encoder(log):
    """A note with the offset to write; a wrong zero is not told from a constant load."""
    notes = [str(f) for f in prepare(_with(log, qpos__elbow=log.columns["qpos/elbow"] + 1.5), ARM).findings]
    assert any("qpos/elbow: is +1.49 from ctrl/a2" in note and "offset = -1.49" in note for note in notes)
