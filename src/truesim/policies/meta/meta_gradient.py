"""Meta-learning by policy gradients: parameters from which one update with few episodes adapts to a new task.

One update of `theta` (Finn et al. 2017), for each of several tasks i:

    D_i  = episodes of pi(theta) in task i
    phi_i = adapt(theta, D_i)
    D_i' = episodes of pi(phi_i) in task i
    theta <- theta + beta grad_theta sum_i mean_{D_i'}(log pi(phi_i) A)

The gradient passes through `adapt`. MAML adapts by a policy gradient (`maml`), NoRML by a learned one (`norml`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from truesim.core import libraries
from truesim.core.typing import Array, Float
from truesim.policies.meta.advantages import estimate_advantages, score_surrogate
from truesim.policies.meta.families import Experience, Hidden, TaskFamily, play
from truesim.policies.meta.gaussian_policy import Parameters, log_density, mean_action, sample_action

Adaptation = Callable[[Any, Experience], Parameters]
"""Parameters of the adapted policy from meta-parameters and episodes of one task."""


@dataclasses.dataclass(frozen=True)
class MetaGradientOptions:
    """Sizes and rates of meta-learning by policy gradients."""

    tasks: int = 20
    """Tasks of each update."""
    episodes: int = 25
    """Episodes of each task before the adaptation, and as many after it."""
    discount: float = 0.9
    inner_rate: float = 0.1
    """Step size of the adaptation when meta-learning starts."""
    outer_rate: float = 3e-3
    """Step size of Adam, which falls linearly to zero."""
    updates: int = 500
    """Number of updates after which the step size is zero."""
    clip: float = 1.0
    """Largest norm of a meta-gradient; longer ones are scaled down."""


class MetaState(NamedTuple):
    """State of meta-learning."""

    parameters: Any
    """Meta-parameters; `parameters["policy"]` is the policy before adaptation."""
    optimizer: Any


class MetaInfo(NamedTuple):
    """Diagnostics of one update."""

    before: Float[Array, ""]
    """Mean return before the adaptation."""
    after: Float[Array, ""]
    """Mean return after it, on other episodes."""
    gradient: Float[Array, ""]
    """Norm of the meta-gradient."""


class MetaLearner(NamedTuple):
    """A meta-learning algorithm as two pure functions."""

    init: Callable[[Any], MetaState]
    """State from meta-parameters."""
    update: Callable[[MetaState, Array], tuple[MetaState, MetaInfo]]
    """One update with a random key."""


def collect(family: TaskFamily, policy: Parameters, hidden: Hidden, key: Array, episodes: int) -> Experience:
    """Play episodes of one task with the noise of the policy; nothing is differentiated through them."""
    fixed = jax.lax.stop_gradient(policy)

    def one(episode_key: Array) -> Experience:
        return play(family, lambda observation, k: sample_action(fixed, observation, k), hidden, episode_key)

    return jax.lax.stop_gradient(jax.vmap(one)(jax.random.split(key, episodes)))


def meta_gradient(family: TaskFamily, adapt: Adaptation, options: MetaGradientOptions) -> MetaLearner:
    """Meta-learning of whatever `adapt` starts from.

    Args:
        family: Tasks to adapt to.
        adapt: The adaptation, differentiable in the meta-parameters.
        options: Sizes and rates.
    """
    optax = libraries.optax
    rate = optax.linear_schedule(options.outer_rate, 0.0, options.updates)
    optimizer = optax.chain(optax.clip_by_global_norm(options.clip), optax.adam(rate))

    def loss(parameters: Any, hidden: Hidden, key: Array) -> tuple[Array, tuple[Array, Array]]:
        first, second = jax.random.split(key)
        before = collect(family, parameters["policy"], hidden, first, options.episodes)
        adapted = adapt(parameters, before)
        after = collect(family, adapted, hidden, second, options.episodes)
        logs = log_density(adapted, after.observations, after.actions)
        objective = score_surrogate(logs, estimate_advantages(after, options.discount))
        return -objective, (jnp.mean(before.returns), jnp.mean(after.returns))

    def mean_loss(parameters: Any, key: Array) -> tuple[Array, tuple[Array, Array]]:
        keys = jax.random.split(key, 2 * options.tasks)
        hidden = jax.vmap(family.draw)(keys[: options.tasks])
        losses, returns = jax.vmap(loss, (None, 0, 0))(parameters, hidden, keys[options.tasks :])
        return jnp.mean(losses), jax.tree.map(jnp.mean, returns)

    def update(state: MetaState, key: Array) -> tuple[MetaState, MetaInfo]:
        (_, returns), gradient = jax.value_and_grad(mean_loss, has_aux=True)(state.parameters, key)
        steps, memory = optimizer.update(gradient, state.optimizer)
        parameters = optax.apply_updates(state.parameters, steps)
        return MetaState(parameters, memory), MetaInfo(returns[0], returns[1], optax.tree.norm(gradient))

    return MetaLearner(lambda parameters: MetaState(parameters, optimizer.init(parameters)), update)


class AdaptedReturns(NamedTuple):
    """Returns of policies without action noise in held-out tasks."""

    before: Float[Array, " tasks"]
    after: Float[Array, " tasks"]


def evaluate_adaptation(
    family: TaskFamily, adapt: Adaptation, parameters: Any, key: Array, *, tasks: int = 100, episodes: int = 25
) -> AdaptedReturns:
    """Mean return of each of several new tasks, before and after one adaptation.

    Args:
        family: The family.
        adapt: The adaptation.
        parameters: Meta-parameters.
        key: Random key.
        tasks: Number of tasks.
        episodes: Episodes to adapt with, and as many others to evaluate with.
    """

    def mean_return(policy: Parameters, hidden: Hidden, evaluation: Array) -> Array:
        played = jax.vmap(lambda k: play(family, lambda o, _: mean_action(policy, o), hidden, k).returns)
        return jnp.mean(played(jax.random.split(evaluation, episodes)))

    def one(task_key: Array) -> AdaptedReturns:
        draw, sampling, evaluation = jax.random.split(task_key, 3)
        hidden = family.draw(draw)
        experience = collect(family, parameters["policy"], hidden, sampling, episodes)
        adapted = adapt(parameters, experience)
        policies = (parameters["policy"], adapted)
        return AdaptedReturns(*(mean_return(policy, hidden, evaluation) for policy in policies))

    return jax.lax.map(one, jax.random.split(key, tasks), batch_size=20)
