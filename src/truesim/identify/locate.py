"""Where the robot is: configurations from sensors that see its bodies, for logs that do not hold joint positions.

At every sample the configuration is the least-squares solution of the readings of positions and orientations. Logs are
cut into pieces that are followed side by side, each sample starting from the one before; the first sample of a piece is
searched from several starts.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.data import Log, prepared, sensor_columns, unwrapped
from truesim.data.columns import joint_position_columns
from truesim.data.prepare import POSITION_SENSORS
from truesim.dynamics import difference, integrate, reference_configuration
from truesim.identify.channels import Channel, known_channels, residual
from truesim.model.kinds import HINGE
from truesim.model.model import Model
from truesim.model.sensors import VELOCITY
from truesim.numerics.dense import solve
from truesim.simulate import Simulator, State

PLACES = frozenset({"framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "actuatorpos"})
"""Kinds of sensors that show where the robot is, however it moves."""
PIECE = 50
"""Samples that are followed one after the other."""
STARTS, ITERATIONS = 16, 6
"""Starts of a search, and iterations from one sample to the next."""
FAINT = 1e-6
"""Pull towards the robot's reference, over that of the readings: coordinates that no reading shows stay there."""
DAMPING = 1e-3
"""Damping of the first step, over the readings' own pull."""
AS_GOOD = 1.5
"""Solutions with residuals that differ by less than this factor count as equally good."""


def located(logs: Sequence[Log], model: Model) -> list[Log]:
    """Logs with positions and velocities of joints that they lack, as far as sensors show them.

    Added columns count as derived: a start for a fit, never compared. A log that lacks none comes back as it is.

    Args:
        logs: From `prepared`.
        model: The robot.
    """
    followers: dict[tuple[Channel, ...], native.Kernel] = {}
    out = []
    for log in logs:
        hidden, channels = unmeasured(log, model), _places(log, model)
        if hidden and any(channel.kind == "sensor" for channel in channels):
            if channels not in followers:
                followers[channels] = _follower(model, channels)
            q = _configurations(model, followers[channels], channels, log)
            out.append(_with_positions(log, model, hidden, q))
        else:
            out.append(log)
    return out


def unmeasured(log: Log, model: Model) -> list[int]:
    """Joints whose positions the log does not hold as measurements."""
    held = {name for name in log.columns if name not in log.derived and np.isfinite(log.columns[name]).any()}
    encoders = {
        sensor.object
        for sensor in model.sensors.declared
        if sensor.kind in POSITION_SENSORS and held.issuperset(sensor_columns(sensor))
    }
    joints = range(len(model.joints.names))
    return [j for j in joints if j not in encoders and not held.issuperset(joint_position_columns(model, j))]


def _with_positions(log: Log, model: Model, joints: Sequence[int], q: Float[np.ndarray, "samples nq"]) -> Log:
    columns = dict(log.columns)
    links = {link.joint: link for link in model.topology.links if link.joint >= 0}
    for joint in joints:
        values = q[:, links[joint].q]
        if model.joints.kinds[joint] == HINGE:
            values = unwrapped(values[:, 0])[:, None]
        columns.update(zip(joint_position_columns(model, joint), values.T, strict=True))
    added = frozenset(columns) - frozenset(log.columns)
    return prepared(dataclasses.replace(log, columns=columns, derived=log.derived | added), model)


