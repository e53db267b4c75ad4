"""Decisions of a fit as `fit.json` holds them. Pages read them here and decide nothing again.

The file's newer keys are read where they are present, else the older ones: `status` (older: `verdict`),
`not_identifiable` (older: `unseen`) and `diagnostics` (older: parsed from the sentences of `reasons`).
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from truesim.identification.diagnose.messages import explain_group
from truesim.identification.diagnose.status import Code

LIMITED_ELEMENTS = re.compile(r"not identifiable in \[(?P<elements>[\d, ]+)\]")
SENTENCE_CODES = (
    (
        Code.RESIDUAL_ABOVE_NOISE,
        re.compile(r"(?P<row>.+?): residuals of \S+ are (?P<value>\S+) times the sensor's noise"),
    ),
    (Code.UNEXPLAINED_MOTION, re.compile(r"(?P<row>.+?): the residual of \S+ is (?P<value>\S+) % of the motion")),
    (Code.HELD_OUT_WORSE, re.compile(r"(?P<row>.+?): the error on held-out logs, \S+, is (?P<value>\S+) times")),
)
"""Codes of the sentences in files without the key `diagnostics`."""


@dataclasses.dataclass(frozen=True)
class ReportedDiagnostic:
    """A diagnostic of the fit: code, row of the residual and ratio, and the sentence that states it."""

    code: Code
    row: str | None
    value: float | None
    """Ratio to what the residual or error is compared with."""
    sentence: str


def status(document: Mapping[str, Any]) -> str:
    """Status of the fit, such as `converged` or `not identifiable`."""
    return str(document["status"] if "status" in document else document["verdict"])


def not_identifiable(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences on parameters and combinations that the logs do not determine."""
    if "not_identifiable" not in document:
        return tuple(document["unseen"])
    return tuple(explain_group(tuple(group)) for group in document["not_identifiable"])


def reasons(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences that explain the status, each once."""
    if "reasons" in document:
        return tuple(dict.fromkeys(document["reasons"]))
    return tuple(dict.fromkeys(found.sentence for found in diagnostics(document)))


def diagnostics(document: Mapping[str, Any]) -> tuple[ReportedDiagnostic, ...]:
    """Diagnostics of the fit, in the order of the file."""
    if "diagnostics" in document:
        return tuple(
            ReportedDiagnostic(Code(d["code"]), next(iter(d["subjects"]), None), d["ratio"], d["sentence"])
            for d in document["diagnostics"]
        )
    return tuple(found for sentence in document.get("reasons", ()) for found in _coded(sentence))


def options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Prior width and thresholds behind the estimates and the status, by name; empty for files without them."""
    given = document.get("options")
    if not given:
        return {}
    return {"prior_width": given["problem"]["prior_width"], **given["solve"], **given["diagnose"]}


def is_flagged(entry: Mapping[str, Any]) -> bool:
    """True if the fit flagged a parameter, or some of its elements, as not identifiable."""
    return any("not identifiable" in flag for flag in entry["flags"])


def flagged_elements(entry: Mapping[str, Any]) -> frozenset[int]:
    """Elements of a parameter that the fit flagged as not identifiable.

    A flag that names elements holds for those. A flag on some combination of elements (`partly not identifiable`) holds
    for all: none of them may be used on its own.
    """
    count = len(entry["value"]) if isinstance(entry["value"], Sequence) else 1
    named: set[int] = set()
    for flag in entry["flags"]:
        if match := LIMITED_ELEMENTS.fullmatch(flag):
            named |= {int(k) for k in match["elements"].split(",")}
        elif "not identifiable" in flag:
            return frozenset(range(count))
    return frozenset(named)


def _coded(sentence: str) -> Iterator[ReportedDiagnostic]:
    for code, pattern in SENTENCE_CODES:
        if match := pattern.match(sentence):
            yield ReportedDiagnostic(code, match["row"], _number(match["value"]), sentence)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
