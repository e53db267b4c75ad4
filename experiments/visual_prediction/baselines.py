"""Predictions without physics, for comparison: standing still, constant velocity, and two networks."""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.visual_prediction.networks import (
    Weights,
    encode,
    new_mlp,
    new_recurrent,
    predict_by_mlp,
    predict_by_recurrence,
)
from experiments.visual_prediction.scene import AHEAD, RADIUS, SEEN, SIZE, Trials
from experiments.visual_prediction.training import Batch, Batches, Trained, optimize
from truesim.core.typing import Array, Float

WIDTH = SIZE - 2 * RADIUS


def stand_still(places: Float[np.ndarray, "n 3 3 2"]) -> Float[np.ndarray, "n 10 3 2"]:
    """The last place."""
    return np.repeat(places[:, -1:], AHEAD, axis=1)


def keep_velocity(places: Float[np.ndarray, "n 3 3 2"], walls: bool) -> Float[np.ndarray, "n 10 3 2"]:
    """The last velocity, with or without reflection at the walls."""
    steps = np.arange(1, AHEAD + 1)[:, None, None]
    ahead = places[:, -1:] + steps * (places[:, -1:] - places[:, -2:-1])
    return RADIUS + np.abs((ahead - RADIUS + WIDTH) % (2 * WIDTH) - WIDTH) if walls else ahead


def train_mlp(trials: Trials, weights: Weights, steps: int) -> Trained:
    """A network from places to places in place of physics, trained with all labels; the encoder is given."""
    begun, batches = time.process_time(), Batches(Trials(trials.places, trials.places), len(trials.places), 1)

    def loss(own: Weights, batch: Batch, blur: Array) -> Array:
        ahead = predict_by_mlp(own, batch["places"][:, :SEEN])
        return jnp.mean((ahead - batch["places"][:, SEEN:]) ** 2)

    found, _ = optimize({"mlp": new_mlp(0)}, loss, partial(batches.motions, 128), steps, 1e-3)
    return Trained(weights | found, time.process_time() - begun)


def train_recurrent(trials: Trials, weights: Weights, steps: int) -> Trained:
    """A convolutional recurrent network behind the encoder's features, trained with all labels."""
    begun, batches = time.process_time(), Batches(trials, len(trials.places), 1)
    weights = {key: weights[key] for key in ("filters", "biases")} | {"recurrent": new_recurrent(0)}

    def loss(own: Weights, batch: Batch, blur: Array) -> Array:
        ahead = predict_by_recurrence(own, batch["frames"][:, :SEEN])
        return jnp.mean((ahead - batch["places"][:, SEEN:]) ** 2)

    found, _ = optimize(weights, loss, partial(batches.motions, 16), steps, 3e-3)
    return Trained(found, time.process_time() - begun)


def locate_in(weights: Weights, frames: Float[np.ndarray, "n 3 64 64 3"]) -> Float[np.ndarray, "n 3 3 2"]:
    """Places in frames, a few trials at a time."""
    run = jax.jit(encode)
    return np.concatenate(
        [np.asarray(run(weights, part)) for part in np.array_split(frames, max(1, len(frames) // 50))]
    )


def recur(weights: Weights, frames: Float[np.ndarray, "n 3 64 64 3"]) -> Float[np.ndarray, "n 10 3 2"]:
    """Places ahead by the recurrent network, a few trials at a time."""
    run, parts = jax.jit(predict_by_recurrence), np.array_split(frames, max(1, len(frames) // 50))
    return np.concatenate([np.asarray(run(weights, part)) for part in parts])
