"""Strategy optimization: search the parameters that a universal policy is told, by returns on the real system.

The universal policy is linear-quadratic feedback for the parameters that it is told, so that nothing has to be
trained. Gap closed is 0 for the policy of the nominal robot, and 1 for the best linear feedback on the real one.
"""

import cmaes
import jax
import jax.numpy as jnp
import numpy as np

from experiments.adaptation.families.wagon import HIGH, LOW, NOMINAL, REAL, Wagon, episode, feedback_for
from experiments.adaptation.rows import Row, Setting, make_row
from truesim.policies.adaptation import SEARCHES, AdaptOptions, search_parameters

NAME = "strategy optimization, cart-pole with latency [gap closed]"
COUNTS = (5, 10, 20, 50)
"""Real episodes at which incumbents are compared."""
STARTS = 128
"""Episodes of an evaluation, which count for nobody."""

real_episode = jax.jit(lambda gains, key: episode(REAL, gains, key))
real_mean = jax.jit(
    lambda gains: jnp.mean(jax.vmap(lambda k: episode(REAL, gains, k))(jax.random.split(jax.random.key(4321), STARTS)))
)


@jax.jit
def randomized_mean(gains):
    """Mean return over the training range, one system for each start."""
    first, second = jax.random.split(jax.random.key(99))
    rows = jax.random.uniform(first, (STARTS, 4), minval=jnp.array(LOW), maxval=jnp.array(HIGH))
    play = lambda row, k: episode(Wagon(row), gains, k)  # noqa: E731
    return jnp.mean(jax.vmap(play)(rows, jax.random.split(second, STARTS)))


def best_feedback(score, seed: int = 0, generations: int = 60) -> np.ndarray:
    """Gains that maximize a score, by CMA-ES from those of the nominal robot."""
    scale = np.abs(feedback_for(NOMINAL))
    optimizer = cmaes.CMA(mean=feedback_for(NOMINAL) / scale, sigma=0.3, seed=seed, population_size=12)
    best, value = scale, -np.inf
    for _ in range(generations):
        points = [optimizer.ask() for _ in range(optimizer.population_size)]
        told = [(x, -float(score(jnp.asarray(scale * x)))) for x in points]
        optimizer.tell(told)
        x, cost = min(told, key=lambda pair: pair[1])
        best, value = (scale * x, -cost) if -cost > value else (best, value)
    return best


def adapted_curve(method: str, seed: int, episodes: int = COUNTS[-1]) -> np.ndarray:
    """Mean real return of the incumbent after each number of episodes in `COUNTS`."""
    keys = iter(jax.random.split(jax.random.key(10_000 + seed), episodes))
    play = lambda told: float(real_episode(jnp.asarray(feedback_for(told)), next(keys)))  # noqa: E731
    found = search_parameters(play, NOMINAL, LOW, HIGH, AdaptOptions(method, episodes, seed=seed))
    return np.array([float(real_mean(jnp.asarray(feedback_for(found.incumbents[:k][-1])))) for k in COUNTS])


def run(setting: Setting) -> list[Row]:
    """Rows of references, and of each search after 10, 20 and 50 episodes; searches have ten seeds."""
    generations, repeats = (3, 2) if setting.quick else (60, 10)
    nominal = float(real_mean(jnp.asarray(feedback_for(NOMINAL))))
    oracle = float(real_mean(jnp.asarray(best_feedback(real_mean, 0, generations))))
    randomized = float(real_mean(jnp.asarray(best_feedback(randomized_mean, 0, generations))))
    told = float(real_mean(jnp.asarray(feedback_for(np.clip(REAL.parameters, LOW, HIGH)))))
    closed = lambda x: (np.asarray(x) - nominal) / (oracle - nominal)  # noqa: E731
    references = {
        f"nominal (mean cost {-nominal:.3g})": nominal,
        "uniform randomization, best fixed feedback": randomized,
        "told the true parameters, within the range": told,
        f"oracle (mean cost {-oracle:.3g})": oracle,
    }
    rows = [make_row(NAME, name, [closed(np.array([value]))]) for name, value in references.items()]
    for method in SEARCHES:
        curves = np.array([closed(adapted_curve(method, seed)) for seed in range(repeats)])
        for k, count in enumerate(COUNTS):
            rows.append(make_row(NAME, f"{method}, {count} episodes", list(curves[:, k : k + 1]), episodes=count))
    return rows
