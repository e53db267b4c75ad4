"""Joint positions from sensors of body positions and orientations, for logs without joint positions.

The configuration at each sample is a least-squares fit to the measured positions and orientations. Logs are cut into
pieces that are tracked in one batch. Within a piece, each sample starts from the one before; the first sample is solved
from several starts.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Float
from truesim.files.logs import Log, prepare, unwrap
from truesim.files.logs.cleaning import POSITION_SENSORS
from truesim.identification.problem.channels import Channel, known_channels, residual
from truesim.math.dense import solve
from truesim.physics.dynamics import difference, integrate, reference_configuration
from truesim.physics.model.columns import joint_position_columns, sensor_columns
from truesim.physics.model.kinds import HINGE
from truesim.physics.model.model import Model
from truesim.physics.model.sensors import VELOCITY_COMPONENTS
from truesim.physics.simulation import Simulator, State

LOCATING_SENSORS = frozenset({"framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "actuatorpos"})
"""Kinds of sensors that depend on the configuration alone."""
TRACKED_SAMPLES = 50
"""Samples of a piece. Larger solves from several starts less often, and runs fewer pieces in parallel."""
POSE_STARTS = 16
"""Starts for the first sample of a piece. Larger misses the best solution less often, and is slower."""
POSE_ITERATIONS = 6
"""Levenberg-Marquardt iterations for each sample. Larger is more accurate and slower."""
REFERENCE_WEIGHT = 1e-6
"""Weight of the reference configuration relative to the measurements. Larger holds unmeasured coordinates more
firmly at the reference, and biases the others."""
INITIAL_POSE_DAMPING = 1e-3
"""Initial damping relative to the squared norm of the Jacobian. Larger makes the first step shorter."""
EQUIVALENT_RESIDUALS = 1.5
"""Ratio of residuals up to which solutions are considered equally good. Larger prefers continuity over residuals."""


def locate(logs: Sequence[Log], model: Model) -> list[Log]:
    """Add positions and velocities of unmeasured joints to logs, where sensors of bodies determine them.

    Added columns are marked as derived: they are an initial guess and are not compared with the simulator. A log
    without unmeasured joints is returned unchanged.

    Args:
        logs: Logs from `prepare`.
        model: The model of the robot.
    """
    trackers: dict[tuple[Channel, ...], native.Kernel] = {}
    out = []
    for log in logs:
        joints, channels = unmeasured(log, model), _pose_channels(log, model)
        if joints and any(channel.kind == "sensor" for channel in channels):
            if channels not in trackers:
                trackers[channels] = _compile_tracker(model, channels)
            q = _configurations(model, trackers[channels], channels, log)
            out.append(_with_positions(log, model, joints, q))
        else:
            out.append(log)
    return out


def unmeasured(log: Log, model: Model) -> list[int]:
    """Joints whose positions the log does not measure."""
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
            values = unwrap(values[:, 0])[:, None]
        columns.update(zip(joint_position_columns(model, joint), values.T, strict=True))
    added = frozenset(columns) - frozenset(log.columns)
    return prepare(dataclasses.replace(log, columns=columns, derived=log.derived | added), model)


def _configurations(
    model: Model, track: native.Kernel, channels: Sequence[Channel], log: Log
) -> Float[np.ndarray, "samples nq"]:
    """Configuration at each sample; NaN where measurements are missing."""
    measured = log.interpolate([name for channel in channels for name in channel.columns], log.time)
    complete = np.isfinite(measured).all(axis=1)
    q = np.full((len(log.time), model.nq), np.nan)
    if not complete.any():
        return q
    measured = measured[complete]
    at = np.minimum(np.arange(-(-len(measured) // TRACKED_SAMPLES) * TRACKED_SAMPLES), len(measured) - 1).reshape(
        -1, TRACKED_SAMPLES
    )
    starts = _starts(model)
    repeated = np.repeat(measured[at[:, :1]], TRACKED_SAMPLES, axis=1)  # more iterations on the first sample
    found, costs = track(np.tile(starts, (len(at), 1)), np.repeat(repeated, POSE_STARTS, axis=0))
    first = _choose(found[:, -1].reshape(len(at), POSE_STARTS, -1), costs[:, -1].reshape(len(at), POSE_STARTS))
    q[complete] = track(first, measured[at])[0].reshape(-1, model.nq)[: len(measured)]
    return q


def _pose_channels(log: Log, model: Model) -> tuple[Channel, ...]:
    """Channels of the log that depend on the configuration alone."""
    kinds = {f"sensor/{sensor.name}": sensor.kind for sensor in model.sensors.declared}
    held = {name for name in log.columns if name not in log.derived and np.isfinite(log.columns[name]).any()}
    wanted = [c for c in known_channels(model) if c.kind == "qpos" or kinds.get(c.name) in LOCATING_SENSORS]
    return tuple(part for channel in wanted if (part := channel.restrict(held)) is not None)


def _compile_tracker(model: Model, channels: Sequence[Channel]) -> native.Kernel:
    """Compile a kernel from an initial guess and the measurements of a piece to its configurations and costs."""
    simulator = Simulator.of(model)
    reference = np.asarray(reference_configuration(model), float)

    def residuals(q: Array, measured: Array) -> Array:
        state = State(q, jnp.zeros(model.nv), jnp.zeros(()))
        return residual(channels, simulator, None, state, jnp.zeros(model.nu), measured)

    def iterate(q: Array, damping: Array, measured: Array) -> tuple[Array, Array]:
        """One Levenberg-Marquardt step, accepted if it does not increase the cost."""
        r = residuals(q, measured)
        J = jax.jacfwd(lambda dq: residuals(integrate(model, q, dq), measured))(jnp.zeros(model.nv))
        scale = jnp.sum(J**2)
        H = J.T @ J + (REFERENCE_WEIGHT + damping) * scale * jnp.eye(model.nv)
        prior = REFERENCE_WEIGHT * scale * difference(model, q, jnp.asarray(reference))
        trial = integrate(model, q, -solve(H, J.T @ r + prior))
        accepted = jnp.sum(residuals(trial, measured) ** 2) <= jnp.sum(r**2) * (1 + REFERENCE_WEIGHT)
        return jnp.where(accepted, trial, q), jnp.where(accepted, damping / 4, damping * 4)

    def track(q: Array, measured: Array) -> tuple[Array, Array]:
        def advance(carry: tuple[Array, Array], sample: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            carry = jax.lax.fori_loop(0, POSE_ITERATIONS, lambda _, at: iterate(at[0], at[1], sample), carry)
            return carry, (carry[0], jnp.sum(residuals(carry[0], sample) ** 2))

        start: tuple[Array, Array] = (q, jnp.full((), INITIAL_POSE_DAMPING))
        return jax.lax.scan(advance, start, jnp.asarray(measured))[1]

    columns = sum(len(channel.columns) for channel in channels)
    structure = native.KernelStructure("configurations from sensors", (simulator, tuple(channels)), (0.0, 0.0))
    with jax.enable_x64(True):
        return native.compile(track, reference, np.zeros((TRACKED_SAMPLES, columns)), structure=structure)


def _starts(model: Model) -> Float[np.ndarray, "starts nq"]:
    """The reference configuration, and random rotations of its joints."""
    units = [unit for kind in model.joints.kinds for unit in VELOCITY_COMPONENTS[kind].values()]
    rotational = np.array([unit == "rad/s" for unit in units])
    moves = np.random.default_rng(0).uniform(-np.pi, np.pi, (POSE_STARTS, model.nv)) * rotational
    moves[0] = 0.0
    with jax.enable_x64(True):
        reference = jnp.asarray(reference_configuration(model), float)
        return np.asarray(jax.vmap(lambda dq: integrate(model, reference, dq))(jnp.asarray(moves)))


def _choose(found: Float[np.ndarray, "pieces starts nq"], costs: Float[np.ndarray, "pieces starts"]) -> np.ndarray:
    """Best solution of each piece; among equally good ones, the closest to that of the piece before."""
    best = np.nanmin(costs, axis=1, keepdims=True)
    good = costs <= best * EQUIVALENT_RESIDUALS**2 + 1e-12
    chosen = [found[0, int(np.nanargmin(costs[0]))]]
    for candidates, usable in zip(found[1:], good[1:], strict=True):
        distance = np.abs(np.sin((candidates - chosen[-1]) / 2)).max(axis=1)
        chosen.append(candidates[int(np.argmin(np.where(usable, distance, np.inf)))])
    return np.stack(chosen)
