"""Learned actuators: networks in place of an actuator's law, trained on logs.

Such a network reads command, position and velocity of its actuator, now and at earlier times (`Lagged`), or remembers
what it needs (`GRU`), and gives the force. Labels are torques that were measured; without any, those that the motion
betrays: inverse dynamics of the positions, less what the model's other joint forces do.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from truesim import native
from truesim.actuators.forces import actuator_forces
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.data import Log, command_columns, motion, prepared
from truesim.dynamics import inverse_dynamics
from truesim.model.model import Model
from truesim.simulate import GRU, Blueprint, Lagged, Rule, Simulator, Trained

INPUTS = ("actuator.command", "actuator.length", "actuator.velocity")
"""What a learned actuator reads."""
NAME = "learned actuators"
CHUNK, BURN_IN = 96, 32
"""Samples of a sequence that is trained on, of which the first only fill the memory."""
HELD_OUT = 8
"""One sequence in so many decides when training ends."""
SAME_RATE = 0.02
"""Logs may be sampled at intervals that differ by less than this part."""


@dataclasses.dataclass(frozen=True)
class Training:
    """How a network is trained."""

    epochs: int = 16
    """Passes over all sequences, at most."""
    patience: int = 4
    """Passes without a better error on held-out sequences after which training ends."""
    batch: int = 32
    """Sequences of a step."""
    rate: float = 3e-3
    """Of Adam, falling to a hundredth along a cosine."""
    half_width: float = 0.0125
    """How far differentiation looks to each side, where labels come from the motion [s]."""
    seed: int = 0


class Sequences(NamedTuple):
    """Samples of all logs and actuators, cut into sequences."""

    x: Float[np.ndarray, "sequences samples inputs"]
    """In units of the inputs' typical sizes."""
    y: Float[np.ndarray, "sequences samples"]
    """Force of the actuator in units of its typical size."""


Watch = Callable[[int, float], None]
"""Called after every pass with its number and the root-mean-square error on held-out sequences [N m or N]."""


