"""Sections of the page: digits, bars, thinned signals, advice and the command that repeats the fit."""

import base64
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.report import fits
from truesim.report import numbers
from truesim.report.sections.advice import advice, listed, split_path
from truesim.report.sections.basins import basin_table
from truesim.report.sections.headline import headline
from truesim.report.sections.parameters import parameter_table, split
from truesim.report.sections.provenance import command
from truesim.report.sections.signals import PACKED_STEPS, LogSignals, pack, read_signals, thin


@pytest.mark.parametrize(
    ("value", "std", "text"),
    [
        (0.512345, 0.0012, "0.5123"),
        (1.00001982, 1.04e-5, "1.000020"),
        (-12.3456, 0.5, "−12.35"),
        (123456.7, 300.0, "123460"),
        (2.345678e-5, 3e-7, "2.346×10⁻⁵"),
        (3.0, 5.0, "3.0"),
        (0.001, 5.0, "0.0010"),
        (0.0, 0.1, "0"),
        (0.25, 0.0, "0.25"),
        (None, 0.1, "–"),
        (1.5, None, "1.5"),
    ],
)
def test_digits_follow_the_standard_deviation(value, std, text):
    """A value is written to two digits of its standard deviation, with at least two and at most seven of its own."""
    assert numbers.estimate(value, std) == text


def test_a_number_has_no_idle_zeros():
    """Start values are written as they were typed; errors keep their digits."""
    assert [numbers.number(x, 4) for x in (0.4, 2.0, 0.3333333, 1200.0)] == ["0.4", "2", "0.3333", "1200"]
    assert numbers.rounded(0.029, 3) == "0.0290"


def test_bars_share_a_scale():
    """The start is in the middle; a value that doubled is as far to the right as one that halved is to the left."""
    entries = [fits.parameter("a.mass", 1.0, 2.0, 0.01), fits.parameter("b.mass", 1.0, 0.5, 0.01)]
    doubled, halved = (group.rows[0] for group in parameter_table(entries).groups)
    assert doubled.bar.value - 0.5 == pytest.approx(0.5 - halved.bar.value)
    assert (doubled.change, halved.change) == ("×2.0", "÷2.0")


def test_a_wide_interval_is_open():
    """An interval that reaches beyond the scale ends in arrows; a value without a ratio has a scale of its own."""
    wide, sign = parameter_table([fits.parameter("a", 1.0, 1.1, 30.0), fits.parameter("b", 0.0, 0.3, 0.1)]).groups
    assert wide.rows[0].bar.open == (True, True)
    assert sign.rows[0].bar.own_scale
    assert sign.rows[0].bar.value > 0.5


def test_elements_that_are_not_identifiable():
    """A flag that names elements is about those alone."""
    com = next(p for p in fits.PARAMETERS if p["path"].endswith("com"))
    assert [element.identifiable for element in split(com)] == [True, False, True]


def signals_of(values: np.ndarray) -> LogSignals:
    """A log of one window with one channel, simulated without error."""
    column = np.append(values, np.nan)[:, None]
    time = np.append(np.arange(len(values)), len(values) - 1) * 1e-3
    return LogSignals("train", "a.csv", time, column, column, column)


def test_thinning_keeps_peaks():
    """A single sample that stands out survives, and so do the ends of the window."""
    values = np.sin(np.arange(100_000) * 1e-3)
    values[54_321] = 7.0
    log = signals_of(values)
    kept = thin(log, np.concatenate([log.measured, log.measured], axis=1), 4000)
    assert len(kept) <= 4004
    assert {0, 54_321, 99_999, 100_000} <= set(kept.tolist())


def test_packing_is_exact_to_a_step(tmp_path):
    """What the page unpacks is the signal to one part in 65534 of its range, with holes where it has holes."""
    signals = read_signals(fits.write_small(tmp_path))
    trace = pack(signals)[0]["panels"][1]["measured"]
    steps = np.frombuffer(base64.b64decode(trace["steps"]), "<i2")
    measured = signals.logs[0].measured[:, 1]
    hole = steps == -PACKED_STEPS - 1
    np.testing.assert_array_equal(hole, np.isnan(measured))
    unpacked = trace["middle"] + trace["step"] * steps[~hole]
    np.testing.assert_allclose(unpacked, measured[~hole], rtol=0, atol=0.51 * trace["step"])
    assert trace["step"] < 1.01 * np.ptp(measured[~hole]) / (2 * PACKED_STEPS)


def test_windows_and_their_errors(tmp_path):
    """Windows are found in the signals; a diverged simulation has no error."""
    signals = read_signals(fits.write_small(tmp_path))
    assert signals.window == pytest.approx(fits.WINDOW)
    log = pack(signals)[0]
    assert log["windows"][1] == pytest.approx([0.5, 0.995])
    fitted, start = np.array(log["panels"][0]["errors"], float).T
    np.testing.assert_allclose(fitted, 0.001, rtol=0.4)
    assert np.isnan(start[-1])
    assert np.all(start[:-1] > 0.01)


