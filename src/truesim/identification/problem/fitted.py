"""Model and simulator of a problem at given coordinates, independent of any log."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.problem import Problem
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator


def fitted_model(problem: Problem, theta: Float[np.ndarray, " size"]) -> Model:
    """The model at these coordinates; values that belong to single logs keep their start."""
    return problem.model_at(shared_coordinates(problem, theta), problem.simulator.model)


def fitted_simulator(problem: Problem, theta: Float[np.ndarray, " size"]) -> Simulator:
    """The simulator at these coordinates; values that belong to single logs keep their start."""
    shared = shared_coordinates(problem, theta)
    with jax.enable_x64(True):
        simulator = problem.slots.write(problem.simulator, jnp.asarray(shared[problem.columns[0]]))
        return problem.trained.write(simulator, jnp.asarray(shared[problem.solved.size :]))


def shared_coordinates(problem: Problem, theta: Float[np.ndarray, " size"]) -> Float[np.ndarray, " size"]:
    """The coordinates, with the start values of parameters that belong to single logs."""
    shared = theta.copy()
    for parameter, at in zip(problem.parameters, problem.parameters.slices(), strict=True):
        if parameter.log is not None:
            shared[at] = parameter.transform.coordinates(parameter.start)
    return shared


def coordinates_of(problem: Problem, values: Mapping[str, object]) -> Float[np.ndarray, " size"]:
    """Coordinates of values by path, within the bounds of a problem."""
    low, high = problem.parameters.bounds
    coordinates = [p.transform.coordinates(values[p.name]) for p in problem.parameters]
    return np.clip(np.concatenate([np.zeros(0), *coordinates]), low, high)


def same_values(problem: Problem, theta: Float[np.ndarray, " size"], other: Problem) -> Float[np.ndarray, " size"]:
    """Coordinates of the same values in a problem with other bounds and scales.

    Args:
        problem: A problem.
        theta: Its coordinates.
        other: A problem with parameters of the same names.
    """
    values = {p.name: v for p, v in zip(problem.parameters, problem.parameters.values(theta), strict=True)}
    return coordinates_of(other, {name: np.asarray(value) for name, value in values.items()})
