"""Networks of PyTorch within the physics: recipes for blueprints, weights, and trained networks."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from truesim.core.errors import TruesimError, unknown_name
from truesim.physics.augmentation.networks import MLP
from truesim.physics.blueprint import Blueprint, Trained

TORCH_ACTIVATIONS: dict[type[nn.Module], str] = {
    nn.Tanh: "tanh",
    nn.Softplus: "softplus",
    nn.Sigmoid: "sigmoid",
    nn.ReLU: "relu",
    nn.Softsign: "softsign",
}
"""Modules between layers, and their names in blueprints."""


def recipe(module: nn.Module) -> MLP:
    """Recipe of a blueprint's network with the layers of a PyTorch module.

    Args:
        module: `nn.Linear`, or an `nn.Sequential` of linear layers with one kind of activation between them.
    """
    layers, activation = _parts(module)
    hidden = tuple(layer.out_features for layer in layers[:-1])
    return MLP(hidden, activation, bias=layers[0].bias is not None)


def weights(module: nn.Module) -> Tensor:
    """All weights of a module as one vector in the order of a blueprint's network; gradients flow through it."""
    layers, _ = _parts(module)
    biases = [layer.bias for layer in layers if layer.bias is not None]
    return torch.cat([x.reshape(-1) for x in (*(layer.weight for layer in layers), *biases)])


def trained(blueprint: Blueprint, modules: Mapping[str, nn.Module]) -> Trained:
    """Trained networks of a blueprint, with the weights of PyTorch modules.

    They can be written to a folder, attached to MuJoCo, and given to `Simulator.of` as its blueprint.

    Args:
        blueprint: The blueprint; networks of its rules take the layers of the modules.
        modules: A module for each rule, by its name.
    """
    names = [rule.name for rule in blueprint.rules]
    for name in modules:
        if name not in names:
            raise unknown_name("rule", name, names)
    for name in names:
        if name not in modules:
            raise TruesimError(f"The rule {name} has no module; modules are given for {', '.join(modules) or 'none'}.")
    rules = [dataclasses.replace(rule, network=recipe(modules[rule.name])) for rule in blueprint.rules]
    numbers = {name: np.asarray(weights(module).detach().double()) for name, module in modules.items()}
    return Trained(Blueprint(tuple(rules)), numbers)


def _parts(module: nn.Module) -> tuple[list[nn.Linear], str]:
    """Linear layers of a module, and the activation between them."""
    parts = _flat(module)
    layers, between = [x for x in parts[0::2] if isinstance(x, nn.Linear)], parts[1::2]
    kinds = {type(x) for x in between}
    valid = ", ".join(x.__name__ for x in TORCH_ACTIVATIONS)
    if len(parts) % 2 == 0 or len(layers) < len(parts[0::2]):
        names = ", ".join(type(x).__name__ for x in parts)
        raise TruesimError(f"A network needs linear layers with activations between them; the module has {names}.")
    if len(kinds) > 1 or not kinds <= set(TORCH_ACTIVATIONS):
        names = ", ".join(sorted(x.__name__ for x in kinds))
        raise TruesimError(f"A network has one kind of activation, not {names}. Valid: {valid}.")
    if any(isinstance(x, nn.Softplus) and (x.beta, x.threshold) != (1, 20) for x in between):
        raise TruesimError("Softplus must have its default beta and threshold.")
    if len({x.bias is None for x in layers}) > 1:
        raise TruesimError("Either all linear layers have biases, or none.")
    return layers, next((TORCH_ACTIVATIONS[kind] for kind in kinds), "tanh")


def _flat(module: nn.Module) -> list[nn.Module]:
    if isinstance(module, nn.Sequential):
        return [part for child in module for part in _flat(child)]
    return [module]
