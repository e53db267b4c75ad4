"""Weights of networks as parameters: one vector `networks/<rule>` for each rule."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.core.typing import Bool, Float
from truesim.physics.blueprint import Blueprint, Trained
from truesim.physics.model.paths import Path
from truesim.physics.parameters import Parameter, ParameterSet, Prior, Target
from truesim.physics.parameters.transforms import Linear
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.named_values import NETWORKS


def is_network(parameter: Parameter) -> bool:
    """True if a parameter is the vector of weights of a network."""
    return parameter.targets[0].path.group == NETWORKS


def network_parameters(simulator: Simulator, blueprint: Blueprint | Trained) -> tuple[Parameter, ...]:
    """One parameter for each network of a simulator: all its weights, with the prior that the rule's penalty implies.

    The penalty `R |w - w0|^2` is a Gaussian prior with the standard deviation `1 / sqrt(R)`.
    """
    assert simulator.learned is not None, "a simulator with a blueprint has networks"
    found = []
    for k, rule in enumerate(blueprint.rules):
        start = np.asarray(simulator.learned.weights(k), float)
        target = Target(Path(f"{NETWORKS}/{rule.name}", "weights", NETWORKS, k))
        prior = Prior(start, np.full(start.shape, rule.penalty**-0.5)) if rule.penalty > 0 else None
        unbounded = np.full(start.shape, np.inf)
        found.append(Parameter((target,), Linear(1.0, start.shape), start, -unbounded, unbounded, "1", prior))
    return tuple(found)


def network_coordinates(parameters: ParameterSet) -> Bool[np.ndarray, " size"]:
    """Mask of the coordinates that are network weights."""
    return np.concatenate([np.zeros(0, bool), *(np.full(p.size, is_network(p)) for p in parameters)])


def trained_networks(
    blueprint: Blueprint | Trained, parameters: ParameterSet, theta: Float[np.ndarray, " size"]
) -> Trained:
    """The networks of a blueprint with the weights at these coordinates."""
    spec = blueprint.blueprint if isinstance(blueprint, Trained) else blueprint
    slices = [s for p, s in zip(parameters, parameters.slices(), strict=True) if is_network(p)]
    return Trained(spec, {rule.name: theta[at].copy() for rule, at in zip(spec.rules, slices, strict=True)})


def memory_size(simulator: Simulator) -> int:
    """Number of values in the memory of the networks."""
    if simulator.learned is None:
        return 0
    with jax.enable_x64(True):
        return ravel_pytree(simulator.learned.initial_memory())[0].size
