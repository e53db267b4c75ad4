"""A family in which the policy also sees the step before, and so can adapt within an episode."""

import jax.numpy as jnp

from truesim.policies.meta import TaskFamily


def with_memory(family: TaskFamily) -> TaskFamily:
    """The same tasks; observations are joined by the observation and the action of the step before."""

    def reset(key, hidden):
        state = family.reset(key, hidden)
        return state, family.observe(state, hidden), jnp.zeros(family.action_size)

    def step(state, action, hidden):
        after, reward, ended = family.step(state[0], action, hidden)
        return (after, family.observe(state[0], hidden), action), reward, ended

    return family._replace(
        name=f"{family.name}, one step of memory",
        observation_size=2 * family.observation_size + family.action_size,
        reset=reset,
        observe=lambda state, hidden: jnp.concatenate([family.observe(state[0], hidden), *state[1:]]),
        step=step,
    )
