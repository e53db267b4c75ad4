"""A robot as an environment in the place of the real system of a comparison."""

from collections.abc import Callable
from typing import Any

import numpy as np

from truesim.core.typing import Float
from truesim.policies.adaptation.adapt import play_real
from truesim.policies.adaptation.online import OnlinePolicy

HELD_OUT_SEED = 2**20
"""Seed of the first episode of an evaluation; those of adaptations follow from zero."""


class EnvBench:
    """A `RealBench` on environments of gymnasium, one for episodes that count and one for evaluations."""

    def __init__(self, make: Callable[[], Any], evaluated: int = 10, seed: int = 0):
        """Make both environments.

        Args:
            make: Makes an environment, such as a `RealEnv`.
            evaluated: Episodes of an evaluation, which are always the same.
            seed: Seed of the episodes that count.
        """
        self._real, self._held_out, self._evaluated = make(), make(), evaluated
        self._seed, self.played = seed, 0

    def episode(self, policy: Any) -> float:
        """Return of one episode, which counts."""
        self.played += 1
        seed = int(np.random.SeedSequence([self._seed, self.played]).generate_state(1)[0] % HELD_OUT_SEED)
        return play_real(_Seeded(self._real, seed), policy)

    def evaluate(self, policy: Any) -> Float[np.ndarray, " episodes"]:
        """Returns of an evaluation, which does not count."""
        acting = policy.runner() if isinstance(policy, OnlinePolicy) else policy
        seeds = range(HELD_OUT_SEED, HELD_OUT_SEED + self._evaluated)
        return np.array([play_real(_Seeded(self._held_out, seed), acting) for seed in seeds])

    def close(self) -> None:
        """Close both environments."""
        self._real.close()
        self._held_out.close()


class _Seeded:
    """An environment whose next episode has a seed."""

    def __init__(self, env: Any, seed: int):
        self._env, self._seed = env, seed
        self.step = env.step

    def reset(self) -> tuple[Any, Any]:
        return self._env.reset(seed=self._seed)
