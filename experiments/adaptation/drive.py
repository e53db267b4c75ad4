"""B11: a differential drive with 10 V and a side mass, where training saw 12 to 16.8 V."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.adaptation.families.drive import REAL_DRIVE, drive_straight, final_state
from experiments.adaptation.families.navigation import LINEAR_SIZE, linear_action
from experiments.adaptation.rows import Row, Setting, make_row
from truesim.policies.adaptation import hill_climbing
from truesim.policies.meta import (
    EsMamlOptions,
    MetaGradientOptions,
    ReturnProblem,
    adapt_to_task,
    episode_return,
    es_maml,
    init_maml,
    init_policy,
    maml,
    mean_action,
    meta_gradient,
    sample_action,
)
from truesim.policies.meta.families import play

NAME = "B11 differential drive, 10 V and a side mass, 50 episodes"
NOISE = 0.05
"""Standard deviation of the noise of returns that adaptations see [m]."""
BATCH, ROUNDS = 5, 10


def returns_problem() -> ReturnProblem:
    """Returns of linear policies."""
    family = drive_straight()

    def evaluate(theta, task, disturbance):
        return episode_return(family, lambda o: linear_action(theta, o), task, jnp.zeros(5)) + disturbance

    return ReturnProblem(family.draw, evaluate, NOISE)


def real_figures(act) -> tuple[float, float, float]:
    """Distance along the course [m] and heading off it [rad] after an episode on the real cart, and its return."""
    end = np.asarray(final_state(act, jnp.array(REAL_DRIVE)))
    total = episode_return(drive_straight(), act, jnp.array(REAL_DRIVE), jnp.zeros(5))
    return float(end[0]), float(abs(end[2])), float(total)


def train_linear(problem: ReturnProblem, options: EsMamlOptions, seed: int, updates: int):
    """Parameters of a linear policy by ES-MAML; with no rounds it is an evolution strategy under randomization."""
    learner = es_maml(problem, hill_climbing(0.1), options)

    def advance(state, key):
        return learner.update(state, key)[0], None

    train = jax.jit(lambda key: jax.lax.scan(advance, learner.init(jnp.zeros(LINEAR_SIZE)), key)[0].parameters)
    return train(jax.random.split(jax.random.key(seed), updates))


def adapted_maml(seed: int, updates: int):
    """A network before and after one policy gradient from 50 real episodes."""
    family, adapt = drive_straight(), maml(0.99)
    options = MetaGradientOptions(tasks=10, episodes=50, discount=0.99, updates=updates, outer_rate=5e-3)
    learner = meta_gradient(family, adapt, options)
    first, rest, played = jax.random.split(jax.random.key(seed), 3)
    state = learner.init(init_maml(init_policy(first, (2, 16, 2), -1.0), 0.05))
    update = jax.jit(learner.update)
    for k in range(updates):
        state, _ = update(state, jax.random.fold_in(rest, k))
    policy, hidden = state.parameters["policy"], jnp.array(REAL_DRIVE)
    keys = jax.random.split(played, options.episodes)
    experience = jax.vmap(lambda k: play(family, lambda o, n: sample_action(policy, o, n), hidden, k))(keys)
    after = adapt(state.parameters, experience)
    return (lambda o: mean_action(policy, o)), (lambda o: mean_action(after, o))


def one_seed(updates: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Figures of each policy on the real cart, after trainings with a seed."""
    problem, meta = returns_problem(), EsMamlOptions(rounds=ROUNDS, candidates=BATCH)
    theta = train_linear(problem, meta, seed, updates)
    key = jax.random.key(1000 + seed)
    adapted = adapt_to_task(problem, hill_climbing(0.1), meta, theta, jnp.array(REAL_DRIVE), key)
    robust = train_linear(problem, EsMamlOptions(rounds=0), seed, updates)
    network, updated = adapted_maml(seed, updates)
    acts = {
        "ES-MAML, unadapted": lambda o: linear_action(theta, o),
        "ES-MAML, adapted by batch hill climbing": lambda o: linear_action(adapted, o),
        "uniform randomization": lambda o: linear_action(robust, o),
        "MAML, unadapted": network,
        "MAML, adapted": updated,
    }
    return {name: real_figures(act) for name, act in acts.items()}


def run(setting: Setting) -> list[Row]:
    """Rows of progress, drift and return, before and after 50 episodes, over seeds."""
    found, rows = setting.over_seeds(one_seed, 3 if setting.quick else 300), []
    for name in found[0]:
        for k, quantity in enumerate(("progress [m]", "drift [rad]", "return")):
            values = [np.array([each[name][k]]) for each in found]
            rows.append(make_row(NAME, f"{name}, {quantity}", values, episodes=50 * (", adapted" in name)))
    return rows