def test_held_out_logs_come_last(tmp_path):
    """Logs of the fit come first, whatever the order in the file."""
    fits.write(tmp_path, fits.document(), fits.arrays(["held_out/c.csv", "train/a.csv"]))
    assert [log.name for log in read_signals(tmp_path).logs] == ["a.csv", "c.csv"]


@pytest.mark.parametrize(
    ("path", "flags", "word"),
    [
        ("joints/elbow.frictionloss", ["not identifiable"], "slowly back and forth"),
        ("joints/elbow.damping@run.1.csv", ["not identifiable"], "several speeds"),
        ("bodies/hand.mass", ["not identifiable"], "known payload"),
        ("bodies/hand.inertia[4]", ["not identifiable"], "every axis"),
        ("bodies/hand.inertia", ["partly not identifiable"], "every axis"),
        ("actuators/elbow.delay", ["not identifiable"], "quick changes"),
        ("sensors/qpos/elbow.bias", ["not identifiable"], "Hold"),
        ("geoms/foot.friction", ["not identifiable"], "leave it out of --free"),
        ("joints/elbow.damping", ["at lower bound"], "went to zero"),
        ("joints/elbow.damping", ["at upper bound"], "--bounds"),
    ],
)
def test_advice_fits_the_parameter(path, flags, word):
    """Advice depends on the parameter and its flag."""
    fit = fits.document(parameters=[fits.parameter(path, 1.0, 1.0, 1.0, flags)])
    assert any(word in sentence for sentence in advice(fit))


def test_advice_from_errors():
    """A channel above its noise, worse held-out logs and missing ones are each worth a sentence; a clean fit is not."""
    fit = fits.document(parameters=fits.PARAMETERS[:1])
    fit["reasons"] = [
        "qpos/shoulder: residuals of 0.02 are 20 times the sensor's noise, so something in the robot is not in it.",
        "qpos/elbow: residuals of 0.02 are 2000 times the sensor's noise, so something in the robot is not in it.",
        "qpos/elbow: the error on held-out logs, 0.05, is 5.0 times that on the logs of the fit.",
    ]
    first, worse = advice(fit)
    assert "qpos/elbow (2000 times the noise) and qpos/shoulder (20 times the noise)" in first
    assert "predicted less well than those of the fit in qpos/elbow" in worse
    assert "--holdout" in advice(fits.document(holdout=[]))[-1]
    fit["reasons"] = []
    assert advice(fit) == []


def test_places_and_lists():
    """Paths come apart into owner and field; lists are cut."""
    assert split_path("joints/elbow.damping") == ("joints/elbow", "damping")
    assert split_path("-bodies/a.b.com[2]@run.csv") == ("bodies/a.b", "com")
    assert split_path("gravity") == ("", "gravity")
    assert listed(list("aab")) == "a and b"
    assert listed(list("abcdef")) == "a, b, c and 3 more"


def test_the_headline_counts_and_compares():
    """The number of identifiable values, the largest change, and the improvement of the simulation."""
    text = " ".join(headline(fits.document(), 0.5).found)
    assert "4 of 7 values are identifiable" in text
    assert "joints/elbow.armature changed most: from 10⁻⁵" not in text
    assert "from 1×10⁻⁵ to 2.35×10⁻⁵" in text
    assert "10 times closer to the logs of the fit and 6.0 times closer to held-out logs" in text


def test_the_command_can_be_typed():
    """A shell reads back the words of the request: names with spaces, patterns, tables and flags."""
    source = fits.document()["provenance"]
    source["request"]["options"] = {
        "window": 0.5,
        "bounds": ["bodies/*.mass=0.1:2"],
        "per_log": {"a.csv": {"actuators/*.kp": 2.0}},
        "floating_base": True,
        "tie": ["a", "b"],
        "law": ["servo=duty_servo"],
        "barrier": 1e-6,
    }
    words = shlex.split(command(source, Path("out/my fit")).replace("\\\n", " "))
    assert words == [
        "truesim", "identify", "robots/my arm.xml", "logs/a.csv", "logs/b.csv", "--free", "bodies/*.mass",
        "--holdout", "logs/c.csv", "--window", "0.5", "--bounds", "bodies/*.mass=0.1:2",
        "--per-log", "per_log.json", "--floating-base",
        "--tie", "a", "b", "--actuator-model", "servo=duty_servo", "--smoothing", "1e-06", "--out", "my fit", "--force",
    ]  # fmt: skip


def test_basins_of_a_search():
    """The lowest minima with cost, count and values; no table for a fit that was not searched."""
    assert basin_table(fits.document()) is None
    basins = [{"cost": 1.25 * k, "count": 10 - k, "values": {"bodies/a.mass": [0.5 + k]}} for k in range(10)]
    table = basin_table({"search": {"solves": 55, "found": 10, "basins": basins}})
    assert table.words.startswith("55 solves from different starts found 10 minima")
    assert [row.count for row in table.rows] == [10, 9, 8, 7, 6, 5, 4, 3]
    assert table.rows[1].cost == "1.25"
    assert table.rows[1].values == ("1.5",)
