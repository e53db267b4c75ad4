"""What a log holds of a motion: bias, scale and delay of every channel."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.robots import SMOOTH, robot, start
from truesim.core.errors import TruesimError
from truesim.physics.model import paths
from truesim.physics.simulation import History, Simulator, record
from truesim.physics.simulation.history import delayed
from truesim.physics.simulation.measurements import measure

IRREGULAR = np.array([0.0, 0.01, 0.012, 0.012, 0.03, 0.05, 0.051, 0.08])
"""Times of samples [s], two of them the same."""


@pytest.fixture(scope="module")
def motion():
    """A robot, a motion of 30 samples, and the columns of its channels."""
    text = SMOOTH.replace("</actuator>", '</actuator><sensor><jointpos name="angle" joint="a"/></sensor>')
    model = robot(text)
    commands = np.random.default_rng(0).normal(size=(29, model.nu))
    trajectory = evaluate(record, Simulator.of(model), start(model), commands)
    return model, trajectory, {name: k for k, name in enumerate(model.sensors.names)}


def test_perfect_sensors_tell_the_truth(motion):
    """Without errors and delays the readings are the motion itself."""
    model, trajectory, _ = motion
    expected = np.concatenate([trajectory.sensors["angle"][:, None], trajectory.q, trajectory.v], axis=1)
    np.testing.assert_array_equal(measure(model, trajectory), expected)


def test_bias_scale_and_delay(motion):
    """reading(t) = scale * truth(t - delay) + bias, interpolated between samples and starting with the first."""
    model, trajectory, column = motion
    changes = {"angle.delay": 0.037, "qpos/b.bias": 0.05, "qvel/a.scale": 1.2, "qvel/a.delay": 0.02}
    for path, value in changes.items():
        model = paths.write(model, f"sensors/{path}", value)
    read, time, q, v = (
        np.asarray(x) for x in (measure(model, trajectory), trajectory.time, trajectory.q, trajectory.v)
    )
    np.testing.assert_allclose(read[:, column["angle"]], np.interp(time - 0.037, time, q[:, 0]), atol=1e-13)
    np.testing.assert_allclose(read[:, column["qpos/b"]], q[:, 1] + 0.05, atol=1e-14)
    np.testing.assert_allclose(read[2:, column["qvel/a"]], 1.2 * v[:-2, 0], atol=1e-12)
    np.testing.assert_array_equal(read[:, column["qpos/a"]], q[:, 0])


def test_irregular_samples():
    """Samples need not be evenly spaced, and two may share a time; a delay beyond the room acts as the longest."""
    signal = np.random.default_rng(0).normal(size=(len(IRREGULAR), 2))
    delay = np.array([0.013, 0.05])
    found = np.asarray(delayed(signal, IRREGULAR, delay, len(IRREGULAR)))
    for k, now in enumerate(IRREGULAR):
        for c in range(2):
            expected = np.interp(now - delay[c], IRREGULAR[: k + 1], signal[: k + 1, c])
            np.testing.assert_allclose(found[k, c], expected, atol=1e-12)
    clamped = delayed(signal, IRREGULAR, delay, 2)
    np.testing.assert_allclose(
        clamped[1:], np.where(delay < np.diff(IRREGULAR)[:, None], found[1:], signal[:-1]), atol=1e-12
    )


def test_a_history_is_read_as_it_grows():
    """One reading after another, as a controller sees them, gives what the whole signal gives."""
    signal, time = np.random.default_rng(0).normal(size=(9, 1)), np.arange(9) * 0.01
    history, seen = History.constant(signal[0], 0.0, 4), []
    for value, now in zip(signal, time, strict=True):
        history = history.then(value, now)
        seen.append(history.at(now, np.array([0.0234])))
    np.testing.assert_allclose(seen, delayed(signal, time, np.array([0.0234]), 4), atol=1e-13)


def test_derivative_in_the_delay(motion):
    """It is minus the slope of the signal, against differences inside a cell."""
    model, trajectory, column = motion

    def read(seconds):
        changed = dataclasses.replace(model.sensors, delay=jnp.full(len(column), seconds))
        return measure(dataclasses.replace(model, sensors=changed), trajectory, length=6)

    h = 1e-4
    slope = jax.jacfwd(read)(0.0231)
    central = (read(0.0231 + h) - read(0.0231 - h)) / (2 * h)
    np.testing.assert_allclose(slope, central, atol=1e-9 * np.abs(central).max())
    with pytest.raises(TruesimError, match="the number of samples"):
        jax.jit(lambda d: measure(paths.write(model, "sensors/angle.delay", d), trajectory))(0.01)
