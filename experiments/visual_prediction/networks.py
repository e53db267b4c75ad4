"""Encoder from frames to places, decoder from places to frames, and what predicts between them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from experiments.visual_prediction.physics import make_layer
from experiments.visual_prediction.scene import AHEAD, BALLS, SEEN, SIZE
from truesim.core.typing import Array, Float

Weights = dict[str, Any]
Predictor = Callable[[Weights, Float[Array, "n 3 3 2"]], Float[Array, "n 10 3 2"]]
CHANNELS = 16
STRAIGHT = 0.6
"""Second difference of three places below which a ball counts as undisturbed [px]; larger overlooks weak impacts."""
CONSISTENT = 0.6
"""Deviation of a simulated place from the seen one up to which the simulated velocity is taken [px]."""
PHYSICS_SCALE = 20.0
"""Scale of the unknowns of restitution and friction; larger learns them faster than the filters."""
STATE = 12
"""Channels of the state of the recurrent network."""


def convolve(x: Array, w: Array, stride: int = 1) -> Array:
    """Convolution of images with padding."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


def filters(key: Array, width: int, inputs: int, outputs: int) -> Array:
    """Random filters for rectified linear units."""
    return jax.random.normal(key, (width, width, inputs, outputs), jnp.float32) * (2 / (width**2 * inputs)) ** 0.5


def new_weights(seed: int) -> Weights:
    """Weights of encoder and decoder; restitution and friction are found with them."""
    k = jax.random.split(jax.random.key(seed), 4)
    return {
        "filters": [
            filters(k[0], 5, 3, CHANNELS),
            filters(k[1], 5, CHANNELS, CHANNELS),
            filters(k[2], 3, CHANNELS, BALLS),
        ],
        "biases": [jnp.zeros(CHANNELS, jnp.float32), jnp.zeros(CHANNELS, jnp.float32)],
        "colors": 0.5 + 0.2 * jax.random.normal(k[3], (BALLS, 3), jnp.float32),
        "size": jnp.array([4.0, 0.0], jnp.float32),
        "physics": jnp.array([3.0, -5.0], jnp.float32) / PHYSICS_SCALE,
    }


def features(weights: Weights, frames: Float[Array, "n 64 64 3"]) -> Float[Array, "n 32 32 channels"]:
    """Features of frames at half their resolution."""
    h = frames
    for w, b, stride in zip(weights["filters"][:2], weights["biases"], (2, 1), strict=True):
        h = jax.nn.relu(convolve(h, w, stride) + b)
    return h


def locate(maps: Float[Array, "n h w 3"]) -> Float[Array, "n 3 2"]:
    """Mean places under the softmax of maps [px]."""
    n, size = maps.shape[0], maps.shape[1]
    p = jax.nn.softmax(maps.reshape(n, -1, BALLS), axis=1).reshape(maps.shape)
    at = (jnp.arange(size, dtype=jnp.float32) + 0.5) * (SIZE / size)
    return jnp.stack([jnp.einsum("nhwk,w->nk", p, at), jnp.einsum("nhwk,h->nk", p, at)], axis=-1)


def encode(weights: Weights, frames: Float[Array, "*batch 64 64 3"]) -> Float[Array, "*batch 3 2"]:
    """Places of the balls in frames [px]."""
    flat = frames.reshape(-1, SIZE, SIZE, 3)
    maps = 4 * convolve(features(weights, flat), weights["filters"][2])
    return locate(maps).reshape(*frames.shape[:-3], BALLS, 2)


def decode(weights: Weights, places: Float[Array, "*batch 3 2"], blur: Array | float = 0.0) -> Array:
    """Frames with a disc of learned colour, radius and edge at each place; `blur` widens the edge [px]."""
    at = jnp.arange(SIZE, dtype=jnp.float32) + 0.5
    places = places.astype(jnp.float32)
    x, y = places[..., 0, None, None], places[..., 1, None, None]
    distance = jnp.sqrt((at[None, :] - x) ** 2 + (at[:, None] - y) ** 2 + 1e-6)
    radius, edge = weights["size"][0], 0.2 + jax.nn.softplus(weights["size"][1]) + blur
    return jnp.einsum("...kij,kc->...ijc", jax.nn.sigmoid((radius - distance) / edge), weights["colors"])