def _configurations(
    model: Model, follow: native.Kernel, channels: Sequence[Channel], log: Log
) -> Float[np.ndarray, "samples nq"]:
    """The configuration that explains each sample's readings best; NaN before the first and after the last."""
    readings = log.interpolated([name for channel in channels for name in channel.columns], log.time)
    seen = np.isfinite(readings).all(axis=1)
    q = np.full((len(log.time), model.nq), np.nan)
    if not seen.any():
        return q
    readings = readings[seen]
    at = np.minimum(np.arange(-(-len(readings) // PIECE) * PIECE), len(readings) - 1).reshape(-1, PIECE)
    starts = _starts(model)
    still = np.repeat(readings[at[:, :1]], PIECE, axis=1)  # searching is following a robot that stands
    found, left = follow(np.tile(starts, (len(at), 1)), np.repeat(still, STARTS, axis=0))
    first = _chosen(found[:, -1].reshape(len(at), STARTS, -1), left[:, -1].reshape(len(at), STARTS))
    q[seen] = follow(first, readings[at])[0].reshape(-1, model.nq)[: len(readings)]
    return q


def _places(log: Log, model: Model) -> tuple[Channel, ...]:
    """Channels of the log that show where the robot is."""
    kinds = {f"sensor/{sensor.name}": sensor.kind for sensor in model.sensors.declared}
    held = {name for name in log.columns if name not in log.derived and np.isfinite(log.columns[name]).any()}
    wanted = [c for c in known_channels(model) if c.kind == "qpos" or kinds.get(c.name) in PLACES]
    return tuple(part for channel in wanted if (part := channel.within(held)) is not None)


def _follower(model: Model, channels: Sequence[Channel]) -> native.Kernel:
    """From a start and the readings of a piece to its configurations, and the sums of squares that are left."""
    simulator = Simulator.of(model)
    reference = np.asarray(reference_configuration(model), float)

    def apart(q: Array, readings: Array) -> Array:
        state = State(q, jnp.zeros(model.nv), jnp.zeros(()))
        return residual(channels, simulator, None, state, jnp.zeros(model.nu), readings)

    def improved(q: Array, damping: Array, readings: Array) -> tuple[Array, Array]:
        """One step of Levenberg-Marquardt, taken if it leads downhill."""
        r = apart(q, readings)
        J = jax.jacfwd(lambda dq: apart(integrate(model, q, dq), readings))(jnp.zeros(model.nv))
        scale = jnp.sum(J**2)
        H = J.T @ J + (FAINT + damping) * scale * jnp.eye(model.nv)
        pull = FAINT * scale * difference(model, q, jnp.asarray(reference))
        trial = integrate(model, q, -solve(H, J.T @ r + pull))
        better = jnp.sum(apart(trial, readings) ** 2) <= jnp.sum(r**2) * (1 + FAINT)
        return jnp.where(better, trial, q), jnp.where(better, damping / 4, damping * 4)

    def follow(q: Array, readings: Array) -> tuple[Array, Array]:
        def now(carry: tuple[Array, Array], sample: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            carry = jax.lax.fori_loop(0, ITERATIONS, lambda _, at: improved(at[0], at[1], sample), carry)
            return carry, (carry[0], jnp.sum(apart(carry[0], sample) ** 2))

        return jax.lax.scan(now, (q, jnp.full((), DAMPING)), readings)[1]

    columns = sum(len(channel.columns) for channel in channels)
    with jax.enable_x64(True):
        return native.compile(follow, reference, np.zeros((PIECE, columns)))


def _starts(model: Model) -> Float[np.ndarray, "starts nq"]:
    """The reference, and turns away from it at random."""
    units = [unit for kind in model.joints.kinds for unit in VELOCITY[kind].values()]
    turns = np.array([unit == "rad/s" for unit in units])
    moves = np.random.default_rng(0).uniform(-np.pi, np.pi, (STARTS, model.nv)) * turns
    moves[0] = 0.0
    with jax.enable_x64(True):
        reference = jnp.asarray(reference_configuration(model), float)
        return np.asarray(jax.vmap(lambda dq: integrate(model, reference, dq))(jnp.asarray(moves)))


def _chosen(found: Float[np.ndarray, "pieces starts nq"], left: Float[np.ndarray, "pieces starts"]) -> np.ndarray:
    """The best solution of every piece; of equally good ones, that nearest to the piece before."""
    best = np.nanmin(left, axis=1, keepdims=True)
    good = left <= best * AS_GOOD**2 + 1e-12
    chosen = [found[0, int(np.nanargmin(left[0]))]]
    for candidates, usable in zip(found[1:], good[1:], strict=True):
        far = np.abs(np.sin((candidates - chosen[-1]) / 2)).max(axis=1)
        chosen.append(candidates[int(np.argmin(np.where(usable, far, np.inf)))])
    return np.stack(chosen)
