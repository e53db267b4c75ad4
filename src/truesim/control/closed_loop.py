"""Closed loops: a controller on a plant, such as a simulator, MuJoCo, an environment or a machine."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np

from truesim.control.commands_in_transit import without_delay
from truesim.core.precision import float64
from truesim.core.typing import Float
from truesim.physics.simulation import Simulator, State, StepRoutine
from truesim.physics.simulation.kernels import compile  # noqa: A004
from truesim.physics.simulation.step_routine import differentiable_routine

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

            self._period = _period_of(simulator, self.state, substeps)
            self.state = simulator.started(self.state, jnp.zeros(simulator.model.nu))

    def observe(self) -> PlantState:
        """Present state."""
        return np.asarray(self.state.q), np.asarray(self.state.v), float(self.state.time)

    def apply(self, command: Float[np.ndarray, " nu"]) -> None:
        """Simulate one period."""
        self.state = self._period(self.state, np.asarray(command, float))


def _period_of(simulator: Simulator, state: State, substeps: int) -> Callable[[State, np.ndarray], State]:
    """State after one period in which a command is held; with the file's contact, by its routines."""
    if simulator.constraint_contact is not None:
        routine = differentiable_routine(without_delay(simulator))
        if routine is not None:
            return _routine_period(simulator, routine, substeps)

    def period(state: State, command: np.ndarray) -> State:
        for _ in range(substeps):
            state, _ = simulator.step(state, command)
        return state

    return compile(period, state, np.zeros(simulator.model.nu))


def _routine_period(simulator: Simulator, routine: StepRoutine, substeps: int) -> Callable[[State, np.ndarray], State]:
    def period(state: State, command: np.ndarray) -> State:
        with float64():
            for _ in range(substeps):
                arrived, history = simulator.delayed(state, jnp.asarray(command))
                state = dataclasses.replace(routine.rollout(state, arrived[None])[0], history=history)
        return state

    return period
