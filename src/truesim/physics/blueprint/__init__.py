"""Blueprints: networks within the physics of a simulator, as plain data, files and trained weights."""

from truesim.physics.augmentation.networks import GRU, MLP, Constant, Lagged
from truesim.physics.blueprint.blueprint import Blueprint, Rule
from truesim.physics.blueprint.file import read_blueprint
from truesim.physics.blueprint.trained import Trained, read_networks, write_networks

__all__ = [
    "GRU",
    "MLP",
    "Blueprint",
    "Constant",
    "Lagged",
    "Rule",
    "Trained",
    "read_blueprint",
    "read_networks",
    "write_networks",
]
