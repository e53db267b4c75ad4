"""B10: ES-MAML with an evolution step, hill climbing and batch hill climbing, with and without noise of returns."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.adaptation.families.navigation import LINEAR_SIZE, four_corners, linear_action, navigation_2d
from experiments.adaptation.rows import Row, Setting, make_row, stopwatch
from truesim.policies.adaptation import EpisodeSearch, evolution_step, hill_climbing
from truesim.policies.meta import (
    EsMamlOptions,
    ReturnProblem,
    TaskFamily,
    episode_return,
    es_maml,
    evaluate_es_maml,
)

HELD_OUT_KEY = 777
BATCH = 5
"""Candidates of each round of batch hill climbing."""


class SearchCase(NamedTuple):
    """A method of adaptation within a number of queries."""

    name: str
    search: EpisodeSearch
    candidates: Callable[[int], int]
    """Candidates of each round, from the number of queries."""
    order: int = 0

    def options(self, queries: int) -> EsMamlOptions:
        """Rounds and candidates for a number of queries."""
        count = self.candidates(queries)
        return EsMamlOptions(rounds=queries // count, candidates=count, order=self.order)


ES = SearchCase("evolution step", evolution_step(0.1, 0.05), lambda queries: queries)
ES_FIRST = SearchCase("evolution step, first order", evolution_step(0.1, 0.05), lambda queries: queries, 1)
HILL = SearchCase("hill climbing", hill_climbing(0.1), lambda queries: 1)
WIDE_HILL = SearchCase("hill climbing", hill_climbing(0.2), lambda queries: 1)
BATCHES = SearchCase("batch hill climbing", hill_climbing(0.1), lambda queries: BATCH)
AGAIN = SearchCase("batch hill climbing, re-evaluated", hill_climbing(0.1, reevaluate=True), lambda queries: BATCH)


def returns_of(family: TaskFamily, noise: float = 0.0) -> ReturnProblem:
    """Returns of linear policies in a family."""

    def evaluate(theta, task, disturbance):
        return episode_return(family, lambda o: linear_action(theta, o), task, jnp.zeros(2)) + disturbance

    return ReturnProblem(family.draw, evaluate, noise)


@functools.cache
def training_of(problem: ReturnProblem, case: SearchCase, queries: int, updates: int):
    """Compiled meta-training from a random key."""
    learner = es_maml(problem, case.search, case.options(queries))

    def train(key):
        advance = lambda state, k: (learner.update(state, k)[0], None)  # noqa: E731
        start = learner.init(jnp.zeros(LINEAR_SIZE))
        return jax.lax.scan(advance, start, jax.random.split(key, updates))[0].parameters

    return jax.jit(train)


def train_seed(shared: tuple[ReturnProblem, SearchCase, int, int], seed: int) -> tuple[np.ndarray, float]:
    """Meta-trained parameters, and the CPU time of the training [s]."""
    spent: list[float] = []
    with stopwatch(spent):
        found = np.asarray(training_of(*shared)(jax.random.key(seed)))
    return found, spent[0]


def trained_starts(problem: ReturnProblem, case: SearchCase, queries: int, setting: Setting):
    """Meta-trained parameters of each seed, and the CPU time of one training [s]."""
    found = setting.over_seeds(train_seed, (problem, case, queries, 5 if setting.quick else 400))
    return [theta for theta, _ in found], float(np.mean([seconds for _, seconds in found]))


def adapted_returns(problem: ReturnProblem, case: SearchCase, queries: int, starts) -> list[np.ndarray]:
    """Returns of held-out tasks after adaptations from each of the starts."""
    options = case.options(queries)
    evaluate = jax.jit(lambda x, k: evaluate_es_maml(problem, case.search, options, x, k)[1])
    return [np.asarray(evaluate(x, jax.random.key(HELD_OUT_KEY + k))) for k, x in enumerate(starts)]


def compare(
    benchmark: str, problem: ReturnProblem, case: SearchCase, queries: int, setting: Setting, required=None
) -> list[Row]:
    """Rows of a method without and with meta-training."""
    starts, seconds = trained_starts(problem, case, queries, setting)
    name, zeros = f"{case.name}, {queries} queries", [jnp.zeros(LINEAR_SIZE)] * len(starts)
    untrained, trained = (adapted_returns(problem, case, queries, x) for x in (zeros, starts))
    count = queries + 1
    return [
        make_row(benchmark, f"{name}, untrained", untrained, episodes=count),
        make_row(benchmark, name, trained, episodes=count, required=required, seconds=seconds),
    ]


def unadapted(problem: ReturnProblem) -> np.ndarray:
    """Returns of staying at the start."""
    tasks = jax.vmap(problem.draw)(jax.random.split(jax.random.key(1), 1000))
    return np.asarray(jax.vmap(lambda t: problem.evaluate(jnp.zeros(LINEAR_SIZE), t, jnp.zeros(())))(tasks))


def oracle(family: TaskFamily) -> np.ndarray:
    """Returns of full speed towards the goal."""
    tasks = jax.vmap(family.draw)(jax.random.split(jax.random.key(1), 1000))
    act = lambda goal: lambda position: goal - position  # noqa: E731
    return np.asarray(jax.vmap(lambda t: episode_return(family, act(t), t, jnp.zeros(2)))(tasks))


def run(setting: Setting) -> list[Row]:
    """Rows of Nav2D, four corners, and Nav2D with noise."""
    rows = []
    for family, cases in (
        (navigation_2d(), ((ES, 20, -18.0), (ES, 50, -13.0), (ES_FIRST, 50, None), (HILL, 20, -7.0))),
        (four_corners(), ((WIDE_HILL, 20, -215.0), (WIDE_HILL, 50, -125.0), (ES, 50, None))),
    ):
        name, problem = f"B10 {family.name}", returns_of(family)
        rows += [make_row(name, "unadapted", [unadapted(problem)]), make_row(name, "oracle", [oracle(family)])]
        for case, queries, required in cases:
            rows += compare(name, problem, case, queries, setting, required)
    return rows + noisy_rows(setting)


def noisy_rows(setting: Setting) -> list[Row]:
    """Rows of Nav2D with noise of 0, 1 and 3 standard deviations of the unadapted return over tasks, 20 queries.

    Meta-training either has no noise, as a simulator, or that of the test.
    """
    family, rows = navigation_2d(), []
    deviation = float(unadapted(returns_of(family)).std())
    problems = {factor: returns_of(family, factor * deviation) for factor in (0, 1, 3)}
    for case in (ES, HILL, BATCHES, AGAIN):
        starts = {factor: trained_starts(problem, case, 20, setting)[0] for factor, problem in problems.items()}
        for factor, problem in problems.items():
            choices = {"untrained": [jnp.zeros(LINEAR_SIZE)] * len(starts[0]), "trained without noise": starts[0]}
            choices |= {"trained with noise": starts[factor]} if factor else {}
            for name, each in choices.items():
                returns = adapted_returns(problem, case, 20, each)
                rows.append(make_row(f"B10 Nav2D, noise of {factor} std", f"{case.name}, {name}", returns, episodes=21))
    return rows
