"""Trained networks and their folder: `networks.json` describes them, `networks.npz` holds the weights."""

import dataclasses
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from truesim.core.errors import FileError, TruesimError, parsing
from truesim.core.typing import Float
from truesim.physics.augmentation.learned import LearnedPhysics
from truesim.physics.augmentation.networks import RECIPES
from truesim.physics.blueprint.blueprint import Blueprint, Rule
from truesim.physics.blueprint.file import blueprint_of, description_of
from truesim.physics.simulation.simulator import Simulator

NETWORKS_SCHEMA = "truesim.networks/1"
DESCRIPTION_FILE, WEIGHTS_FILE = "networks.json", "networks.npz"


@dataclasses.dataclass(frozen=True)
class Trained:
    """A blueprint whose networks have been trained."""

    blueprint: Blueprint
    weights: Mapping[str, Float[np.ndarray, " numbers"]]
    """All numbers of each rule's network, by the rule's name."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of the blueprint."""
        return self.blueprint.rules

    def build(self, simulator: Simulator) -> LearnedPhysics:
        """Networks for this simulator, with their weights."""
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
    """Write both files; they hold numbers and text only."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {f"weights_{k}": trained.weights[rule.name] for k, rule in enumerate(trained.rules)}
    part = folder / f".part.{WEIGHTS_FILE}"
    np.savez(part, allow_pickle=False, **numbers)
    part.replace(folder / WEIGHTS_FILE)
    document = {"schema": NETWORKS_SCHEMA, **description_of(trained.blueprint)}
    part = folder / f".part.{DESCRIPTION_FILE}"
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(folder / DESCRIPTION_FILE)


def has_networks(folder: Path) -> bool:
    """True if a folder holds networks."""
    return (folder / DESCRIPTION_FILE).is_file()


def read_networks(folder: str | os.PathLike[str], blueprint: Blueprint | None = None) -> Trained:
    """Networks in a folder.

    Args:
        folder: Folder written by `write_networks` or by a fit.
        blueprint: Needed for networks of a custom class, which no file can describe.
    """
    with parsing(str(folder), "a folder of networks"):
        return _read(Path(folder), blueprint)


def _read(folder: Path, blueprint: Blueprint | None) -> Trained:
    if not has_networks(folder):
        raise FileError(f"{folder} holds no networks: it has no {DESCRIPTION_FILE}.")
    try:
        document = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        if document.pop("schema", None) != NETWORKS_SCHEMA:
            raise FileError(f"{folder / DESCRIPTION_FILE} has another layout; this version reads {NETWORKS_SCHEMA!r}.")
        with np.load(folder / WEIGHTS_FILE, allow_pickle=False) as file:
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
