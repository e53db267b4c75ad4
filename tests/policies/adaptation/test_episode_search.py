"""Searches that see only returns, on quadratic functions and under noise."""

import jax
import jax.numpy as jnp
import pytest

from truesim.policies.adaptation.episode_search import adapt_in_simulation, evolution_step, hill_climbing

GOAL = jnp.array([0.6, -0.3, 0.2])


def quadratic(theta, noise):
    """Return with its maximum of zero at the goal."""
    return -jnp.sum((theta - GOAL) ** 2) + noise


def run(search, rounds, candidates, noise=0.0, seed=0):
    """Parameters after a search from zero."""
    first, second = jax.random.split(jax.random.key(seed))
    directions = jax.random.normal(first, (rounds, candidates, 3))
    episodes = noise * jax.random.normal(second, (1 + rounds, candidates))
    return adapt_in_simulation(search, quadratic, jnp.zeros(3), directions, episodes)


def test_hill_climbing_keeps_the_best():
    """Without noise the value never falls, is the return of the incumbent, and approaches the maximum."""
    values = [run(hill_climbing(0.1), rounds, 1).value for rounds in (1, 10, 100)]
    assert values[0] <= values[1] <= values[2]
    assert values[2] > -0.01
    end = run(hill_climbing(0.1), 100, 1)
    assert end.value == pytest.approx(quadratic(end.incumbent, 0.0))


def test_an_evolution_step_follows_the_gradient():
    """With many candidates the step has the direction of the gradient, and standardized returns fix its length."""
    end = run(evolution_step(0.01, 0.001), 1, 20_000)
    step = end.incumbent / jnp.linalg.norm(end.incumbent)
    assert jnp.dot(step, GOAL / jnp.linalg.norm(GOAL)) > 0.99
    assert jnp.linalg.norm(end.incumbent) == pytest.approx(0.1, rel=0.05)


def test_a_lucky_return_does_not_stay():
    """The value of a re-evaluated incumbent is not the largest of all noisy returns."""

    def values(search):
        return jax.vmap(lambda seed: run(search, 30, 4, 1.0, seed).value)(jnp.arange(20))

    assert jnp.mean(values(hill_climbing(0.1))) > jnp.mean(values(hill_climbing(0.1, reevaluate=True))) + 0.5
