"""Runs comparisons one after the other and collects their rows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.comparisons import Comparison
from benchmarks.process import Outcome, Task, measure

SCALE = {"s": 1.0, "us": 1e6}


@dataclass(frozen=True)
class Row:
    """Result of one comparison; a number is None if it could not be measured."""

    key: str
    name: str
    ours: float | None
    peer: float | None
    peer_name: str
    unit: str
    ratio: float | None
    """The peer's time divided by ours: larger is better."""
    target: float
    """Ratio to reach."""
    ours_compile: float | None = None
    """Compile time without a cache, tracing included [s]."""
    peer_compile: float | None = None
    ours_memory: float | None = None
    """Peak memory of the process [MB]."""
    peer_memory: float | None = None
    note: str | None = None
    """Reason for a missing result, or difference between the two results."""

    @property
    def met(self) -> bool:
        """True if the ratio reaches its target."""
        return self.ratio is not None and self.ratio >= self.target


def rows(
    comparisons: Iterable[Comparison],
    patience: float,
    limit: float | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Iterator[Row]:
    """Run each comparison; tasks that several comparisons share are measured once.

    Args:
        comparisons: The comparisons.
        patience: Time for which the work is repeated in a process [s].
        limit: Time limit of a process instead of the tasks' own [s].
        say: Callback for progress messages.
    """
    known: dict[Task, Outcome] = {}

    def outcome(comparison: Comparison, task: Task | float, whose: str) -> Outcome:
        if not isinstance(task, Task):
            return Outcome(seconds=task)
        if task not in known:
            say(f"{comparison.key}: measuring {whose}")
            known[task] = measure(task, patience, limit)
            if known[task].missing:
                say(f"{comparison.key}: {whose} is missing: {known[task].missing}")
        return known[task]

    for comparison in comparisons:
        ours = outcome(comparison, comparison.ours, "truesim")
        yield row(comparison, ours, outcome(comparison, comparison.peer, comparison.peer_name))


def row(comparison: Comparison, ours: Outcome, peer: Outcome) -> Row:
    """Row of a comparison from the results of both sides."""
    scale = SCALE[comparison.unit]
    ratio = None if ours.seconds is None or peer.seconds is None else peer.seconds / ours.seconds
    return Row(
        key=comparison.key,
        name=comparison.name,
        ours=None if ours.seconds is None else scale * ours.seconds,
        peer=None if peer.seconds is None else scale * peer.seconds,
        peer_name=comparison.peer_name,
        unit=comparison.unit,
        ratio=ratio,
        target=comparison.target,
        ours_compile=ours.compilation,
        peer_compile=peer.compilation,
        ours_memory=ours.memory,
        peer_memory=peer.memory,
        note=_note(comparison, ours, peer),
    )


def _note(comparison: Comparison, ours: Outcome, peer: Outcome) -> str | None:
    sides = ("truesim", ours), (comparison.peer_name, peer)
    missing = [f"{name} is missing: {outcome.missing}" for name, outcome in sides if outcome.missing]
    if missing:
        return "; ".join(missing)
    if comparison.tolerance is None:
        return None
    pairs = [(np.array(a), np.array(b)) for a, b in zip(ours.outputs, peer.outputs, strict=True)]
    difference = max(float(np.max(np.abs(a - b)) / (1 + np.max(np.abs(b)))) for a, b in pairs)
    agreement = "the same" if difference <= comparison.tolerance else "NOT the same"
    return f"{agreement} results to {comparison.tolerance:g}: {difference:.1e} of 1 + the largest entry"
