"""Environments of gymnasium as plants of a closed loop."""

from collections.abc import Callable
from typing import Any

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float

EnvironmentState = Callable[[Any], tuple[np.ndarray, np.ndarray]]
"""From an observation to configuration and velocity."""


class GymnasiumPlant:
    """Any `gymnasium.Env` as a plant. Rewards add up; the plant stays where an episode has ended."""

    def __init__(
        self,
        env: Any,
        state_of: EnvironmentState,
        *,
        period: float,
        action_of: Callable[[np.ndarray], Any] = np.asarray,
        seed: int | None = None,
    ):
        """Reset the environment.

        Args:
            env: The environment.
            state_of: From an observation to configuration and velocity.
            period: Time of one step of the environment [s].
            action_of: From a command to an action, such as a sign to 0 or 1.
            seed: Seed of the reset.
        """
        if not period > 0:
            raise TruesimError(f"The period of the environment is {period:g} s; it must be positive.")
        self.env, self.reward, self.steps, self.ended = env, 0.0, 0, False
        self._state_of, self._action_of, self._period = state_of, action_of, period
        self._observation, _ = env.reset(seed=seed)

    def observe(self) -> tuple[Float[np.ndarray, " nq"], Float[np.ndarray, " nv"], float]:
        """Present state, and time since the reset."""
        q, v = self._state_of(self._observation)
        return np.asarray(q, float), np.asarray(v, float), self.steps * self._period

    def apply(self, command: Float[np.ndarray, " nu"]) -> None:
        """One step of the environment."""
        self.steps += 1
        if self.ended:
            return
        self._observation, reward, terminated, truncated, _ = self.env.step(self._action_of(command))
        self.reward += float(reward)
        self.ended = bool(terminated or truncated)
