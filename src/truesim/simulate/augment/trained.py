"""Trained networks and the folder that holds them: `networks.json` says what they are, `networks.npz` holds numbers."""

import dataclasses
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.typing import Float
from truesim.simulate.augment.blueprint import Blueprint, Rule
from truesim.simulate.augment.file import blueprint_of, description_of
from truesim.simulate.augment.learned import Learned
from truesim.simulate.augment.networks import RECIPES
from truesim.simulate.simulator import Simulator

SCHEMA = "truesim.networks/1"
DESCRIPTION, NUMBERS = "networks.json", "networks.npz"


@dataclasses.dataclass(frozen=True)
class Trained:
    """A blueprint whose networks have been trained."""

    blueprint: Blueprint
    weights: Mapping[str, Float[np.ndarray, "numbers"]]
    """All numbers of each rule's network, by the rule's name."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the blueprint."""
        return self.blueprint.rules

    def build(self, simulator: Simulator) -> Learned:
        """The networks for this simulator, with their weights."""
        learned = self.blueprint.build(simulator)
        for k, name in enumerate(learned.names):
            expected, held = np.shape(learned.weights(k)), self.weights[name].shape
            if held != expected:
                raise TruesimError(
                    f"The network {name} was trained with {held[0]} weights and has {expected[0]} on this robot: "
                    "it belongs to another one."
                )
            learned = learned.with_weights(k, self.weights[name])
        return learned


def write_networks(trained: Trained, folder: str | os.PathLike[str]) -> None:
    """Writes both files; they hold numbers and text only."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {f"weights_{k}": trained.weights[rule.name] for k, rule in enumerate(trained.rules)}
    part = folder / f".part.{NUMBERS}"
    np.savez(part, allow_pickle=False, **numbers)
    part.replace(folder / NUMBERS)
    document = {"schema": SCHEMA, **description_of(trained.blueprint)}
    part = folder / f".part.{DESCRIPTION}"
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(folder / DESCRIPTION)


def has_networks(folder: Path) -> bool:
    """Whether a folder holds networks."""
    return (folder / DESCRIPTION).is_file()


def read_networks(folder: str | os.PathLike[str], blueprint: Blueprint | None = None) -> Trained:
    """The networks in a folder.

    Args:
        folder: Where `write_networks`, or a fit, has put them.
        blueprint: Needed for networks of a user's own class, which no file can describe.
    """
    folder = Path(folder)
    if not has_networks(folder):
        raise FileError(f"{folder} holds no networks: it has no {DESCRIPTION}.")
    try:
        document = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if document.pop("schema", None) != SCHEMA:
            raise FileError(f"{folder / DESCRIPTION} has another layout; this version reads {SCHEMA!r}.")
        with np.load(folder / NUMBERS, allow_pickle=False) as file:
            numbers = [np.asarray(file[f"weights_{k}"], float) for k in range(len(document["rule"]))]
    except (json.JSONDecodeError, OSError, EOFError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise FileError(f"The networks in {folder} cannot be read: {error}.") from None
    if blueprint is None:
        own = [table["network"]["kind"] for table in document["rule"] if table["network"]["kind"] not in RECIPES]
        if own:
            raise FileError(f"{folder} holds networks of the class {own[0]}: give their blueprint to read_networks.")
        blueprint = blueprint_of(document)
    names = [rule.name for rule in blueprint.rules]
    return Trained(blueprint, dict(zip(names, numbers, strict=True)))
