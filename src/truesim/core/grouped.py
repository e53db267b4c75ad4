"""Sentences that differ only in names and numbers, as one."""

import re
from collections.abc import Iterable, Sequence

VARIABLE_PART = re.compile(r"\S*/\S*|[+-]?\d[\d.e+-]*")
"""Names of columns, and numbers."""
MAX_SUBJECTS = 8
"""Subjects that are listed; `--json` has all."""


def grouped(sentences: Iterable[tuple[str, str]], shown: int = 1) -> list[str]:
    """Sentences `subject: text`, those that differ only in names and numbers told once with a list of subjects.

    Args:
        sentences: Subject and text of each.
        shown: Number of sentences of a group that are told before its other subjects are listed.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for subject, text in sentences:
        groups.setdefault(VARIABLE_PART.sub("", text), []).append((subject, text))
    return [line for group in groups.values() for line in _lines(group, shown)]


def _lines(group: Sequence[tuple[str, str]], shown: int) -> list[str]:
    others = list(dict.fromkeys(subject for subject, _ in group[shown:]))
    lines = [f"{subject}: {text}" for subject, text in group[:shown]]
    if len(group) == shown + 1:
        return [*lines, ": ".join(group[shown])]
    if not others:
        return lines
    rest = f" … ({len(others)} in all)" if len(others) > MAX_SUBJECTS else "."
    return [*lines, f"The same of {', '.join(others[:MAX_SUBJECTS])}{rest}"]
