"""Top of a fit's page: the status in words, and a summary of the results."""

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truesim.report import numbers
from truesim.report.document import reasons, status
from truesim.report.sections.errors import typical_factor
from truesim.report.sections.parameters import ParameterElement, split


@dataclasses.dataclass(frozen=True)
class Headline:
    """Values of the page's header."""

    subject: str
    """Robot file and number of logs."""
    status: str
    tone: str
    """`good`, `warn`, `bad` or `idle`."""
    words: str
    """Meaning of the status for a user of the result."""
    reasons: tuple[str, ...]
    found: tuple[str, ...]
    """Summary of the results, in sentences."""


STATUS_WORDS = {
    "converged": ("good", "The solver converged, and the logs determine every free parameter."),
    "not identifiable": (
        "warn",
        "The solver converged, but the logs do not determine all free parameters. Together they describe motions like "
        "these; do not use the flagged values on their own.",
    ),
    "model does not fit": (
        "bad",
        "The logs contradict the model with every value of its free parameters: do not trust the values. Something in "
        "the robot, or in the logs, is not in the model, or a parameter that is fixed is wrong.",
    ),
    "diverged": ("bad", "The solver did not converge: do not trust the values."),
    "iteration limit": (
        "warn",
        "The solver reached its iteration limit before it converged: more iterations may improve the values.",
    ),
    "stalled": ("bad", "The solver stalled before it converged: do not trust the values."),
    "interrupted": ("idle", "The fit was stopped early. The same command resumes it."),
}
"""Tone and meaning of every status in `fit.json`."""


def headline(document: Mapping[str, Any], window: float) -> Headline:
    """Header of the page of a fit.

    Args:
        document: Content of `fit.json`.
        window: Length of the windows of the open-loop errors [s].
    """
    code = status(document)
    tone, words = STATUS_WORDS.get(code, ("idle", ""))
    return Headline(
        subject=_subject(document["provenance"]),
        status=code,
        tone=tone,
        words=words,
        reasons=reasons(document),
        found=tuple(_summary(document, window)),
    )


def _subject(source: Mapping[str, Any]) -> str:
    logs, others = len(source["logs"]), len(source["holdout"])
    name = Path(source["robot"]["file"]).name
    return f"{name}, fitted to {logs} log{'s' * (logs > 1)}" + (f", tested on {others} held out" if others else "")


def _summary(document: Mapping[str, Any], window: float) -> Iterator[str]:
    every = [element for entry in document["parameters"] for element in split(entry)]
    if every and status(document) != "model does not fit":
        yield _identified_count(every)
        yield from _largest_change(every)
    for entry in document.get("alternatives", [])[:1]:
        low, high = (numbers.number(x) for x in entry["found"])
        share = numbers.percent(entry["explained"])
        yield f"Free {entry['pattern']} (about {low} to {high} {entry['unit']}): it explains {share} of the residual."
    trained, held_out = (typical_factor(document, part) for part in ("train", "held_out"))
    if trained is not None:
        others = "" if held_out is None else f" and {_closer(held_out)} held-out logs"
        yield (
            f"Over {numbers.number(window)} s of open-loop simulation, the robot stays {_closer(trained)} the logs of "
            f"the fit{others} than with the start values."
        )


def _identified_count(every: Sequence[ParameterElement]) -> str:
    known = [e for e in every if e.identifiable]
    count = f"All {len(every)} values" if len(known) == len(every) > 1 else f"{len(known)} of {len(every)} values"
    verb = "is" if len(known) == 1 else "are"
    widths = [e.relative_half_width for e in known if math.isfinite(e.relative_half_width)]
    if not widths:
        return f"{count} {verb} identifiable."
    return (
        f"{count} {verb} identifiable, with a typical 95 % interval of ±{numbers.percent(statistics.median(widths))}."
    )


def _largest_change(every: Sequence[ParameterElement]) -> Iterator[str]:
    moved = [e for e in every if e.identifiable and e.ratio is not None]
    if moved:
        most = max(moved, key=lambda e: abs(math.log(e.ratio or 1.0)))
        digits = 2 if most.relative_half_width > 0.05 else 3
        start, value = numbers.number(most.start), numbers.number(most.value, digits)
        yield f"{most.label} changed most: from {start} to {value} {most.unit}".rstrip() + "."


def _closer(factor: float) -> str:
    return (
        f"{numbers.times(factor)} times closer to" if factor >= 1 else f"{numbers.times(1 / factor)} times farther from"
    )
