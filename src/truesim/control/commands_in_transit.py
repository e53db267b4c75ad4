"""Commands that were sent but have not reached the actuators: where the robot will be when the next one acts.

If all actuators have the same delay, what a controller sends now acts on the state one delay ahead, and that state
follows from the commands already sent. A plan from there needs no past commands among its states.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.physics.simulation import Simulator, State

WHOLE_STEP = 1e-9
"""Part of a time step by which a delay may exceed whole steps without taking another one."""


def common_delay(simulator: Simulator) -> float | None:
    """Delay of all actuators [s]; None if they differ."""
    delay = np.asarray(simulator.model.actuators.delay)
    if not simulator.history:
        return 0.0
    return float(delay[0]) if len(delay) and np.all(delay == delay[0]) else None


def without_delay(simulator: Simulator) -> Simulator:
    """The same simulator with commands that act at once."""
    return dataclasses.replace(simulator.replace({"actuators/*.delay": 0.0}), history=0)


class CommandsInTransit:
    """Latest commands and the times at which they were sent; before the first one it is held."""

    def __init__(self, delay: float, timestep: float, start: State, nu: int):
        """Begin with the commands that the history of a state holds; zero if it has none.

        Args:
            delay: Of all actuators [s].
            timestep: Longest step of the prediction [s].
            start: Initial state.
            nu: Number of actuators.
        """
        self.delay = delay
        self.steps = int(np.ceil(delay / timestep - WHOLE_STEP))
        """Steps of the prediction."""
        self.timestep = delay / self.steps
        """Their length [s]."""
        past = start.history
        self._values = np.zeros((1, nu)) if past is None else np.array(past.values, float)
        self._times = np.zeros(1) if past is None else np.array(past.time, float)

    def send(self, command: Float[np.ndarray, " nu"], now: float) -> None:
        """Keep a command that is sent now, and forget those that no prediction needs."""
        kept = np.append(self._times[1:], now) > now - self.delay
        self._values = np.concatenate([self._values[kept], command[None]])
        self._times = np.append(self._times[kept], now)

    def acting(self, now: float) -> Float[np.ndarray, "steps nu"]:
        """Mean command that acts in each step of the time from now until a command sent now would."""
        starts = now - self.delay + self.timestep * np.arange(self.steps)[:, None]
        since, until = np.append(-np.inf, self._times[1:]), np.append(self._times[1:], np.inf)
        overlap = np.minimum(until, starts + self.timestep) - np.maximum(since, starts)
        return np.clip(overlap, 0.0, None) / self.timestep @ self._values
