"""Training and evaluation of MAML, NoRML and policies that do not adapt, on one family."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import numpy as np

from experiments.adaptation.rows import Row, Setting, make_row, stopwatch
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
    """Returns of held-out tasks, of one training."""

    untrained: np.ndarray
    """Of meta-parameters that were not trained, after their adaptation."""
    before: np.ndarray
    after: np.ndarray
    seconds: float
    """CPU time [s]."""


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


@functools.cache
def compiled(family: TaskFamily, case: MetaCase, options: MetaGradientOptions):
    """Learner, its update and the evaluation of a method; the same for all seeds."""
    adapt = {"maml": maml(options.discount), "norml": norml, "fixed": keep_policy}[case.method]
    learner = meta_gradient(family, adapt, options)
    evaluate = jax.jit(
        lambda p: evaluate_adaptation(
            family, adapt, p, jax.random.key(HELD_OUT_KEY), tasks=HELD_OUT_TASKS, episodes=options.episodes
        )
    )
    return learner, jax.jit(learner.update), evaluate


def train_seed(shared: tuple[TaskFamily, MetaCase, MetaGradientOptions], seed: int) -> MetaFigures:
    """Train with a seed, and evaluate in tasks that training did not see."""
    family, case, options = shared
    (learner, update, evaluate), spent = compiled(family, case, options), []
    with stopwatch(spent):
        first, second, rest = jax.random.split(jax.random.key(seed), 3)
        sizes = (family.observation_size, *UNITS, family.action_size)
        policy = init_policy(first, sizes, case.log_std)
        parameters = start_parameters(family, case, policy, second)
        state = learner.init(parameters)
        for k in range(options.updates):
            state, _ = update(state, jax.random.fold_in(rest, k))
        found = evaluate(state.parameters)
    untrained, *trained = (np.asarray(x) for x in (evaluate(parameters).after, found.before, found.after))
    return MetaFigures(untrained, *trained, seconds=spent[0])


def train_case(family: TaskFamily, case: MetaCase, options: MetaGradientOptions, setting: Setting) -> list[MetaFigures]:
    """Figures of each seed."""
    options = dataclasses.replace(options, inner_rate=case.inner_rate, outer_rate=case.outer_rate)
    return setting.over_seeds(train_seed, (family, case, options))


def adapted_rows(
    benchmark: str,
    family: TaskFamily,
    case: MetaCase,
    options: MetaGradientOptions,
    setting: Setting,
    required: float | None,
) -> list[Row]:
    """Rows of a method that adapts: with untrained meta-parameters, before and after the adaptation."""
    figures = train_case(family, case, options, setting)
    name, count = {"maml": "MAML", "norml": "NoRML"}[case.method], options.episodes
    after = make_row(benchmark, f"{name}, after one update", [f.after for f in figures], episodes=count)
    return [
        make_row(benchmark, f"{name}, untrained, adapted", [f.untrained for f in figures], episodes=count),
        make_row(benchmark, f"{name}, before adaptation", [f.before for f in figures]),
        after._replace(required=required, seconds=mean_seconds(figures)),
    ]


def fixed_row(benchmark: str, name: str, family: TaskFamily, case: MetaCase, options, setting: Setting) -> Row:
    """Row of the best policy that does not adapt."""
    figures = train_case(family, case, options, setting)
    return make_row(benchmark, name, [f.after for f in figures], seconds=mean_seconds(figures))


def mean_seconds(figures: list[MetaFigures]) -> float:
    """CPU time of one training [s]."""
    return float(np.mean([f.seconds for f in figures]))
