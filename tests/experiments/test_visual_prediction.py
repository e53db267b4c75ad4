"""Visual prediction: the generator is exact, truesim agrees with it, gradients pass impacts, and training learns."""

import struct
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.visual_prediction.baselines import keep_velocity, locate_in
from experiments.visual_prediction.networks import PhysicsPredictor, decode, new_weights
from experiments.visual_prediction.physics import make_layer
from experiments.visual_prediction.picture import write_png
from experiments.visual_prediction.scene import COLORS, RADIUS, SEEN, SIZE, Table, draw, make_trials, simulate
from experiments.visual_prediction.training import TrainingOptions, train


@pytest.fixture(autouse=True)
def double_precision():
    """The physics has float64; the networks broadcast as NumPy does."""
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def layer():
    """The compiled physics, ten frames."""
    return make_layer()


def test_elastic_tables_keep_their_energy():
    """Balls stay on the table and apart, and their speeds keep their sum of squares through all impacts."""
    rng = np.random.default_rng(0)
    x = np.array([[10.0, 12.0], [40.0, 20.0], [30.0, 50.0]])
    v = rng.uniform(-3, 3, (3, 2))
    path = simulate(x, v, np.arange(0, 50, 1e-3), Table())
    speed2 = np.sum((np.diff(path, axis=0) / 1e-3) ** 2, axis=(1, 2))
    assert np.median(np.abs(speed2 - np.sum(v**2))) < 1e-6
    assert path.min() > RADIUS - 1e-9
    assert path.max() < SIZE - RADIUS + 1e-9
    gaps = np.linalg.norm(path[:, [0, 0, 1]] - path[:, [1, 2, 2]], axis=-1)
    assert gaps.min() > 2 * RADIUS - 1e-6


@pytest.mark.parametrize("table", [Table(), Table(0.8, 0.03)])
def test_the_layer_agrees_with_the_generator(layer, table):
    """Two independent simulators end within a few tenths of a pixel after ten frames with impacts."""
    rng = np.random.default_rng(1)
    start = make_trials(100, 2, table).places[:, 0]
    v = rng.uniform(-3, 3, start.shape)
    exact = np.stack([simulate(a, b, np.arange(1, 11), table) for a, b in zip(start, v, strict=True)])
    found = layer(start, v, np.float64(table.restitution), np.float64(table.friction))[0]
    apart = np.linalg.norm(found - exact, axis=-1)[:, -1]
    assert apart.mean() < 0.25
    assert np.median(apart) < 0.2


def test_gradients_pass_impacts(layer):
    """The derivative by restitution, velocity and friction is the central difference, through an impact of balls."""
    x = np.array([[20.0, 30.0], [34.0, 33.0], [50.0, 55.0]])
    v = np.array([[2.5, 0.2], [0.0, 0.0], [0.5, -0.4]])

    def place(e, c, speed):
        return jnp.sum(
            layer(x, jnp.asarray(v).at[0, 0].set(speed), e, c)[0][-1, :2] * np.array([[1.0, 2.0], [3.0, 4.0]])
        )

    at, step = (0.9, 0.02, 2.5), 1e-4
    gradient = jax.jit(jax.grad(place, argnums=(0, 1, 2)))(*at)
    for k in range(3):
        high, low = (place(*(a + sign * step * (i == k) for i, a in enumerate(at))) for sign in (1, -1))
        np.testing.assert_allclose(gradient[k], (high - low) / (2 * step), rtol=1e-4)
    assert abs(gradient[0]) > 1


def test_velocities_see_impacts_within_the_seen_frames():
    """From true places, predictions are several times better than constant velocity with walls."""
    test = make_trials(100, 3, Table())
    ahead = np.asarray(PhysicsPredictor((1.0, 0.0))({}, test.places[:, :SEEN]))
    naive = keep_velocity(test.places[:, :SEEN], walls=True)
    errors = [np.linalg.norm(x[:, -1] - test.places[:, -1], axis=-1).mean() for x in (ahead, naive)]
    assert errors[0] < 0.2 * errors[1]


def test_decoders_draw_at_the_place():
    """The drawn disc is where the frame has its own, to a tenth of a pixel."""
    places = np.array([[[20.3, 40.7], [45.1, 12.2], [10.0, 10.0]]])
    weights = new_weights(0) | {"colors": jnp.asarray(COLORS), "size": jnp.array([5.0, -1.0])}
    drawn, true = np.asarray(decode(weights, places))[0], draw(places, COLORS)[0]
    at = np.arange(SIZE) + 0.5
    for image in (drawn, true):
        red = np.maximum(image[..., 0] - 0.5, 0)
        np.testing.assert_allclose((red.sum(0) @ at) / red.sum(), 20.3, atol=0.1)
        np.testing.assert_allclose((red.sum(1) @ at) / red.sum(), 40.7, atol=0.1)


def test_pictures_are_png(tmp_path):
    """Size and pixels of a file can be read back."""
    image = np.random.default_rng(0).integers(0, 255, (3, 5, 3)).astype(np.uint8)
    write_png(tmp_path / "a.png", image)
    data = (tmp_path / "a.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == (5, 3)
    begin = data.index(b"IDAT")
    (size,) = struct.unpack(">I", data[begin - 4 : begin])
    rows = np.frombuffer(zlib.decompress(data[begin + 4 : begin + 4 + size]), np.uint8).reshape(3, -1)
    assert np.array_equal(rows[:, 1:].reshape(3, 5, 3), image)


@pytest.mark.slow
def test_few_labels_are_enough():
    """With labels for 2 % of the trials, ten frames ahead the mean error is below 1.3 px."""
    physics = PhysicsPredictor((1.0, 0.0))
    found, test = train(make_trials(1500, 0, Table()), 0.02, physics, TrainingOptions()), make_trials(300, 1, Table())
    ahead = np.asarray(physics(found.weights, locate_in(found.weights, test.frames[:, :SEEN])))
    assert np.linalg.norm(ahead[:, -1] - test.places[:, -1], axis=-1).mean() < 1.3
    assert found.seconds < 300
