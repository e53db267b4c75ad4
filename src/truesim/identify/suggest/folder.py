"""The folder of suggestions: blueprints that are ready for training, and everything as JSON.

- `suggest.json`: every port with its scores. `schema` names the layout.
- `blueprint-1.toml` and so on: the best ports, one blueprint each, for `truesim identify --blueprint`.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truesim.identify.suggest.api import Suggestion, Suggestions
from truesim.simulate import Blueprint
from truesim.simulate.augment.file import description_of

SCHEMA = "truesim.suggest/1"
WRITTEN = 3
"""Blueprints that are written."""
WORTH = 0.5
"""A blueprint is written if it explains at least this part of what the best explains."""


def write_suggestions(found: Suggestions, folder: Path) -> list[Path]:
    """Writes the folder; the blueprints in it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(found), indent=1, allow_nan=False)
    (folder / "suggest.json").write_text(text + "\n", encoding="utf-8")
    written = []
    for k, suggestion in enumerate(_worth_trying(found), start=1):
        path = folder / f"blueprint-{k}.toml"
        path.write_text(blueprint_text(suggestion), encoding="utf-8")
        written.append(path)
    return written


def document(found: Suggestions) -> dict[str, Any]:
    """Suggestions as plain numbers and lists."""
    return {
        "schema": SCHEMA,
        "needed": found.needed,
        "sentence": found.sentence,
        "remaining": found.remaining,
        "window": found.window,
        "suggestions": [_plain(suggestion) for suggestion in found.found],
    }


def blueprint_text(suggestion: Suggestion) -> str:
    """A blueprint file with the rule of a suggestion."""
    where, part = ", ".join(suggestion.names), 100 * suggestion.explained
    head = f"# {suggestion.kind} at {where}: explains {part:.0f} % of the error\n"
    rules = description_of(Blueprint((suggestion.rule,)))["rule"]
    return head + "".join(f"\n[[rule]]\n{_lines(rule)}" for rule in rules)


def _worth_trying(found: Suggestions) -> list[Suggestion]:
    if not found.needed:
        return []
    least = WORTH * found.found[0].explained
    return [s for s in found.found if s.explained >= least][:WRITTEN]


def _plain(suggestion: Suggestion) -> dict[str, Any]:
    curve = suggestion.curve
    return {
        "port": suggestion.port,
        "inputs": list(suggestion.inputs),
        "kind": suggestion.kind,
        "names": list(suggestion.names),
        "explained": suggestion.explained,
        "error": suggestion.error,
        "reach": suggestion.reach,
        "rule": description_of(Blueprint((suggestion.rule,)))["rule"][0],
        "curve": None if curve is None else dataclasses.asdict(curve) | {"x": curve.x.tolist(), "y": curve.y.tolist()},
    }


def _lines(table: Mapping[str, Any]) -> str:
    """A table of a TOML file; tables within it on a line of their own."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return json.dumps(value)
