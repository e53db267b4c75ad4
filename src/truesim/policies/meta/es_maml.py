"""ES-MAML: meta-learning by evolution strategies, without derivatives of policies or returns (Song et al. 2020).

Zero order: an evolution strategy on the return *after* adaptation. For perturbations `g` of parameters, each in a
task of its own,

    theta <- theta + beta / (sigma n) sum_i v_i g_i,    v_i = f_i(U(theta + sigma g_i, T_i)),

where the adaptation `U` may be anything that needs only returns: hill climbing, a step of an evolution strategy.
First order: the derivative of `U` is left out, and the gradient is estimated at the adapted parameters.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from truesim.core.typing import Array, Float
from truesim.policies.adaptation.episode_search import EpisodeSearch, adapt_in_simulation
from truesim.policies.meta.meta_gradient import MetaInfo, MetaLearner, MetaState


@dataclasses.dataclass(frozen=True)
class EsMamlOptions:
    """Sizes and rates of ES-MAML."""

    pairs: int = 150
    """Pairs of opposite perturbations of each update; each pair has a task of its own."""
    rounds: int = 20
    """Rounds of the adaptation."""
    candidates: int = 1
    """Candidates of each round; an adaptation takes rounds times candidates queries, and one of the start."""
    sigma: float = 0.1
    """Standard deviation of perturbations."""
    rate: float = 0.01
    """Step size of the meta-parameters."""
    order: int = 0
    """0: gradient of the adapted return; 1: gradient at the adapted parameters, as if they were the start."""


class ReturnProblem(NamedTuple):
    """Tasks of which only returns are seen."""

    draw: Callable[[Array], Any]
    """Hidden numbers of a task, from a random key."""
    evaluate: Callable[[Array, Any, Array], Array]
    """Return of parameters in a task, with a random number that stands for noise of the return."""
    noise: float = 0.0
    """Standard deviation of the noise that is added to the returns that an adaptation sees."""


def adapt_to_task(
    problem: ReturnProblem, search: EpisodeSearch, options: EsMamlOptions, theta: Array, task: Any, key: Array
) -> Float[Array, " size"]:
    """Parameters after an adaptation to one task, from noisy returns."""
    directions, disturbed = jax.random.split(key)
    rounds, candidates = options.rounds, options.candidates
    noise = jax.random.normal(directions, (rounds, candidates, theta.size))
    episodes = problem.noise * jax.random.normal(disturbed, (1 + rounds, candidates))
    return adapt_in_simulation(search, lambda x, e: problem.evaluate(x, task, e), theta, noise, episodes).incumbent


def es_maml(problem: ReturnProblem, search: EpisodeSearch, options: EsMamlOptions) -> MetaLearner:
    """Meta-learning of parameters from which the search adapts well.

    Args:
        problem: Tasks and returns.
        search: The adaptation.
        options: Sizes and rates.
    """

    def adapted_returns(theta: Array, directions: Array, tasks: Any, keys: Array) -> Array:
        """Returns after adaptations that start from perturbed parameters."""

        def one(direction: Array, task: Any, key: Array) -> Array:
            start = theta + options.sigma * direction
            return problem.evaluate(adapt_to_task(problem, search, options, start, task, key), task, jnp.zeros(()))

        return jax.vmap(one)(directions, tasks, keys)

    def returns_around_adapted(theta: Array, directions: Array, tasks: Any, keys: Array) -> Array:
        """Returns of perturbations of parameters that were adapted from the same start."""

        def one(direction: Array, task: Any, key: Array) -> Array:
            adapted = adapt_to_task(problem, search, options, theta, task, key)
            return problem.evaluate(adapted + options.sigma * direction, task, jnp.zeros(()))

        return jax.vmap(one)(directions, tasks, keys)

    values = adapted_returns if options.order == 0 else returns_around_adapted

    def update(state: MetaState, key: Array) -> tuple[MetaState, MetaInfo]:
        drawn, perturbed, adapting = jax.random.split(key, 3)
        theta = state.parameters
        half = jax.random.normal(perturbed, (options.pairs, theta.size))
        tasks = jax.vmap(problem.draw)(jax.random.split(drawn, options.pairs))
        keys = jax.random.split(adapting, options.pairs)
        twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), (tasks, keys))
        directions = jnp.concatenate([half, -half])
        found = values(theta, directions, *twice)
        scaled = (found - jnp.mean(found)) / (jnp.std(found) + 1e-8)
        gradient = scaled @ directions / (options.sigma * len(found))
        info = MetaInfo(jnp.array(jnp.nan), jnp.mean(found), jnp.linalg.norm(gradient))
        return MetaState(theta + options.rate * gradient, None), info

    return MetaLearner(lambda theta: MetaState(theta, None), update)


def evaluate_es_maml(
    problem: ReturnProblem, search: EpisodeSearch, options: EsMamlOptions, theta: Array, key: Array, tasks: int = 500
) -> tuple[Float[Array, " tasks"], Float[Array, " tasks"]]:
    """Returns of new tasks before and after an adaptation, without noise."""

    def one(task_key: Array) -> tuple[Array, Array]:
        drawn, adapting = jax.random.split(task_key)
        task = problem.draw(drawn)
        adapted = adapt_to_task(problem, search, options, theta, task, adapting)
        return problem.evaluate(theta, task, jnp.zeros(())), problem.evaluate(adapted, task, jnp.zeros(()))

    return jax.vmap(one)(jax.random.split(key, tasks))