class PhysicsPredictor:
    """truesim between encoder and decoder: velocities from three frames, then a simulation."""

    def __init__(self, known: tuple[float, float] | None = None):
        """Compile the layers; `known` fixes restitution and friction, which are learned otherwise."""
        self.known = known
        self._one, self._many = make_layer(1), make_layer(AHEAD)

    def numbers(self, weights: Weights) -> tuple[Array, Array]:
        """Restitution, and friction [1/frame]."""
        if self.known is not None:
            return jnp.asarray(self.known[0], float), jnp.asarray(self.known[1], float)
        raw = PHYSICS_SCALE * weights["physics"].astype(float)
        return jax.nn.sigmoid(raw[0]), jax.nn.softplus(raw[1])

    def __call__(self, weights: Weights, places: Float[Array, "n 3 3 2"]) -> Float[Array, "n 10 3 2"]:
        """Places in the frames ahead.

        Where a ball moved on a straight line, its place and velocity are those of the line through three places.
        Otherwise something hit it. If a simulation from the first two frames leads to the third place, its velocity
        is taken; else the impact was before the second frame.
        """
        a, b, c = (places[:, k].astype(float) for k in range(SEEN))
        e, friction = self.numbers(weights)
        slowed = 1 - friction / 2
        ahead, speed = (z[:, 0] for z in self._one(b, (b - a) * slowed, e, friction))
        straight = jnp.linalg.norm(a - 2 * b + c, axis=-1, keepdims=True) < STRAIGHT
        consistent = jnp.linalg.norm(ahead - c, axis=-1, keepdims=True) < CONSISTENT
        v = jnp.where(straight, 0.5 * (c - a) * (1 - friction), jnp.where(consistent, speed, (c - b) * slowed))
        x = jnp.where(straight, (5 * c + 2 * b - a) / 6, c)
        return self._many(x, v, e, friction)[0]


def new_mlp(seed: int, width: int = 256) -> list[tuple[Array, Array]]:
    """Weights of a network from three places of all balls to ten."""
    sizes = [SEEN * BALLS * 2, width, width, AHEAD * BALLS * 2]
    keys = jax.random.split(jax.random.key(seed), len(sizes))
    return [
        (jax.random.normal(k, (n, m), jnp.float32) * (2 / n) ** 0.5, jnp.zeros(m, jnp.float32))
        for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=False)
    ]


def predict_by_mlp(weights: Weights, places: Float[Array, "n 3 3 2"]) -> Float[Array, "n 10 3 2"]:
    """Places ahead by a network without physics, relative to the last place."""
    scale = SIZE / 2
    h = (places.reshape(len(places), -1).astype(jnp.float32) - scale) / scale
    for k, (w, b) in enumerate(weights["mlp"]):
        h = h @ w + b
        h = jax.nn.relu(h) if k < len(weights["mlp"]) - 1 else h
    return places[:, -1:] + scale * h.reshape(-1, AHEAD, BALLS, 2)


def new_recurrent(seed: int) -> Weights:
    """Weights of a convolutional gated recurrent network on features of frames."""
    k = jax.random.split(jax.random.key(seed), 3)
    joined = CHANNELS + STATE
    return {
        "shrink": filters(k[0], 3, CHANNELS, CHANNELS),
        "gates": filters(k[1], 3, joined, 3 * STATE) * 0.5,
        "read": filters(k[2], 3, STATE, BALLS),
    }


def predict_by_recurrence(weights: Weights, frames: Float[Array, "n 3 64 64 3"]) -> Float[Array, "n 10 3 2"]:
    """Places ahead by a convolutional recurrent network: three frames go in, then it runs on alone."""
    n, own = len(frames), weights["recurrent"]
    seen = jax.nn.relu(convolve(features(weights, frames.reshape(-1, SIZE, SIZE, 3)), own["shrink"], 2))
    seen = seen.reshape(n, SEEN, *seen.shape[1:])

    def step(state: Array, shown: Array) -> Array:
        update, reset, new = jnp.split(convolve(jnp.concatenate([shown, state], axis=-1), own["gates"]), 3, axis=-1)
        update = jax.nn.sigmoid(update)
        return (1 - update) * state + update * jnp.tanh(new * jax.nn.sigmoid(reset))

    state, nothing = jnp.zeros((*seen.shape[:1], *seen.shape[2:4], STATE), jnp.float32), jnp.zeros_like(seen[:, 0])
    for k in range(SEEN):
        state = step(state, seen[:, k])
    places = []
    for _ in range(AHEAD):
        state = step(state, nothing)
        places.append(locate(4 * convolve(state, own["read"])))
    return jnp.stack(places, axis=1)
