"""Work of `truesim gap --methods`: methods of adaptation on the robot, a line of gap closed for each."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from truesim.cli.console import messages, results, titled_table
from truesim.core.errors import TruesimError
from truesim.policies import read_randomization
from truesim.policies.adaptation import (
    ConditionedTraining,
    EnvBench,
    LeaderboardOptions,
    MethodCurve,
    ParameterCoordinates,
    PolicyShelf,
    gap_closed,
    method_curve,
)
from truesim.policies.adaptation.leaderboard import find_methods
from truesim.policies.gap import RESAMPLINGS
from truesim.policies.task import PolicyTask, with_conditions

COUNTS = (0, 5, 10, 20, 50)
"""Real episodes after which a method is evaluated, as far as its budget goes."""


class MethodOptions(NamedTuple):
    """Choices of adaptation on the command line."""

    methods: tuple[str, ...] = ()
    randomize: Path | None = None
    adapt_episodes: int = 20
    steps: int = 3_000_000
    searches: int = 3
    evaluated: int = 10
    workers: str = "1"


def check_methods(options: MethodOptions, logs: Sequence[Path] = ()) -> None:
    """Refuse unknown methods, methods without a randomization or without a robot, and options of no method."""
    if not options.methods:
        if options.randomize is not None:
            raise TruesimError("--randomize belongs to --methods: name methods of adaptation, such as up-osi.")
        return
    find_methods(options.methods)
    if options.randomize is None:
        raise TruesimError("--methods trains policies that are told parameters: say which ones with --randomize.")
    if logs:
        raise TruesimError("--methods plays on a robot; logs (--log) of episodes that were played cannot adapt to it.")


def randomized_task(task: PolicyTask, options: MethodOptions) -> PolicyTask:
    """The task with what policies of the methods are told; the task itself without methods."""
    if not options.methods or options.randomize is None:
        return task
    merged = task.randomization.merged(read_randomization(options.randomize))
    task = with_conditions(dataclasses.replace(task, randomization=merged))
    ParameterCoordinates(task)  # refuses a task in which nothing is randomized
    return task


def compare_methods(
    task: PolicyTask, make: Callable[[], Any], options: MethodOptions, ends: tuple[float, float] | None, seed: int
) -> list[dict[str, Any]]:
    """Lines of all methods, for `gap.json`.

    Args:
        task: The task in simulation, as of `randomized_task`.
        make: Makes the robot.
        options: Choices.
        ends: Mean returns of the nominal policy and of the oracle on the robot; None if one is not known.
        seed: Seed of trainings and searches.
    """
    counts = (*(k for k in COUNTS if k < options.adapt_episodes), options.adapt_episodes)
    training = ConditionedTraining(steps=options.steps, seed=seed)
    own = LeaderboardOptions(counts=counts, searches=options.searches, training=training)
    shelf = PolicyShelf(task, own)
    messages().print(f"Training the policies of {', '.join(options.methods)} …", highlight=False)
    shelf.prepare(options.methods, options.workers)
    bench, lines = EnvBench(make, options.evaluated, seed), []
    for name in options.methods:
        messages().print(f"Adapting by {name} …", highlight=False)
        lines.append(_line(method_curve(name, shelf, bench), ends))
    bench.close()
    return lines


def _line(curve: MethodCurve, ends: tuple[float, float] | None) -> dict[str, Any]:
    """A line with bootstrap intervals over searches, or over episodes of a method that searches nothing."""
    values = curve.returns if ends is None else gap_closed(curve.returns, *ends)
    rng = np.random.default_rng(0)
    rows = rng.integers(len(values), size=(RESAMPLINGS, len(values)))
    low, high = np.percentile(values[rows].mean(axis=1), [2.5, 97.5], axis=0)
    return {
        "method": curve.method,
        "quantity": "return" if ends is None else "gap closed",
        "searches": len(curve.found),
        "episodes": list(curve.counts),
        "value": values.mean(axis=0).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "returns": curve.returns.tolist(),
    }


def print_methods(lines: Sequence[Mapping[str, Any]]) -> None:
    """Print a table with a row for each method."""
    counts = [str(k) for k in lines[0]["episodes"]]
    table = titled_table(f"Adaptation: {lines[0]['quantity']} after real episodes", "method", *counts, right=True)
    table.columns[0].no_wrap = True
    for line in lines:
        cells = zip(line["value"], line["low"], line["high"], strict=True)
        table.add_row(line["method"], *(f"{v:.2f}\n{a:.2f} to {b:.2f}" for v, a, b in cells))
    results().print(table)
