"""Output folder of suggestions.

- `suggest.json`: every port with its scores; `schema` names the layout.
- `blueprint-1.toml` and so on: one blueprint for each of the best ports, for `truesim identify --blueprint`.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

from truesim.core.persistence.toml import toml_lines
from truesim.identification.diagnose.score_test import alternative_document
from truesim.identification.suggestion.api import Suggestion, Suggestions
from truesim.physics.blueprint import Blueprint
from truesim.physics.blueprint.file import description_of

SUGGEST_SCHEMA = "truesim.suggest/1"
WRITTEN_BLUEPRINTS = 3
"""Maximum number of blueprints that are written."""
WRITTEN_FRACTION = 0.5
"""A blueprint is written if it explains at least this fraction of the error that the best one explains."""


def write_suggestions(found: Suggestions, folder: Path) -> list[Path]:
    """Write the folder, and return the paths of its blueprints."""
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
        "schema": SUGGEST_SCHEMA,
        "needed": found.needed,
        "sentence": found.sentence,
        "remaining": found.remaining,
        "window": found.window,
        "alternatives": [alternative_document(a) for a in found.alternatives],
        "suggestions": [_plain(suggestion) for suggestion in found.found],
    }


def blueprint_text(suggestion: Suggestion) -> str:
    """Text of a blueprint file with the rule of a suggestion."""
    where, part = ", ".join(suggestion.names), 100 * suggestion.explained
    head = f"# {suggestion.kind} at {where}: explains {part:.0f} % of the error\n"
    rules = description_of(Blueprint((suggestion.rule,)))["rule"]
    return head + "".join(f"\n[[rule]]\n{toml_lines(rule)}" for rule in rules)


def _worth_trying(found: Suggestions) -> list[Suggestion]:
    if not found.needed:
        return []
    least = WRITTEN_FRACTION * found.found[0].explained
    return [s for s in found.found if s.explained >= least][:WRITTEN_BLUEPRINTS]


def _plain(suggestion: Suggestion) -> dict[str, Any]:
    curve = suggestion.curve
    return {
        "port": suggestion.port,
        "inputs": list(suggestion.inputs),
        "kind": str(suggestion.kind),
        "names": list(suggestion.names),
        "explained": suggestion.explained,
        "error": suggestion.error,
        "reach": suggestion.reach,
        "rule": description_of(Blueprint((suggestion.rule,)))["rule"][0],
        "curve": None if curve is None else dataclasses.asdict(curve) | {"x": curve.x.tolist(), "y": curve.y.tolist()},
    }
