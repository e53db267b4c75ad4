"""Adaptation of a policy to a real system from a handful of episodes.

    policy = train_encoded(task, latent=2, bottleneck=1e-3)
    found = adapt(policy, real, method="bayesian", episodes=50)
    found.policy.save(folder)

The policy decides what is searched: the latent of Peng et al. 2020 (`train_encoded` with a bottleneck), the projection
of projected universal policies (without one), or the told parameters of a universal policy, which is strategy
optimization (SO-CMA with the method `cma-es`). The incumbent is always one that was played again.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.policies.adaptation.parameter_search import Adapted, AdaptOptions, search_parameters


class SearchablePolicy(Protocol):
    """A policy with a vector that can be searched, such as a `ConditionedPolicy`."""

    @property
    def low(self) -> Any:
        """Smallest value of each element."""

    @property
    def high(self) -> Any:
        """Largest value."""

    @property
    def nominal(self) -> Any:
        """Vector to start from."""

    def conditioned(self, condition: Any) -> Any:
        """Policy for one value of the vector."""


class AdaptedPolicy(NamedTuple):
    """Result of an adaptation."""

    policy: Any
    """The policy for the found vector; a `TrainedPolicy` of a `ConditionedPolicy`, which can be saved."""
    search: Adapted
    """The vector, its confirmed return, and every real episode."""

    @property
    def gained(self) -> float:
        """Confirmed return less that of the start."""
        return self.search.value - self.search.started


class RealSystem(Protocol):
    """A robot as an environment, such as a `RealEnv`: any `gymnasium.Env`."""

    def reset(self) -> tuple[Any, Any]:
        """Begin an episode."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        """Send an action."""


def play_real(real: RealSystem, policy: Any) -> float:
    """Return of one episode of a policy on a real system; policies with a memory are reset first."""
    if hasattr(policy, "reset"):
        policy.reset()
    observation, _ = real.reset()
    total = 0.0
    while True:
        observation, reward, terminated, truncated, _ = real.step(policy.act(observation))
        total += float(reward)
        if terminated or truncated:
            return total


def adapt(
    policy: SearchablePolicy,
    real: RealSystem | Callable[[Any], float],
    *,
    method: str = "bayesian",
    episodes: int = 50,
    start: Float[np.ndarray, " size"] | None = None,
    options: AdaptOptions | None = None,
) -> AdaptedPolicy:
    """Adapt a policy by real episodes.

    Args:
        policy: The policy.
        real: The robot as an environment, such as a `RealEnv`; or a function that plays one real episode of an
            ordinary policy, and returns its return.
        method: `awr`, `cma-es`, `bayesian`, `hill-climbing`, or `random`, the control.
        episodes: Real episodes: of the start, of candidates, and of those that are played again.
        start: Vector to start from, such as that of identified parameters; that of the nominal robot by default.
        options: Further choices; method and episodes above take precedence.
    """
    _check_arguments(policy, real)
    options = dataclasses.replace(options or AdaptOptions(), method=method, episodes=episodes)
    start = policy.nominal if start is None else _within(policy, start)
    episode = real if callable(real) else lambda fixed: play_real(real, fixed)
    found = search_parameters(lambda c: episode(policy.conditioned(c)), start, policy.low, policy.high, options)
    return AdaptedPolicy(policy.conditioned(found.parameters), found)


def _check_arguments(policy: Any, real: Any) -> None:
    """Refuse policies that take no vector, and what is no robot."""
    missing = [name for name in ("low", "high", "nominal", "conditioned") if not hasattr(policy, name)]
    if missing:
        raise TruesimError(
            f"A {type(policy).__name__} has no vector to search (no {missing[0]!r}); train one that takes a vector "
            "with train_universal or train_encoded, or search parameters of your own with search_parameters."
        )
    if isinstance(real, type) or not (callable(real) or (hasattr(real, "reset") and hasattr(real, "step"))):
        what = f"the class {real.__name__}" if isinstance(real, type) else repr(real)
        raise TruesimError(
            f"The real system is {what}; give an environment with reset and step, such as RealEnv(...) or "
            "make_stand_in(task, 'R1'), or a function that plays one episode of a policy and returns its return."
        )


def _within(policy: SearchablePolicy, start: Any) -> Float[np.ndarray, " size"]:
    """A start, clipped to the box of a policy."""
    low, start = np.asarray(policy.low, float), np.asarray(start, float)
    if start.shape != low.shape:
        raise TruesimError(f"The start has shape {start.shape}; this policy takes a vector of shape {low.shape}.")
    return np.clip(start, low, policy.high)
