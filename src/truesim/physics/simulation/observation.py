"""Samples of a motion that is known: measurements of sensors, and forces by inverse dynamics."""

import jax
import jax.numpy as jnp

from truesim.core.results import RESULTS
from truesim.core.typing import Array
from truesim.physics.dynamics import inverse_dynamics
from truesim.physics.simulation.backend import call_native
from truesim.physics.simulation.equation_of_motion import Constants
from truesim.physics.simulation.sensors import read_sensors
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State
from truesim.physics.simulation.step_info import StepInfo


def observe(
    simulator: Simulator, motion: tuple, time: Array, commands: Array, diagnostics: bool
) -> tuple[tuple, StepInfo | None]:
    """Samples (time, q, v, command, sensors) of a motion, and diagnostics of its steps if they are asked for.

    Args:
        simulator: The simulator.
        motion: Configurations (samples, nq), velocities (samples + 1, nv) and accelerations at the samples.
        time: Time of each sample [s].
        commands: Command from each sample on.
        diagnostics: Whether forces are needed; without them and without sensors, nothing is compiled.
    """
    if not diagnostics and not simulator.model.sensors.declared:
        q, v, _ = motion
        return (time, q, v[:-1], commands, {}), None
    samples = _observed if diagnostics else _sensed
    return call_native(samples, (simulator, motion, time, commands), identity=samples)


def _observed(simulator: Simulator, motion: tuple, time: Array, commands: Array) -> tuple[tuple, StepInfo]:
    """Samples of a known motion, and diagnostics of its steps: forces follow from inverse dynamics."""
    q, v, solved = motion
    model, constants, none = simulator.model, Constants(None, None, None), jnp.zeros((), jnp.int32)

    def one(_: None, x: tuple) -> tuple[None, tuple]:
        q, v, after, solved, time, command = x
        a = (after - v) / simulator.timestep
        applied = simulator.equation(command, constants).applied(q, v)
        sensors = read_sensors(simulator, State(q, v, time), command, constants, solved)
        result = RESULTS.where(jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(a)), RESULTS.ok, RESULTS.not_finite)
        info = StepInfo(a, applied, inverse_dynamics(model, q, v, a) - applied, none, None, result)
        return None, ((time, q, v, command, sensors), info)

    _, (samples, info) = jax.lax.scan(one, None, (q, v[:-1], v[1:], solved, time, commands))
    return samples, jax.tree.map(lambda x: x[:-1], info)


def _sensed(simulator: Simulator, motion: tuple, time: Array, commands: Array) -> tuple[tuple, None]:
    """Samples of a known motion, as `_observed` returns them."""
    q, v, solved = motion
    constants = Constants(None, None, None)

    def one(_: None, x: tuple) -> tuple[None, tuple]:
        q, v, solved, time, command = x
        return None, (time, q, v, command, read_sensors(simulator, State(q, v, time), command, constants, solved))

    return jax.lax.scan(one, None, (q, v[:-1], solved, time, commands))[1], None
