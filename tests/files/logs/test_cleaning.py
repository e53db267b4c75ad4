"""Logs made ready for use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from truesim.core.errors import TruesimError
from truesim.files.logs import Log, motion, prepare, split_at_gaps, unwrap
from truesim.files.robots import loads

ROBOT = loads("""
<mujoco><compiler angle="radian"/><worldbody>
  <body><joint name="wheel" axis="0 1 0"/><geom size=".1"/>
    <body><joint name="elbow" axis="0 1 0" limited="true" range="-2 2"/><geom size=".1"/></body></body>
  <body pos="1 0 0"><joint name="rail" type="slide"/><geom size=".1"/></body>
  <body name="drone" pos="2 0 0"><freejoint name="drone"/><geom size=".1"/></body>
</worldbody><sensor><jointpos name="encoder" joint="wheel"/><framequat name="imu" objtype="xbody" objname="drone"/>
</sensor></mujoco>""")
FREE = [f"qpos/drone/{c}" for c in ("x", "y", "z", "qw", "qx", "qy", "qz")]
TIME = np.arange(200) * 0.005

angles = hnp.arrays(float, st.integers(2, 60), elements=st.floats(-3.1, 3.1)).map(np.cumsum)
dirty = hnp.arrays(float, 40, elements=st.one_of(st.floats(-4, 4), st.just(np.nan), st.just(np.inf)))
times = hnp.arrays(float, 40, elements=st.sampled_from([0.0, 0.01, 0.011, 0.3])).map(np.cumsum)


def wrapped(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2 * np.pi) - np.pi


def tumbling() -> dict[str, np.ndarray]:
    """A free body that falls and turns about its own z axis at 9 rad/s, its quaternion kept with qw >= 0."""
    half = 4.5 * TIME
    q = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
    q *= np.where(q[:, :1] < 0, -1.0, 1.0)
    columns = [0 * TIME, 2 * TIME, 1 - 4.905 * TIME**2, *q.T]
    return dict(zip(FREE, columns, strict=True))


@given(angles)
def test_unwrapping_undoes_wrapping(angle):
    """An angle that moves less than half a turn between samples comes back, up to whole turns at the start."""
    back = unwrap(wrapped(angle))
    np.testing.assert_allclose(back - back[0], angle - angle[0], atol=1e-9)


@given(times, dirty, dirty, hnp.arrays(float, (40, 4), elements=st.one_of(st.floats(-1, 1), st.just(np.nan))))
def test_preparing_twice_changes_nothing(time, wheel, elbow, q):
    """Preparing is idempotent; missing samples stay missing and everything else is finite."""
    columns = {"qpos/wheel": wheel, "qpos/elbow": elbow, **dict(zip(FREE[3:], q.T, strict=True))}
    columns |= dict.fromkeys(FREE[:3], wheel)
    once = prepare(Log(time, columns), ROBOT)
    twice = prepare(once, ROBOT)
    assert np.all(np.diff(once.time) > 0)
    np.testing.assert_array_equal(once.time, twice.time)
    assert list(once.columns) == list(twice.columns)
    for name, values in once.columns.items():
        np.testing.assert_allclose(twice.columns[name], values, atol=1e-12)
        assert not np.any(np.isinf(values))
    assert twice.findings == once.findings
    assert twice.derived == once.derived == frozenset(c for c in once.columns if c.startswith("qvel"))
    missing = np.isnan(once.column("qpos/wheel"))
    assert np.all(np.isnan(once.column("qvel/wheel")[missing]))


@given(st.sets(st.integers(0, 199)))
def test_missing_samples_stay_missing_and_spoil_nothing(holes):
    """Velocities of a straight motion are right wherever they are known, whatever is missing."""
    values = 2 * TIME
    values[list(holes)] = np.nan
    velocity = prepare(Log(TIME, {"qpos/rail": values}), ROBOT).column("qvel/rail")
    assert np.all(np.isnan(velocity[list(holes)]))
    np.testing.assert_allclose(velocity[np.isfinite(velocity)], 2.0, atol=1e-9)


def test_rows_with_one_stamp_become_one():
    """The last recorded value of each column is kept, and the log says so."""
    log = Log(np.array([0.0, 0.1, 0.1, 0.2]), {"ctrl/a": np.array([1.0, 2.0, np.nan, 4.0])})
    clean = prepare(log, ROBOT)
    np.testing.assert_array_equal(clean.time, [0, 0.1, 0.2])
    np.testing.assert_array_equal(clean.column("ctrl/a"), [1, 2, 4])
    assert "1 rows repeat" in str(clean.findings[0])


def test_hinges_are_unwrapped_and_limited_ones_left():
    """A wheel turns on; an elbow that would leave its limits is left as it was, with a warning."""
    log = Log(TIME, {"qpos/wheel": wrapped(20 * TIME), "qpos/elbow": wrapped(20 * TIME)})
    clean = prepare(log, ROBOT)
    np.testing.assert_allclose(clean.column("qpos/wheel"), 20 * TIME, atol=1e-9)
    np.testing.assert_array_equal(clean.column("qpos/elbow"), log.column("qpos/elbow"))
    severities = {finding.subject: finding.severity for finding in clean.findings}
    assert severities == {"qpos/wheel": "note", "qpos/elbow": "warning"}


def test_an_encoder_that_counts_turns_is_left():
    """A fast wheel moves more than half a turn between samples: no wrapping, nothing to undo."""
    log = Log(TIME, {"qpos/wheel": 900 * TIME})
    np.testing.assert_array_equal(prepare(log, ROBOT).column("qpos/wheel"), 900 * TIME)


def test_orientations_do_not_jump():
    """Signs are made continuous and lengths one; velocities of a free body come from its pose."""
    columns = tumbling()
    columns["qpos/drone/qw"] *= 1.001
    clean = prepare(Log(TIME, columns), ROBOT)
    q = np.stack([clean.column(name) for name in FREE[3:]], axis=1)
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1)
    assert np.max(np.abs(np.diff(q, axis=0))) < 0.03
    np.testing.assert_allclose(clean.column("qvel/drone/wz"), 9.0, atol=0.02)
    np.testing.assert_allclose(clean.column("qvel/drone/vz"), -9.81 * TIME, atol=1e-9)
    assert "qvel/drone/wz" in clean.derived


def test_quaternions_of_another_length_are_a_warning():
    """Half the length is no orientation as recorded: it is mended and said."""
    columns = {name: 0.5 * values for name, values in tumbling().items()}
    finding = prepare(Log(TIME, columns), ROBOT).findings[0]
    assert finding.subject == "qpos/drone"
    assert finding.severity == "warning"


def test_positions_that_only_a_sensor_reads():
    """The joint gets position and velocity from its encoder, marked as derived."""
    clean = prepare(Log(TIME, {"sensor/encoder": np.sin(TIME)}), ROBOT)
    np.testing.assert_array_equal(clean.column("qpos/wheel"), np.sin(TIME))
    assert clean.derived == {"qpos/wheel", "qvel/wheel"}


def test_recorded_velocities_are_kept():
    """What was measured is not computed again."""
    clean = prepare(Log(TIME, {"qpos/rail": TIME, "qvel/rail": 5 + 0 * TIME}), ROBOT)
    np.testing.assert_array_equal(clean.column("qvel/rail"), 5.0)
    assert not clean.derived


def test_missing_samples_are_counted():
    """A burst of missing samples is a note with its size."""
    values = TIME.copy()
    values[50:60] = np.nan
    assert "10 of 200 samples are missing (5 %)" in str(prepare(Log(TIME, {"qpos/rail": values}), ROBOT).findings[0])


def test_an_empty_log_is_an_error():
    """There is nothing to prepare."""
    with pytest.raises(TruesimError, match=r"run\.csv has no samples"):
        prepare(Log(np.zeros(0), {}, "run.csv"), ROBOT)


def test_the_motion_in_the_order_of_the_coordinates():
    """Coordinates that were recorded are there, the rest is missing."""
    shown = motion(prepare(Log(TIME, tumbling() | {"qpos/rail": 3 * TIME**2}), ROBOT), ROBOT)
    assert shown.q.shape == (200, ROBOT.nq)
    assert np.all(np.isnan(shown.q[:, :2]))
    np.testing.assert_allclose(shown.a[:, 2], 6.0, atol=1e-6)
    np.testing.assert_allclose(shown.a[:, 5], -9.81, atol=1e-6)
    np.testing.assert_allclose(shown.a[:, 6:], 0, atol=0.5)
    assert not np.any(shown.complete)


def test_topics_with_stamps_of_their_own_are_not_gaps():
    """Positions at 100 Hz and commands at 50 Hz, interleaved with jitter: one piece, commands held."""
    rng = np.random.default_rng(0)
    measured = np.sort(np.arange(200) * 0.01 + rng.normal(0, 3e-4, 200))
    driven = np.sort(np.arange(100) * 0.02 + 0.0007 + rng.normal(0, 3e-4, 100))
    time = np.concatenate([measured, driven])
    order = np.argsort(time)
    q = np.concatenate([np.sin(measured), np.full(100, np.nan)])[order]
    u = np.concatenate([np.full(200, np.nan), np.arange(100.0)])[order]
    model = loads(
        '<mujoco><worldbody><body><joint name="a" type="hinge"/><geom size="0.1"/></body></worldbody>'
        '<actuator><position name="a" joint="a" kp="5"/></actuator></mujoco>'
    )
    clean = prepare(Log(time[order], {"qpos/a": q, "ctrl/a": u}, "bag"), model)
    assert len(split_at_gaps(clean, needed=["ctrl/a"])) == 1
    assert 198 <= len(clean.time) <= 200
    assert np.isfinite(clean.column("ctrl/a")).all()
    np.testing.assert_array_equal(clean.column("ctrl/a")[-1], np.arange(100.0)[driven <= clean.time[-1]][-1])
    assert any("stamps of their own" in f.message for f in clean.findings)
    ends = np.append(driven, np.inf)
    spans = np.diff(np.clip(ends, clean.time[0], clean.time[-1]))
    area = np.sum(np.arange(100.0) * spans)
    given = np.sum(clean.column("ctrl/a")[:-1] * np.diff(clean.time))
    np.testing.assert_allclose(given, area, rtol=1e-9, err_msg="commands act neither earlier nor later")
