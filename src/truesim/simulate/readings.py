"""What the sensors of a robot say about a motion: what its log would hold."""

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.tap import NO_TAP
from truesim.core.typing import Array, Float
from truesim.model.model import Model
from truesim.simulate.history import delayed
from truesim.simulate.rollout import Trajectory
from truesim.simulate.sensors import read_encoders
from truesim.simulate.simulator import Simulator
from truesim.simulate.state import State


def readings(
    model: Model, trajectory: Trajectory, *, length: int | None = None, simulator: Simulator | None = None
) -> Float[Array, "samples channels"]:
    """Every channel of `model.sensors` at every sample of a motion, with its scale, bias and delay.

    Between samples a delayed reading is interpolated; before the first one it is the first.

    Args:
        model: The robot.
        trajectory: From `record`.
        length: Number of samples that delays may look back into; without it, as many as the model's delays need.
        simulator: Whose networks act on encoders, if they do.
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
        raise TruesimError("Delays that are traced need room that is known beforehand: give the length in samples.")
    longest, time = float(np.max(delay, initial=0.0)), np.asarray(time)
    first = np.searchsorted(time, time - longest, side="right") - 1  # the sample at or before the delayed time
    return int(np.max(np.arange(len(time)) - np.maximum(first, 0))) + 1 if longest > 0 else 1
