"""Augmented random search (Mania, Guy and Recht, 2018): finite differences of the return in random directions.

One iteration plays one episode with each of the policies `w + noise d` and `w - noise d` for random directions d of the
weights w, keeps the `best` directions by the better return of their two episodes, and steps along

    w + rate / (best std(R)) sum (R+ - R-) d

with the returns R of what was kept. Observations are normalized, and the policy is linear unless `hidden` says
otherwise. It needs no gradient of physics, no critic, and no noise on actions.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.policies.environment import Environment
from truesim.policies.episodes import Episode, StepOutcome
from truesim.policies.learners.base import EPSILON, LearnerOptions
from truesim.policies.networks import Normalizer


@dataclasses.dataclass(frozen=True)
class ArsOptions(LearnerOptions):
    """Options of augmented random search."""

    episodes: int = 256
    """Policies that are tried in an iteration, two for each direction."""
    horizon: int = 1000
    """Most control steps of an episode that count."""
    hidden: tuple[int, ...] = ()
    """Units of the hidden layers; none for a linear policy."""
    best: int = 32
    """Directions that are followed."""
    noise: float = 0.1
    """Standard deviation of the changes of the weights."""
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.episodes % 2:
            raise TruesimError(f"Random search tries policies in pairs; {self.episodes} episodes are odd.")
        if not 1 <= self.best <= self.episodes // 2:
            raise TruesimError(
                f"{self.best} of {self.episodes // 2} directions cannot be kept; give 1 or more of them."
            )
        if self.policy_network.is_recurrent:
            raise TruesimError(f"Random search trains policies without memory; {self.network} has one.")

    def make(self, environment: Environment) -> "Ars":
        """Random search on an environment."""
        return Ars(environment, self)


class ArsState(NamedTuple):
    """Everything that training continues from."""

    weights: Any
    normalizer: Normalizer
    episodes: Episode
    seed: Array
    """Of the initial states and directions of the next iteration."""
    steps: Array
    """Control steps so far."""


class Ars:
    """Augmented random search: `state = ars.start(seed)`, then `state, metrics = ars.iterate(state)`."""

    columns: tuple[str, ...] = ("deviation", "step_norm")

    def __init__(self, environment: Environment, options: ArsOptions):
        self.environment, self.options, self.network = environment, options, options.policy_network
        self.horizon = min(options.horizon, environment.task.steps)
        self.steps_per_iteration = options.episodes * self.horizon
        self._play = environment.compiled_play(self._returns)
        self._act = jax.jit(jax.vmap(lambda weights, x: self.network.step(weights, jnp.zeros(0), x)[1]))

    def start(self, seed: int) -> ArsState:
        """State before training, with zero weights in the last layer."""
        episodes, outcome = self.environment.reset(seed)
        size = outcome.observation.shape[-1]
        weights = self.network.make(np.random.default_rng(seed), size, self.environment.task.action_map.size, 0.0)
        seed_of_next, none = np.asarray(seed * 2**16, np.uint32), np.zeros((), np.int32)
        return ArsState(weights, Normalizer.identity(size), episodes, seed_of_next, none)

    def policy(self, state: ArsState) -> tuple[Any, Normalizer]:
        """Weights and normalizer of the policy."""
        return state.weights, state.normalizer

    def iterate(self, state: ArsState) -> tuple[ArsState, dict[str, Array]]:
        """One iteration: play all directions, then step along the best."""
        o, pairs = self.options, self.options.episodes // 2
        flat, unflatten = jax.flatten_util.ravel_pytree(state.weights)
        directions = np.random.default_rng(int(state.seed)).standard_normal((pairs, flat.size)).astype(np.float32)
        tried = flat[None] + o.noise * np.concatenate([directions, -directions])
        begun = self.environment.reset(int(state.seed))
        normalizer = state.normalizer if o.normalize else Normalizer.identity(begun[1].observation.shape[-1])
        episodes, returns, length, seen = self._play(jax.vmap(unflatten)(tried), normalizer, begun)
        returns = np.asarray(returns)
        plus, minus = returns[:pairs], returns[pairs:]
        kept = np.argsort(-np.maximum(plus, minus))[: o.best]
        deviation = np.std(np.concatenate([plus[kept], minus[kept]])) + EPSILON
        step = o.learning_rate / (o.best * deviation) * (plus - minus)[kept] @ directions[kept]
        after = ArsState(
            jax.tree.map(np.asarray, unflatten(flat + step)),
            jax.tree.map(np.asarray, seen) if o.normalize else state.normalizer,
            episodes,
            state.seed + np.uint32(1),
            state.steps + np.int32(self.steps_per_iteration),
        )
        total = float(np.sum(np.asarray(length)))
        metrics = {"ended": len(returns), "return": returns.sum(), "length": total, "reward": returns.sum() / total}
        ended = np.sum(np.asarray(length) < self.horizon)
        return after, metrics | {"terminated": ended, "deviation": deviation, "step_norm": np.linalg.norm(step)}

    def _returns(
        self, weights: Any, normalizer: Normalizer, begun: tuple[Episode, StepOutcome]
    ) -> tuple[Episode, Float[Array, " batch"], Float[Array, " batch"], Normalizer]:
        """Last episodes, return and length of the first episode of each policy, and a normalizer that has seen them."""

        def one(carry: Any, _: None) -> tuple[Any, Array]:
            episodes, outcome, total, length, alive = carry
            seen = outcome.observation
            episodes, outcome = self.environment.step(episodes, self._act(weights, normalizer(seen)))
            total, length = total + alive * outcome.reward, length + alive
            alive = jnp.where(outcome.terminated | outcome.truncated, 0.0, alive)
            return (episodes, outcome, total, length, alive), jnp.asarray(seen)

        episodes, outcome = begun
        zero = jnp.zeros(len(outcome.reward))
        carry = (episodes, outcome, zero, zero, zero + 1.0)
        carry, seen = self.environment.scan(one, carry, length=self.horizon)
        episodes, _, total, length, _ = carry
        return episodes, total, length, normalizer.updated(seen.reshape(-1, seen.shape[-1]))
