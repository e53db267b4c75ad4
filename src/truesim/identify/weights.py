"""Weights of networks among the parameters: `networks/<rule>`, a vector each."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.core.typing import Array, Bool, Float
from truesim.model.paths import Path
from truesim.parameters import Parameter, ParameterSet, Prior, Target
from truesim.parameters.parameter import write
from truesim.parameters.transforms import Linear
from truesim.simulate import Blueprint, Simulator, Trained

NETWORKS = "networks"
"""The group of paths that name networks."""


def is_network(parameter: Parameter) -> bool:
    """Whether a parameter is all weights of a network."""
    return parameter.targets[0].path.group == NETWORKS


def network_parameters(simulator: Simulator, blueprint: Blueprint | Trained) -> tuple[Parameter, ...]:
    """All weights of each network of a simulator, as one parameter that is held near its start by the rule's penalty.

    The penalty `R |w - w0|^2` is that of a Gaussian prior with the standard deviation `1 / sqrt(R)`.
    """
    assert simulator.learned is not None, "a simulator with a blueprint has networks"
    found = []
    for k, rule in enumerate(blueprint.rules):
        start = np.asarray(simulator.learned.weights(k), float)
        place = Target(Path(f"{NETWORKS}/{rule.name}", "weights", NETWORKS, k))
        prior = Prior(start, np.full(start.shape, rule.penalty**-0.5)) if rule.penalty > 0 else None
        everywhere = np.full(start.shape, np.inf)
        found.append(Parameter((place,), Linear(1.0, start.shape), start, -everywhere, everywhere, "1", prior))
    return tuple(found)


def network_coordinates(parameters: ParameterSet) -> Bool[np.ndarray, "size"]:
    """Which coordinates are weights of networks."""
    return np.concatenate([np.zeros(0, bool), *(np.full(p.size, is_network(p)) for p in parameters)])


def written(simulator: Simulator, parameters: ParameterSet, theta: Float[Array, "size"]) -> Simulator:
    """The simulator with these values, of the robot and of its networks."""
    model, learned = simulator.model, simulator.learned
    for parameter, value in zip(parameters, parameters.values(theta), strict=True):
        for place in parameter.targets:
            if place.path.group == NETWORKS:
                assert learned is not None, "weights belong to a network"
                learned = learned.with_weights(int(place.path.index or 0), value)
            else:
                model = write(model, place, value)
    return simulator.with_parts(model, learned)


def trained(blueprint: Blueprint | Trained, parameters: ParameterSet, theta: Float[np.ndarray, "size"]) -> Trained:
    """The networks of a blueprint with the weights at these coordinates."""
    plan = blueprint.blueprint if isinstance(blueprint, Trained) else blueprint
    places = [s for p, s in zip(parameters, parameters.slices(), strict=True) if is_network(p)]
    return Trained(plan, {rule.name: theta[at].copy() for rule, at in zip(plan.rules, places, strict=True)})


def remembered(simulator: Simulator) -> int:
    """How many numbers networks remember from step to step."""
    if simulator.learned is None:
        return 0
    with jax.enable_x64(True):
        return ravel_pytree(simulator.learned.first_memory())[0].size
