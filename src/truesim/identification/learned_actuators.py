"""Learned actuators: networks that replace actuator models, trained on logs.

The network maps command, position and velocity of its actuator, at the current and earlier times (`Lagged`) or with
recurrent memory (`GRU`), to the force. Labels are measured torques, or torques from the motion: inverse dynamics of the
positions minus all other joint forces of the model.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core import libraries
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.files.logs import Log, motion, prepare
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.blueprint import GRU, Blueprint, Lagged, Rule, Trained
from truesim.physics.dynamics import inverse_dynamics
from truesim.physics.model.columns import command_columns
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator

ACTUATOR_INPUTS = ("actuator.command", "actuator.length", "actuator.velocity")
"""Inputs of a learned actuator."""
LEARNED_ACTUATORS = "learned actuators"
"""Name of the network rule."""
SEQUENCE_SAMPLES, BURN_IN_SAMPLES = 96, 32
"""Samples of a training sequence, and the number of first samples that only fill the memory."""
HELD_OUT_SEQUENCES = 8
"""One sequence in this many is held out and decides when training ends."""
SAMPLING_TOLERANCE = 0.02
"""Largest relative difference between the sampling interval of a log and that of the network."""


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """Epochs, batches, rate and seed of training."""

    epochs: int = 16
    """Maximum number of passes over all sequences."""
    patience: int = 4
    """Number of epochs without a smaller held-out error after which training ends."""
    batch: int = 32
    """Sequences in a batch."""
    rate: float = 3e-3
    """Learning rate of Adam, which decays to a hundredth along a cosine."""
    half_width: float = 0.0125
    """Half width of the differentiation filter for labels from the motion [s]."""
    seed: int = 0
    """Seed of the order of the sequences; initial weights follow from the seed of the network."""


class Sequences(NamedTuple):
    """Training sequences of all logs and actuators."""

    x: Float[np.ndarray, "sequences samples inputs"]
    """Inputs divided by their scales."""
    y: Float[np.ndarray, "sequences samples"]
    """Force divided by its scale."""


TrainingCallback = Callable[[int, float], None]
"""Called after every epoch with its number and the root-mean-square error on held-out sequences [N m or N]."""


def learn_actuators(
    model: Model,
    logs: Sequence[Log],
    network: Lagged | GRU,
    *,
    torque: str | None = None,
    training: TrainingOptions | None = None,
    callback: TrainingCallback | None = None,
) -> Trained:
    """Train one network that replaces the models of all actuators.

    The force limits of the model still apply: the output of the network is clipped to them.

    Args:
        model: The robot; with measured torques only its joints and actuators matter.
        logs: Recordings with `ctrl/`, `qpos/`, and torques if available.
        network: Architecture, with the sampling interval of the logs as its `interval`.
        torque: Pattern of the torque columns with `*` for the name of the actuator, such as `torque/*`; without it,
            labels come from the motion.
        training: Options of training.
        callback: Called after every epoch.
    """
    training = training or TrainingOptions()
    interval = _interval(network, logs)
    parts = [_inputs_and_forces(model, prepare(log, model), torque, training.half_width) for log in logs]
    scales = {
        name: _size(np.concatenate([x[..., k].ravel() for x, _ in parts])) for k, name in enumerate(ACTUATOR_INPUTS)
    }
    size = _size(np.concatenate([y.ravel() for _, y in parts]))
    rule = Rule(
        "actuator.force", ACTUATOR_INPUTS, network, mode="replace", scales=scales, size=size, name=LEARNED_ACTUATORS
    )
    with jax.enable_x64(True):
        learned = Blueprint((rule,)).build(Simulator.of(model, timestep=interval))
    sequences = _cut_sequences(parts, np.array(list(scales.values())), size)
    say = callback or (lambda epoch, error: None)
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in integers
        net = _train(learned.networks[0].net, sequences, training, lambda k, e: say(k, size * e))
    with jax.enable_x64(True):
        learned = eqx.tree_at(lambda s: s.networks[0].net, learned, net)
        return Trained(Blueprint((rule,)), {LEARNED_ACTUATORS: np.asarray(learned.weights(0), float)})


def _interval(network: Lagged | GRU, logs: Sequence[Log]) -> float:
    """Sampling interval of the logs, which must equal that of the network."""
    if network.interval is None:
        raise TruesimError("A learned actuator needs its sampling interval: give interval=… in seconds to its network.")
    for log in logs:
        step = float(np.median(np.diff(log.time)))
        if abs(step / network.interval - 1) > SAMPLING_TOLERANCE:
            raise TruesimError(
                f"{log.name} is sampled every {step:g} s, the network has an interval of {network.interval:g} s: "
                "resample the log, or give the network this interval."
            )
    return network.interval


def _inputs_and_forces(
    model: Model, log: Log, torque: str | None, half_width: float
) -> tuple[Float[np.ndarray, "samples actuators inputs"], Float[np.ndarray, "samples actuators"]]:
    """Inputs and force of every actuator; NaN where the log has gaps."""
    moved = motion(log, model, half_width=half_width)
    command = np.stack([log.column(name) for name in command_columns(model)], axis=1)
    known = moved.complete & np.isfinite(command).all(axis=1)
    fill = [np.nan_to_num(x) for x in (moved.q, moved.v, moved.a, command)]

    def at(q: Array, v: Array, a: Array, u: Array) -> tuple[Array, Array, Array]:
        simulator = Simulator.of(model)
        plain = simulator.equation(u).applied(q, v) - actuator_forces(model, q, v, u).generalized
        acting = actuator_forces(model, q, v, u)
        moments = jax.jacobian(lambda v: actuator_forces(model, q, v, u).velocity)(v)
        needed = inverse_dynamics(model, q, v, a) - plain
        return acting.length, acting.velocity, moments @ needed / jnp.sum(moments**2, axis=1)

    with jax.enable_x64(True):
        length, velocity, force = native.compile(at, *(x[0] for x in fill))(*fill)
    if torque is not None:
        force = np.stack([log.column(torque.replace("*", name)) for name in model.actuators.names], axis=1)
        known = known & np.isfinite(force).all(axis=1)
    x = np.stack([command, length, velocity], axis=-1)
    return np.where(known[:, None, None], x, np.nan), np.where(known[:, None], force, np.nan)


def _cut_sequences(parts: Sequence[tuple[np.ndarray, np.ndarray]], scales: np.ndarray, size: float) -> Sequences:
    """Sequences without gaps, which overlap by the burn-in samples."""
    xs, ys = [], []
    for x, y in parts:
        for start in range(0, len(x) - SEQUENCE_SAMPLES + 1, SEQUENCE_SAMPLES - BURN_IN_SAMPLES):
            piece = slice(start, start + SEQUENCE_SAMPLES)
            if np.isfinite(y[piece]).all():
                xs += list((x[piece] / scales).transpose(1, 0, 2))
                ys += list((y[piece] / size).T)
    needed = 2 * HELD_OUT_SEQUENCES
    if len(xs) < needed:
        raise TruesimError(
            f"The logs hold {len(xs)} sequences of {SEQUENCE_SAMPLES} samples; at least {needed} are needed."
        )
    return Sequences(np.stack(xs).astype(np.float32), np.stack(ys).astype(np.float32))


def _train(net: Any, data: Sequences, training: TrainingOptions, callback: TrainingCallback) -> Any:
    """Network with the smallest error on held-out sequences, trained in single precision."""
    held = (np.arange(len(data.x)) // 4) % HELD_OUT_SEQUENCES == HELD_OUT_SEQUENCES - 1  # neighbors overlap
    fitted, held_out = Sequences(*(a[~held] for a in data)), Sequences(*(a[held] for a in data))
    net = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32) if eqx.is_inexact_array_like(x) else x, net)
    steps = training.epochs * max(1, len(fitted.x) // training.batch)
    rates = iter(training.rate * (0.505 + 0.495 * np.cos(np.pi * np.arange(steps) / steps)))
    optax = libraries.optax
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())
    numbers, rest = eqx.partition(net, eqx.is_inexact_array)
    state, rng = optimizer.init(numbers), np.random.default_rng(training.seed)
    best, least, since = numbers, np.inf, itertools.count()

    @jax.jit
    def error(numbers: Any, x: Array, y: Array) -> Array:
        given = jax.vmap(lambda x: _run(eqx.combine(numbers, rest), x))(x)
        return jnp.mean((given - y)[:, BURN_IN_SAMPLES:] ** 2)

    @jax.jit
    def update(numbers: Any, state: Any, rate: Array, x: Array, y: Array) -> tuple[Any, Any]:
        moves, state = optimizer.update(jax.grad(error)(numbers, x, y), state)
        return jax.tree.map(lambda n, move: n - rate * move, numbers, moves), state

    for epoch in range(training.epochs):
        order = rng.permutation(len(fitted.x))
        for at in range(0, len(order) - training.batch + 1, training.batch):
            own = order[at : at + training.batch]
            numbers, state = update(numbers, state, np.float32(next(rates)), fitted.x[own], fitted.y[own])
        left = float(np.sqrt(error(numbers, held_out.x, held_out.y)))
        callback(epoch + 1, left)
        if left < least:
            best, least, since = numbers, left, itertools.count()
        elif next(since) >= training.patience:
            break
    return jax.tree.map(lambda x: np.asarray(x, np.float64) if eqx.is_inexact_array(x) else x, eqx.combine(best, rest))


def _run(net: Any, x: Float[Array, "samples inputs"]) -> Float[Array, " samples"]:
    """Output of a network along a sequence."""

    def now(h: Array, x: Array) -> tuple[Array, Array]:
        y, h = net(x, h)
        return h, y[0]

    start: Array = jnp.zeros(net.hidden, x.dtype)
    return jax.lax.scan(now, start, jnp.asarray(x))[1]


def _size(values: Float[np.ndarray, "..."]) -> float:
    """Root mean square; 1 if that is zero."""
    size = float(np.sqrt(np.nanmean(values**2)))
    return size if size > 0 else 1.0
