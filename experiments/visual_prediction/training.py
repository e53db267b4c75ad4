"""Training with labels for some of the trials: the poster's three losses with labels, the decoder's alone without."""

import dataclasses
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.visual_prediction.networks import Predictor, Weights, decode, encode, new_weights
from experiments.visual_prediction.scene import AHEAD, SEEN, Trials
from truesim.core.typing import Array

Batch = dict[str, Any]
"""Frames and places with labels, and `free` frames without."""
Loss = Callable[[Weights, Batch, Array], Array]
"""Function of weights, batch and blur."""
OPTIMIZER = optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())
SCALES = (2, 4, 16)
"""Widths over which frames are averaged before they are compared [px]; wide ones attract balls from afar."""


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """Length of the training."""

    starts: int = 4
    """Random initial weights without labels, of which the best after a short time is kept."""
    trial_steps: int = 80
    """Steps of each start."""
    frame_steps: int = 400
    """Steps on single frames."""
    motion_steps: int = 150
    """Steps on predicted frames."""
    batch: int = 48
    """Frames of a step; trials of a step are a fourth of it."""
    rate: float = 4e-3
    """Learning rate, which falls to zero."""


@dataclasses.dataclass(frozen=True)
class Trained:
    """Weights, and what they took."""

    weights: Weights
    seconds: float
    """CPU time, compilation included."""


def compare(drawn: Array, seen: Array, far: Array | float = 1.0) -> Array:
    """Mean square difference of frames, at the resolution of pixels and averaged over squares."""
    difference = drawn - seen
    total = jnp.mean(difference**2)
    for width in SCALES:
        size = difference.shape[-2] // width
        wide = difference.reshape(-1, size, width, size, width, 3).mean((2, 4))
        total += far * width * jnp.mean(wide**2)
    return 100 * total


def frame_loss(weights: Weights, batch: Batch, blur: Array) -> Array:
    """Losses of encoder and decoder on single frames."""
    loss = jnp.zeros((), jnp.float32)
    if "free" in batch:
        loss += compare(decode(weights, encode(weights, batch["free"]), blur), batch["free"])
    if "frames" in batch:
        deviation = encode(weights, batch["frames"]) - batch["places"]
        loss += jnp.mean(deviation**2) + compare(decode(weights, batch["places"]), batch["frames"])
    return loss


def motion_loss(predict: Predictor, weights: Weights, batch: Batch, blur: Array) -> Array:
    """Losses of predictions: frames ahead without labels; with labels, places ahead from the true places."""
    loss = jnp.zeros((), jnp.float32)
    if "free" in batch:
        places = encode(weights, batch["free"][:, :SEEN])
        ahead = predict(weights, places)
        later = jnp.concatenate([places, ahead.astype(jnp.float32)], axis=1)
        chosen = jnp.array([0, 1, 2, 3, 5, 8])
        loss += compare(decode(weights, later[:, chosen]), batch["free"][:, chosen])
    if "frames" in batch:
        deviation = encode(weights, batch["frames"][:, :SEEN]) - batch["places"][:, :SEEN]
        ahead = predict(weights, batch["places"][:, :SEEN]) - batch["places"][:, SEEN:]
        far = jnp.sqrt(jnp.sum(ahead**2, axis=-1) + 1e-2)
        loss += jnp.mean(deviation**2) + 0.1 * jnp.mean(far).astype(jnp.float32)
    return loss


def optimize(
    weights: Weights,
    loss: Loss,
    batches: Callable[[], Batch],
    steps: int,
    rate: float,
    blurs: tuple[float, float] = (0.0, 0.0),
) -> tuple[Weights, float]:
    """Adam with a rate that falls to zero; returns the mean loss of the last steps too.

    Args:
        weights: Initial weights.
        loss: Function of weights, batch and blur.
        batches: Draws a batch.
        steps: Number of steps.
        rate: First rate.
        blurs: Blur of drawn frames at the beginning and at the end [px].
    """
    step, state = _step(loss), OPTIMIZER.init(weights)
    recent = []
    for k in range(steps):
        rate_now = np.float32(rate * 0.5 * (1 + np.cos(np.pi * k / steps)))
        blur = np.float32(blurs[0] + (blurs[1] - blurs[0]) * k / steps)
        weights, state, value = step(weights, state, batches(), rate_now, blur)
        recent.append(value)
    return weights, float(np.mean(recent[-20:]))


@cache
def _step(loss: Loss) -> Callable[..., tuple[Weights, Any, Array]]:
    """Compiled step of a loss, compiled once for each structure of batches."""

    def step(weights: Weights, state: Any, batch: Batch, rate: Array, blur: Array) -> tuple[Weights, Any, Array]:
        value, gradient = jax.value_and_grad(loss)(weights, batch, blur)
        change, state = OPTIMIZER.update(gradient, state, weights)
        return jax.tree.map(lambda w, d: w - rate * d, weights, change), state, value

    return jax.jit(step)


@cache
def _motion_loss(predict: Predictor) -> Loss:
    return partial(motion_loss, predict)


class Batches:
    """Random batches of labelled and unlabelled frames and trials."""

    def __init__(self, trials: Trials, labelled: int, seed: int):
        self.trials, self.labelled, self.rng = trials, labelled, np.random.default_rng(seed)

    def frames(self, count: int) -> Batch:
        """Single frames."""
        return self._draw(count, lambda i: (i, self.rng.integers(0, SEEN + AHEAD, len(i))))

    def motions(self, count: int) -> Batch:
        """Whole trials."""
        return self._draw(count, lambda i: (i,))

    def _draw(self, count: int, index: Callable[[np.ndarray], tuple]) -> Batch:
        total, share = len(self.trials.frames), count
        batch: Batch = {}
        if 0 < self.labelled < total:
            share = count // 2
        if self.labelled:
            chosen = index(self.rng.integers(0, self.labelled, share))
            batch["frames"] = self.trials.frames[chosen]
            batch["places"] = self.trials.places[chosen].astype(np.float32)
        if self.labelled < total:
            batch["free"] = self.trials.frames[index(self.rng.integers(self.labelled, total, share))]
        return batch


def train(trials: Trials, share: float, predict: Predictor, options: TrainingOptions, seed: int = 0) -> Trained:
    """Train encoder, decoder and physics with labels for a share of the trials."""
    begun, labelled = time.process_time(), round(share * len(trials.frames))
    batches = Batches(trials, labelled, seed)
    frames, motions = partial(batches.frames, options.batch), partial(batches.motions, options.batch // 4)
    weights = new_weights(seed)
    if not labelled:
        tries = [
            optimize(new_weights(seed + 97 * k), frame_loss, frames, options.trial_steps, options.rate, (4.0, 1.0))
            for k in range(options.starts)
        ]
        weights = min(tries, key=lambda found: found[1])[0]
    weights, _ = optimize(weights, frame_loss, frames, options.frame_steps, options.rate, (1.0, 0.0))
    weights, _ = optimize(weights, _motion_loss(predict), motions, options.motion_steps, 0.25 * options.rate)
    return Trained(weights, time.process_time() - begun)
