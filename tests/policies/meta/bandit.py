"""A family with closed forms: one step, reward `-(a - goal)^2`."""

import jax
import jax.numpy as jnp

from truesim.policies.meta import TaskFamily


def quadratic_bandit(goal: float) -> TaskFamily:
    """The hidden number is the goal, the same for all tasks."""
    return TaskFamily(
        name="bandit",
        observation_size=1,
        action_size=1,
        steps=1,
        draw=lambda key: jnp.array(goal),
        reset=lambda key, hidden: jnp.ones(1),
        observe=lambda state, hidden: state,
        step=lambda state, action, hidden: (state, -jnp.sum((action - hidden) ** 2), jnp.array(False)),
    )


def constant_policy(mean: float, std: float):
    """Policy whose mean action does not depend on the observation: only its bias is a parameter of interest."""
    return {"mean": [(jnp.zeros((1, 1)), jnp.array([mean]))], "log_std": jnp.log(jnp.array([std]))}


def with_mean(policy, mean):
    """The policy with another mean action."""
    return policy | {"mean": [(policy["mean"][0][0], jnp.reshape(mean, (1,)))]}


def only_mean(policy, rate: float):
    """Step sizes that leave everything but the mean action as it is."""
    rates = jax.tree.map(jnp.zeros_like, policy)
    return with_mean(rates, jnp.array(rate))
