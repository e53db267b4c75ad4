"""Blueprints as files: TOML with a table `[[rule]]` for each rule."""

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truesim.core.errors import FileError, TruesimError, unknown_name
from truesim.physics.augmentation.networks import MLP, RECIPES, AbstractRecipe
from truesim.physics.blueprint.blueprint import Blueprint, Rule

KEYS = tuple(field.name for field in dataclasses.fields(Rule))


def read_blueprint(path: str | os.PathLike[str]) -> Blueprint:
    """Blueprint in a TOML file."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no blueprint file {path}.")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read as TOML: {error}.") from None
    try:
        return blueprint_of(document)
    except TruesimError as error:
        raise FileError(f"{path}: {error}") from None


def blueprint_of(document: Mapping[str, Any]) -> Blueprint:
    """Blueprint described by the content of a file."""
    for key in document:
        if key != "rule":
            raise unknown_name("table of a blueprint", key, ["rule"])
    rules = document.get("rule", [])
    if not rules or not isinstance(rules, list):
        raise TruesimError("A blueprint holds at least one rule: a table [[rule]] with output and inputs.")
    return Blueprint(tuple(_rule(rule) for rule in rules))


def description_of(blueprint: Blueprint) -> dict[str, Any]:
    """Content of a file that describes a blueprint; custom networks by the name of their class."""
    return {"rule": [_description(rule) for rule in blueprint.rules]}


def _rule(table: Mapping[str, Any]) -> Rule:
    for key in table:
        if key not in KEYS:
            raise unknown_name("key of a rule", key, KEYS)
    if "output" not in table:
        raise TruesimError(f"A rule needs an output, such as output = 'joint.damping_torque'; it has {sorted(table)}.")
    for key in ("inputs", "names"):
        if not _is_texts(table.get(key, [])):
            raise TruesimError(f"{key} of the rule for {table['output']} must be a list of texts, not {table[key]!r}.")
    for key in ("penalty", "size"):
        if isinstance(table.get(key, 1.0), bool) or not isinstance(table.get(key, 1.0), int | float):
            raise TruesimError(f"{key} of the rule for {table['output']} must be a number, not {table[key]!r}.")
    if not isinstance(table.get("scales", {}), Mapping):
        raise TruesimError(
            f"scales of the rule for {table['output']} must be a table, such as {{'joint.velocity' = 5.0}}, not "
            f"{table['scales']!r}."
        )
    return Rule(**{**table, "network": _recipe(table.get("network", {}))})


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


def _recipe(table: Mapping[str, Any]) -> AbstractRecipe:
    if not isinstance(table, Mapping):
        raise TruesimError(f"network must be a table, such as {{kind = 'mlp', hidden = [8]}}, not {table!r}.")
    numbers = dict(table)
    kind = numbers.pop("kind", MLP.kind)
    if kind not in RECIPES:
        raise unknown_name("kind of network", kind, RECIPES)
    valid = [field.name for field in dataclasses.fields(RECIPES[kind])]
    for key in numbers:
        if key not in valid:
            raise unknown_name(f"key of a network of kind {kind!r}", key, ["kind", *valid])
    needed = [f.name for f in dataclasses.fields(RECIPES[kind]) if f.default is dataclasses.MISSING]
    for key in needed:
        if key not in numbers:
            raise TruesimError(f"A network of kind {kind!r} needs {key}; it has {sorted(numbers)}.")
    many = {f.name for f in dataclasses.fields(RECIPES[kind]) if isinstance(f.default, tuple)}
    for key, value in numbers.items():
        if isinstance(value, list | tuple) != (key in many):
            form = "a list, such as [8, 8]" if key in many else "a single value, no list"
            raise TruesimError(f"{key} of a network of kind {kind!r} must be {form}; it is {value!r}.")
    return RECIPES[kind](**numbers)


def _description(rule: Rule) -> dict[str, Any]:
    table = {key: getattr(rule, key) for key in KEYS if key != "network" and getattr(rule, key) is not None}
    table |= {"inputs": list(rule.inputs), "names": list(rule.names), "scales": dict(rule.scales)}
    network = rule.network
    if isinstance(network, AbstractRecipe):
        return table | {"network": {"kind": network.kind, **dataclasses.asdict(network)}}
    return table | {"network": {"kind": type(network).__name__}}
