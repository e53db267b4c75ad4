"""Closed loops: a controller on a plant, such as a simulator, MuJoCo, an environment or a machine."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np

from truesim.core.precision import float64
from truesim.core.typing import Float
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.kernels import compile  # noqa: A004

PlantState = tuple[Float[np.ndarray, " nq"], Float[np.ndarray, " nv"], float]
"""Configuration, velocity and time [s]."""
Feedback = Callable[[np.ndarray, np.ndarray, float], np.ndarray]
"""From configuration, velocity and time to a command, such as a `PredictiveController`."""


class Plant(Protocol):
    """Something to control: it tells its state, and holds a command until the next one."""

    def observe(self) -> PlantState:
        """Present state."""

    def apply(self, command: Float[np.ndarray, " nu"]) -> None:
        """Hold a command for one period of the loop."""


class ClosedLoop(NamedTuple):
    """Recorded closed loop: states before each command, and the last one."""

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples nq"]
    v: Float[np.ndarray, "samples nv"]
    commands: Float[np.ndarray, "steps nu"]


def run_closed_loop(controller: Feedback, plant: Plant, steps: int) -> ClosedLoop:
    """Control a plant for some periods, and record it.

    Args:
        controller: From a state to a command.
        plant: The plant.
        steps: Number of periods.
    """
    states, commands = [plant.observe()], []
    for _ in range(steps):
        commands.append(np.array(controller(*states[-1]), float))
        plant.apply(commands[-1])
        states.append(plant.observe())
    q, v, time = (np.array(x) for x in zip(*states, strict=True))
    return ClosedLoop(time, q, v, np.array(commands))


class SimulatedPlant:
    """A simulator as a plant, with actuator delays and everything else that it has."""

    def __init__(self, simulator: Simulator, state: State | None = None, *, substeps: int = 1):
        """Start at a state.

        Args:
            simulator: The simulator.
            state: Initial state; the file's by default.
            substeps: Time steps of one period.
        """
        with float64():
            self.state = simulator.initial_state() if state is None else state

            def period(state: State, command: np.ndarray) -> State:
                for _ in range(substeps):
                    state, _ = simulator.step(state, command)
                return state

            self._period = compile(period, self.state, np.zeros(simulator.model.nu))
            self.state = simulator.started(self.state, jnp.zeros(simulator.model.nu))

    def observe(self) -> PlantState:
        """Present state."""
        return np.asarray(self.state.q), np.asarray(self.state.v), float(self.state.time)

    def apply(self, command: Float[np.ndarray, " nu"]) -> None:
        """Simulate one period."""
        self.state = self._period(self.state, np.asarray(command, float))