def learn_actuators(
    model: Model,
    logs: Sequence[Log],
    network: Lagged | GRU,
    *,
    torque: str | None = None,
    training: Training | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Networks in place of all actuators' laws, one for all of them.

    The model's own bounds of force stay in force: the network's output is clipped to the motor's envelope.

    Args:
        model: The robot; with measured torques only its joints and actuators count.
        logs: Recordings of it: `ctrl/`, `qpos/`, and torques if there are any.
        network: Its shape, with the time step of the logs as its `interval`.
        torque: Column of the measured torque with `*` for the actuator's name, such as `torque/*`; without it, labels
            come from the motion.
        training: How it is trained.
        watch: Called after every pass.
    """
    training = training or Training()
    interval = _interval(network, logs)
    parts = [_samples(model, prepared(log, model), torque, training.half_width) for log in logs]
    scales = {name: _size(np.concatenate([x[..., k].ravel() for x, _ in parts])) for k, name in enumerate(INPUTS)}
    size = _size(np.concatenate([y.ravel() for _, y in parts]))
    rule = Rule("actuator.force", INPUTS, network, mode="replace", scales=scales, size=size, name=NAME)
    with jax.enable_x64(True):
        learned = Blueprint((rule,)).build(Simulator.of(model, timestep=interval))
    sequences = _sequences(parts, np.array(list(scales.values())), size)
    say = watch or (lambda epoch, error: None)
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in whole numbers
        net = _trained(learned.networks[0].net, sequences, training, lambda k, e: say(k, size * e))
    with jax.enable_x64(True):
        learned = eqx.tree_at(lambda s: s.networks[0].net, learned, net)
        return Trained(Blueprint((rule,)), {NAME: np.asarray(learned.weights(0), float)})


def _interval(network: Lagged | GRU, logs: Sequence[Log]) -> float:
    """The time step of the logs, which must be the network's own."""
    if network.interval is None:
        raise TruesimError("A learned actuator stores its time step: give interval=… in seconds to its network.")
    for log in logs:
        step = float(np.median(np.diff(log.time)))
        if abs(step / network.interval - 1) > SAME_RATE:
            raise TruesimError(
                f"{log.name} is sampled every {step:g} s, the network is for steps of {network.interval:g} s: "
                "resample the log, or give the network this interval."
            )
    return network.interval


def _samples(
    model: Model, log: Log, torque: str | None, half_width: float
) -> tuple[Float[np.ndarray, "samples actuators inputs"], Float[np.ndarray, "samples actuators"]]:
    """Inputs and force of every actuator; NaN where the log does not show them."""
    moved = motion(log, model, half_width=half_width)
    command = np.stack([log.column(name) for name in command_columns(model)], axis=1)
    known = moved.complete & np.isfinite(command).all(axis=1)
    fill = [np.nan_to_num(x) for x in (moved.q, moved.v, moved.a, command)]

    def at(q: Array, v: Array, a: Array, u: Array) -> tuple[Array, Array, Array]:
        simulator = Simulator.of(model)
        plain = simulator.equation(u).applied(q, v) - actuator_forces(model, q, v, u).generalised
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


def _sequences(parts: Sequence[tuple[np.ndarray, np.ndarray]], scales: np.ndarray, size: float) -> Sequences:
    """Samples without a gap, cut into sequences that overlap by what fills the memory."""
    xs, ys = [], []
    for x, y in parts:
        for start in range(0, len(x) - CHUNK + 1, CHUNK - BURN_IN):
            piece = slice(start, start + CHUNK)
            if np.isfinite(y[piece]).all():
                xs += list((x[piece] / scales).transpose(1, 0, 2))
                ys += list((y[piece] / size).T)
    if len(xs) < 2 * HELD_OUT:
        raise TruesimError(f"The logs hold {len(xs)} sequences of {CHUNK} samples; at least {2 * HELD_OUT} are needed.")
    return Sequences(np.stack(xs).astype(np.float32), np.stack(ys).astype(np.float32))


def _trained(net: Any, data: Sequences, training: Training, watch: Watch) -> Any:
    """The network with the least error on held-out sequences, in single precision while it learns."""
    held = (np.arange(len(data.x)) // 4) % HELD_OUT == HELD_OUT - 1  # whole neighbourhoods, so that nothing leaks
    seen, unseen = Sequences(*(a[~held] for a in data)), Sequences(*(a[held] for a in data))
    net = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32) if eqx.is_inexact_array_like(x) else x, net)
    steps = training.epochs * max(1, len(seen.x) // training.batch)
    rates = iter(training.rate * (0.505 + 0.495 * np.cos(np.pi * np.arange(steps) / steps)))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())
    numbers, rest = eqx.partition(net, eqx.is_inexact_array)
    state, rng = optimiser.init(numbers), np.random.default_rng(training.seed)
    best, least, since = numbers, np.inf, itertools.count()

    @jax.jit
    def error(numbers: Any, x: Array, y: Array) -> Array:
        given = jax.vmap(lambda x: _run(eqx.combine(numbers, rest), x))(x)
        return jnp.mean((given - y)[:, BURN_IN:] ** 2)

    @jax.jit
    def update(numbers: Any, state: Any, rate: Array, x: Array, y: Array) -> tuple[Any, Any]:
        moves, state = optimiser.update(jax.grad(error)(numbers, x, y), state)
        return jax.tree.map(lambda n, move: n - rate * move, numbers, moves), state

    for epoch in range(training.epochs):
        order = rng.permutation(len(seen.x))
        for at in range(0, len(order) - training.batch + 1, training.batch):
            own = order[at : at + training.batch]
            numbers, state = update(numbers, state, np.float32(next(rates)), seen.x[own], seen.y[own])
        left = float(np.sqrt(error(numbers, unseen.x, unseen.y)))
        watch(epoch + 1, left)
        if left < least:
            best, least, since = numbers, left, itertools.count()
        elif next(since) >= training.patience:
            break
    return jax.tree.map(lambda x: np.asarray(x, np.float64) if eqx.is_inexact_array(x) else x, eqx.combine(best, rest))


def _run(net: Any, x: Float[Array, "samples inputs"]) -> Float[Array, "samples"]:
    """What a network gives along a sequence."""

    def now(h: Array, x: Array) -> tuple[Array, Array]:
        y, h = net(x, h)
        return h, y[0]

    return jax.lax.scan(now, jnp.zeros(net.hidden, x.dtype), x)[1]


def _size(values: Float[np.ndarray, "..."]) -> float:
    size = float(np.sqrt(np.nanmean(values**2)))
    return size if size > 0 else 1.0
