"""The verdict in plain words, and what was found in a few sentences."""

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truesim.identify.verdict import CONVERGED, DIVERGED, DOES_NOT_FIT, INTERRUPTED, NOT_IDENTIFIABLE
from truesim.report import numbers
from truesim.report.sections.errors import typical_factor
from truesim.report.sections.parameters import Number, split


@dataclasses.dataclass(frozen=True)
class Headline:
    """The top of the page."""

    subject: str
    """What was fitted to what."""
    verdict: str
    tone: str
    """`good`, `warn`, `bad` or `idle`."""
    words: str
    """What the verdict means for whoever uses the result."""
    reasons: tuple[str, ...]
    found: tuple[str, ...]
    """What was found, in sentences."""


WORDS = {
    CONVERGED: ("good", "The search came to rest, and the logs determine every free parameter."),
    NOT_IDENTIFIABLE: (
        "warn",
        "The search came to rest, but the logs do not determine all free parameters. Together they describe "
        "motions like these; do not use the flagged values on their own.",
    ),
    DOES_NOT_FIT: (
        "bad",
        "The simulated robot does not move like the measured one, whatever the free parameters are: do not trust the "
        "values. Something in the robot, or in the logs, is not in the model.",
    ),
    DIVERGED: ("bad", "The search did not come to rest: do not trust the values."),
    INTERRUPTED: ("idle", "The fit was stopped before its end; the same command goes on from here."),
}


def headline(document: Mapping[str, Any], window: float) -> Headline:
    """The top of the page of a fit whose errors were taken over windows of `window` seconds."""
    tone, words = WORDS.get(document["verdict"], ("idle", ""))
    return Headline(
        subject=_subject(document["provenance"]),
        verdict=document["verdict"],
        tone=tone,
        words=words,
        reasons=tuple(dict.fromkeys(document["reasons"])),
        found=tuple(_found(document, window)),
    )


def _subject(source: Mapping[str, Any]) -> str:
    logs, others = len(source["logs"]), len(source["holdout"])
    name = Path(source["robot"]["file"]).name
    return f"{name}, fitted to {logs} log{'s' * (logs > 1)}" + (f", checked on {others} held out" if others else "")


def _found(document: Mapping[str, Any], window: float) -> Iterator[str]:
    every = [number for entry in document["parameters"] for number in split(entry)]
    if every:
        yield _how_sure(every)
        yield from _largest_change(every)
    trained, held_out = (typical_factor(document, part) for part in ("train", "held_out"))
    if trained is not None:
        others = "" if held_out is None else f" and {_closer(held_out)} held-out logs"
        seen = f"{_closer(trained)} the logs of the fit{others}"
        yield (
            f"Over {numbers.number(window)} s without correction, the simulated robot stays {seen} than with the start "
            "values."
        )


def _how_sure(every: Sequence[Number]) -> str:
    known = [n for n in every if n.known]
    count = f"All {len(every)} values" if len(known) == len(every) > 1 else f"{len(known)} of {len(every)} values"
    spreads = [n.spread for n in known if math.isfinite(n.spread)]
    if not spreads:
        return f"{count} are determined by the logs."
    verb = "is" if len(known) == 1 else "are"
    return f"{count} {verb} determined, typically to within {numbers.percent(statistics.median(spreads))}."


def _largest_change(every: Sequence[Number]) -> Iterator[str]:
    moved = [n for n in every if n.known and n.ratio is not None and n.spread < 0.5]
    if moved:
        most = max(moved, key=lambda n: abs(math.log(n.ratio or 1.0)))
        start, value = numbers.number(most.start), numbers.number(most.value, 2 if most.spread > 0.05 else 3)
        yield f"{most.label} changed most: from {start} to {value} {most.unit}".rstrip() + "."


def _closer(factor: float) -> str:
    return (
        f"{numbers.times(factor)} times closer to" if factor >= 1 else f"{numbers.times(1 / factor)} times farther from"
    )
