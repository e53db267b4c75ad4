"""Where a fit came from, and how to run it again."""

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

WIDTH = 100
"""Of a line of the command [characters]."""
DIGITS = 12
"""Of a file's hash."""
ROLES = {"robot": "robot", "logs": "log of the fit", "holdout": "held-out log"}


@dataclasses.dataclass(frozen=True)
class File:
    """A file that went into the fit."""

    role: str
    name: str
    path: str
    digest: str


@dataclasses.dataclass(frozen=True)
class Provenance:
    """What the fit was made from."""

    files: tuple[File, ...]
    command: str
    attached: Mapping[str, str]
    """Text of the files that the command needs besides those, by name."""
    versions: Mapping[str, str]
    compile_seconds: float
    solve_seconds: float
    """CPU time [s]."""
    windows: int
    window_seconds: float
    """Of the windows of the fit."""
    fingerprint: str
    contact: str
    """Law of contact, in words."""


def provenance(document: Mapping[str, Any], folder: Path) -> Provenance:
    """The provenance of a fit that lies in `folder`."""
    source, timing = document["provenance"], document["timing"]
    return Provenance(
        files=tuple(_files(source)),
        command=command(source, folder),
        attached={
            _attached(name): json.dumps(value, indent=1)
            for name, value in source["request"]["options"].items()
            if isinstance(value, Mapping)
        },
        versions=source["versions"],
        compile_seconds=timing["compile_seconds"],
        solve_seconds=timing["solve_cpu_seconds"],
        windows=document["windows"]["count"],
        window_seconds=document["windows"]["seconds"],
        fingerprint=source["request"]["fingerprint"][:DIGITS],
        contact=source.get("contact", "none"),
    )


def command(source: Mapping[str, Any], folder: Path) -> str:
    """The command that makes the same fit again."""
    request = source["request"]
    options = {"free": request["free"], "holdout": [f["file"] for f in source["holdout"]], **request["options"]}
    words = ["truesim", "identify", source["robot"]["file"], *(f["file"] for f in source["logs"])]
    for name, value in options.items():
        words += _option(name, value)
    return _wrapped([*words, "--out", folder.name or ".", "--force"])


def _option(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, Mapping):
        return [flag, _attached(name)]
    if isinstance(value, list):
        return [flag, *map(_text, value)] if value else []
    return [flag, _text(value)]


def _wrapped(words: Sequence[str]) -> str:
    """Words for a shell; a line ends before an option, or where it would become too long."""
    lines = [""]
    for word in map(shlex.quote, words):
        if lines[-1] and (word.startswith("--") or len(lines[-1]) + len(word) > WIDTH):
            lines.append("  " + word)
        else:
            lines[-1] += " " * bool(lines[-1]) + word
    return " \\\n".join(lines)


def _attached(name: str) -> str:
    """Name of the file of an option that is a table."""
    return f"{name}.json"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _files(source: Mapping[str, Any]) -> Iterator[File]:
    for key, role in ROLES.items():
        entries = source[key] if isinstance(source[key], list) else [source[key]]
        for entry in entries:
            path = Path(entry["file"])
            yield File(role, path.name, str(path), entry["sha256"][:DIGITS])
