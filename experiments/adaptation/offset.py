"""B4a: SimOpt finds the offset of a goal that is far outside of its first distribution.

A hand moves to where the policy expects the goal, and observes its position relative to the real goal. It is a test
of the algorithm: identification needs one round for it.
"""

import numpy as np

from experiments.adaptation.rows import Row, Setting
from truesim.policies.adaptation import (
    Gaussian,
    SimOptOptions,
    discrepancy,
    gradient_step,
    independent,
    reps_step,
    simopt_round,
)

PRIOR, FLOOR, SOLVED, NOISE = 0.02, 0.01, 0.02, 0.002
"""Standard deviations of the first distribution and the floor, final distance that counts as solved, noise [m]."""
STEPS, GAIN = 50, 0.2
"""Length of a rollout, and the part of the way that each step goes."""
ROLLOUTS = 3
"""Real rollouts of each round."""


def rollout(offsets: np.ndarray, aim: float) -> np.ndarray:
    """Observed positions relative to the goal, of shape (offsets, steps, 1), when the policy aims at `aim` [m]."""
    hand = aim * (1.0 - (1.0 - GAIN) ** np.arange(1, STEPS + 1))
    return (hand[None] - np.reshape(offsets, (-1, 1)))[..., None]


def solve(offset: float, method: str, seed: int, kl: float = 1.0, rounds: int = 12) -> tuple[int, Gaussian]:
    """Number of rounds until the real hand ends within 2 cm of the goal, and the distribution then.

    Args:
        offset: Real offset [m].
        method: `reps` or `gradient`.
        seed: Seed.
        kl: Bound of each step [nat].
        rounds: Largest number of rounds.
    """
    rng, distribution = np.random.default_rng(seed), independent(np.zeros(1), np.full(1, PRIOR))
    for k in range(rounds):
        aim = float(distribution.mean[0])
        real = rollout(np.array([offset]), aim)[0]
        if abs(real[-1, 0]) <= SOLVED:
            return k, distribution
        seen = np.mean([real + NOISE * rng.standard_normal(real.shape) for _ in range(ROLLOUTS)], axis=0)
        options = SimOptOptions(kl=kl, floor=(FLOOR,), seed=1000 * seed + k)

        def cost(xi: np.ndarray, aim: float = aim, seen: np.ndarray = seen) -> np.ndarray:
            return discrepancy(rollout(xi, aim), seen, np.full(1, PRIOR))

        def gradient(xi: np.ndarray, aim: float = aim, seen: np.ndarray = seen) -> np.ndarray:
            small = 1e-6
            return ((cost(xi + small, aim, seen) - cost(xi - small, aim, seen)) / (2 * small))[:, None]

        if method == "reps":
            step = lambda d, r, c=cost, o=options: reps_step(d, c, o, r)  # noqa: E731
        else:
            step = lambda d, r, g=gradient, o=options: gradient_step(d, g, o, r)  # noqa: E731
        distribution = simopt_round(distribution, step, options)
    return rounds, distribution


def run(setting: Setting) -> list[Row]:
    """Rows of rounds until it is solved, over 20 seeds; the requirement is for the worst of them."""
    rows, count = [], 5 if setting.quick else 20
    for distance, required in ((0.15, 4.0), (0.22, 6.0)):
        for method in ("reps", "gradient"):
            rounds = np.array([solve(distance, method, seed)[0] for seed in range(count)], float)
            name = f"SimOpt by {method}, worst of {count}"
            rows.append(
                Row(
                    f"B4a offset of {100 * distance:.0f} cm [rounds, less is better]",
                    name,
                    rounds.max(),
                    rounds.min(),
                    rounds.max(),
                    required=required,
                    episodes=int(ROLLOUTS * rounds.max()),
                    seeds=count,
                )
            )
    return rows
