"""Measurements of a motion: the columns that a log of it would hold."""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP
from truesim.core.typing import Array, Float
from truesim.physics.model.model import Model
from truesim.physics.simulation.history import delayed
from truesim.physics.simulation.rollout import Trajectory
from truesim.physics.simulation.sensors import read_encoders
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State


def measure(
    model: Model, trajectory: Trajectory, *, length: int | None = None, simulator: Simulator | None = None
) -> Float[Array, "samples channels"]:
    """Every channel of `model.sensors` at every sample of a motion, with its scale, bias and delay.

    Delayed measurements are interpolated between samples; before the first sample they equal the first.

    Args:
        model: The robot.
        trajectory: From `record`.
        length: Number of samples that delays may look back into; without it, as many as the model's delays need.
        simulator: Simulator with networks that act on encoders, if there are any.
    """

    def encoders(q: Array, v: Array, command: Array) -> tuple[Array, Array]:
        tap = NO_TAP if simulator is None else simulator.tap(State(q, v, jnp.zeros(())), command)
        return read_encoders(model, q, v, tap)

    q, v = jax.vmap(encoders)(*map(jnp.asarray, (trajectory.q, trajectory.v, trajectory.command)))
    samples = len(trajectory.time)
    declared = [trajectory.sensors[sensor.name].reshape(samples, -1) for sensor in model.sensors.declared]
    present = jnp.concatenate([*declared, q, v], axis=1)
    length = _length(model, trajectory) if length is None else length
    return delayed(present, trajectory.time, model.sensors.delay, length) if length > 1 else present


def _length(model: Model, trajectory: Trajectory) -> int:
    """Number of samples within the longest delay, the present one included."""
    delay, time = model.sensors.delay, trajectory.time
    if isinstance(delay, jax.core.Tracer) or isinstance(time, jax.core.Tracer):
        raise TruesimError("Sensor delays are traced: give length, the number of samples that they may look back into.")
    longest, time = float(np.max(delay, initial=0.0)), np.asarray(time)
    first = np.searchsorted(time, time - longest, side="right") - 1  # the sample at or before the delayed time
    return int(np.max(np.arange(len(time)) - np.maximum(first, 0))) + 1 if longest > 0 else 1
