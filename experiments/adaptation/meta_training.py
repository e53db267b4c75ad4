"""Training and evaluation of MAML, NoRML and policies that do not adapt, on one family."""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from experiments.adaptation.rows import Row, make_row, stopwatch
from truesim.policies.meta import (
    MetaGradientOptions,
    TaskFamily,
    evaluate_adaptation,
    init_maml,
    init_norml,
    init_policy,
    maml,
    meta_gradient,
    norml,
)

UNITS = (50, 50)
"""Hidden units of policies and learned advantages."""
HELD_OUT_TASKS, HELD_OUT_KEY = 200, 12345


class MetaCase(NamedTuple):
    """A method with its rates."""

    method: str
    """`maml`, `norml` or `fixed`, a policy that does not adapt."""
    inner_rate: float
    outer_rate: float
    log_std: float


class MetaFigures(NamedTuple):
    """Returns of held-out tasks."""

    untrained: list[np.ndarray]
    before: list[np.ndarray]
    after: list[np.ndarray]
    seconds: float


def keep_policy(parameters, experience):
    """No adaptation."""
    return parameters["policy"]


def start_parameters(family: TaskFamily, case: MetaCase, policy, key):
    """Meta-parameters of a method."""
    if case.method == "maml":
        return init_maml(policy, case.inner_rate)
    if case.method == "norml":
        transition = 2 * family.observation_size + family.action_size
        return init_norml(key, policy, (transition, *UNITS, 1), case.inner_rate)
    return {"policy": policy}


def train_case(family: TaskFamily, case: MetaCase, options: MetaGradientOptions, seeds: int) -> MetaFigures:
    """Train with each seed, and evaluate in tasks that training did not see."""
    options = dataclasses.replace(options, inner_rate=case.inner_rate, outer_rate=case.outer_rate)
    figures = MetaFigures([], [], [], 0.0)
    spent: list[float] = []
    adapt = {"maml": maml(options.discount), "norml": norml, "fixed": keep_policy}[case.method]
    learner = meta_gradient(family, adapt, options)
    update = jax.jit(learner.update)
    evaluate = jax.jit(
        lambda p: evaluate_adaptation(
            family, adapt, p, jax.random.key(HELD_OUT_KEY), tasks=HELD_OUT_TASKS, episodes=options.episodes
        )
    )
    for seed in range(seeds):
        with stopwatch(spent):
            first, second, rest = jax.random.split(jax.random.key(seed), 3)
            sizes = (family.observation_size, *UNITS, family.action_size)
            policy = init_policy(first, sizes, case.log_std)
            parameters = start_parameters(family, case, policy, second)
            state = learner.init(parameters)
            for k in range(options.updates):
                state, _ = update(state, jax.random.fold_in(rest, k))
            found = evaluate(state.parameters)
        figures.untrained.append(np.asarray(evaluate(parameters).after))
        figures.before.append(np.asarray(found.before))
        figures.after.append(np.asarray(found.after))
    return figures._replace(seconds=float(np.mean(spent)))


def adapted_rows(
    benchmark: str, family: TaskFamily, case: MetaCase, options: MetaGradientOptions, seeds: int, required: float
) -> list[Row]:
    """Rows of a method that adapts: with untrained meta-parameters, before and after the adaptation."""
    figures = train_case(family, case, options, seeds)
    name, count = {"maml": "MAML", "norml": "NoRML"}[case.method], options.episodes
    return [
        make_row(benchmark, f"{name}, untrained, adapted", figures.untrained, episodes=count),
        make_row(benchmark, f"{name}, before adaptation", figures.before),
        make_row(
            benchmark,
            f"{name}, after one update",
            figures.after,
            episodes=count,
            required=required,
            seconds=figures.seconds,
        ),
    ]


def fixed_row(benchmark: str, name: str, family: TaskFamily, case: MetaCase, options, seeds: int) -> Row:
    """Row of the best policy that does not adapt."""
    figures = train_case(family, case, options, seeds)
    return make_row(benchmark, name, figures.after, seconds=figures.seconds)
