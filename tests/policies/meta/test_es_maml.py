"""ES-MAML learns where to start a search from."""

import jax
import jax.numpy as jnp
import pytest

from truesim.policies.adaptation.episode_search import evolution_step, hill_climbing
from truesim.policies.meta.es_maml import EsMamlOptions, ReturnProblem, es_maml, evaluate_es_maml

CENTER = jnp.array([1.0, -1.0])
"""Goals of tasks are 0.2 around it, too far from zero for a few queries."""


def draw(key):
    return CENTER + 0.2 * jax.random.normal(key, (2,))


def evaluate(theta, goal, noise):
    return -jnp.sum((theta - goal) ** 2) + noise


@pytest.mark.parametrize(
    ("search", "rounds", "candidates", "order"),
    [(hill_climbing(0.1), 5, 1, 0), (evolution_step(0.1, 0.02), 1, 10, 0), (evolution_step(0.1, 0.02), 1, 10, 1)],
)
def test_adaptation_starts_near_all_tasks(search, rounds, candidates, order):
    """Trained parameters are at the center of all goals, and adaptations from there reach them."""
    problem = ReturnProblem(draw, evaluate)
    options = EsMamlOptions(pairs=100, rounds=rounds, candidates=candidates, rate=0.02, order=order)
    learner = es_maml(problem, search, options)
    state, update = learner.init(jnp.zeros(2)), jax.jit(learner.update)
    for k in range(200):
        state, _ = update(state, jax.random.key(k))
    assert jnp.linalg.norm(state.parameters - CENTER) < 0.15
    _, untrained = evaluate_es_maml(problem, search, options, jnp.zeros(2), jax.random.key(7), 100)
    before, after = evaluate_es_maml(problem, search, options, state.parameters, jax.random.key(7), 100)
    assert jnp.mean(after) > jnp.mean(before)
    assert jnp.mean(after) > jnp.mean(untrained) + 0.5


def test_noise_is_only_seen_by_the_adaptation():
    """Reported returns are those of the task."""
    problem = ReturnProblem(draw, evaluate, noise=100.0)
    before, after = evaluate_es_maml(
        problem, hill_climbing(0.1), EsMamlOptions(rounds=3), CENTER, jax.random.key(0), 50
    )
    assert jnp.all(before <= 0)
    assert jnp.all(after <= 0)
