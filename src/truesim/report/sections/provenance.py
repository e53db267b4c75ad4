"""Provenance of a fit: input files, versions, options and the command that repeats it."""

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truesim.report import document as decisions
from truesim.report import numbers

COMMAND_WIDTH = 100
"""Longest line of the command [characters]."""
DIGEST_DIGITS = 12
"""Digits of a file's hash that are shown."""
OPTION_MEANINGS = {
    "prior_width": "standard deviation of the default prior on every coordinate",
    "misfit_factor": "growth of the residuals from short windows to whole logs above which short windows are kept",
}
"""Meanings of options in `fit.json`."""
FLAG_NAMES = {"law": "actuator-model", "barrier": "smoothing"}
"""Flags of options whose name in `fit.json` is an older one."""
FILE_ROLES = {"robot": "robot", "logs": "log of the fit", "holdout": "held-out log"}


@dataclasses.dataclass(frozen=True)
class ProvenanceFile:
    """An input file of the fit."""

    role: str
    name: str
    path: str
    digest: str


@dataclasses.dataclass(frozen=True)
class OptionRow:
    """A number that decided, by name."""

    name: str
    value: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Inputs of the fit."""

    files: tuple[ProvenanceFile, ...]
    command: str
    attached: Mapping[str, str]
    """Text of further files that the command needs, by name."""
    versions: Mapping[str, str]
    compile_seconds: float
    solve_seconds: float
    """CPU time [s]."""
    windows: int
    window_seconds: float
    """Length of the fit's windows [s]."""
    fingerprint: str
    contact: str
    """Contact model, in words."""
    options: tuple[OptionRow, ...]
    """Prior width and thresholds that decided."""


def provenance(document: Mapping[str, Any], folder: Path) -> Provenance:
    """The provenance of the fit in `folder`."""
    source, timing = document["provenance"], document["timing"]
    return Provenance(
        files=tuple(_files(source)),
        command=command(source, folder),
        attached={
            _file_name(name): json.dumps(value, indent=1)
            for name, value in source["request"]["options"].items()
            if isinstance(value, Mapping)
        },
        versions=source["versions"],
        compile_seconds=timing["compile_seconds"],
        solve_seconds=timing["solve_cpu_seconds"],
        windows=document["windows"]["count"],
        window_seconds=document["windows"]["seconds"],
        fingerprint=source["request"]["fingerprint"][:DIGEST_DIGITS],
        contact=source.get("contact", "none"),
        options=tuple(_options(document)),
    )


def command(source: Mapping[str, Any], folder: Path) -> str:
    """The command that repeats the fit."""
    request = source["request"]
    options = {"free": request["free"], "holdout": [f["file"] for f in source["holdout"]], **request["options"]}
    words = ["truesim", "identify", source["robot"]["file"], *(f["file"] for f in source["logs"])]
    for name, value in options.items():
        words += _option(name, value)
    return wrapped_command([*words, "--out", folder.name or ".", "--force"])


def _option(name: str, value: Any) -> list[str]:
    flag = "--" + FLAG_NAMES.get(name, name.replace("_", "-"))
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, Mapping):
        return [flag, _file_name(name)]
    if isinstance(value, list):
        return [flag, *map(_text, value)] if value else []
    return [flag, _text(value)]


def wrapped_command(words: Sequence[str], width: int = COMMAND_WIDTH) -> str:
    """Words of a command quoted for a shell, with line breaks before options and after `width` characters."""
    lines = [""]
    for word in map(shlex.quote, words):
        if lines[-1] and (word.startswith("--") or len(lines[-1]) + len(word) > width):
            lines.append("  " + word)
        else:
            lines[-1] += " " * bool(lines[-1]) + word
    return " \\\n".join(lines)


def _file_name(name: str) -> str:
    """Name of the file that holds an option with a table as its value."""
    return f"{name}.json"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _files(source: Mapping[str, Any]) -> Iterator[ProvenanceFile]:
    for key, role in FILE_ROLES.items():
        entries = source[key] if isinstance(source[key], list) else [source[key]]
        for entry in entries:
            path = Path(entry["file"])
            yield ProvenanceFile(role, path.name, str(path), entry["sha256"][:DIGEST_DIGITS])


def _options(document: Mapping[str, Any]) -> Iterator[OptionRow]:
    for name, value in decisions.options(document).items():
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        yield OptionRow(
            name, numbers.number(value, 4) if numeric else str(value or "automatic"), OPTION_MEANINGS.get(name, "")
        )
