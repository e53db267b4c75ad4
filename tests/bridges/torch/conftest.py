"""Small simulators as functions of tensors."""

import importlib
from typing import Any

import pytest

from tests.robots import SMOOTH, robot
from truesim.physics.simulation import Simulator


@pytest.fixture(scope="session")
def simulator() -> Simulator:
    """A simulator of two links with servos."""
    return Simulator.of(robot(SMOOTH))


@pytest.fixture(scope="session")
def layer(simulator) -> Any:
    """The same as a module with three numbers to train; tests do not change them."""
    torch = importlib.import_module("torch")
    return importlib.import_module("truesim.torch").Simulate(
        simulator, ["bodies/*.mass", "joints/a.damping"], dtype=torch.float64
    )


@pytest.fixture
def batch(layer):
    """Function that makes initial states and commands of a shape."""
    torch = importlib.import_module("torch")

    def make(*axes: int, steps: int = 4):
        generator = torch.Generator().manual_seed(7)

        def random(*shape: int):
            return torch.randn(*axes, *shape, generator=generator, dtype=torch.float64).requires_grad_()

        model = layer.simulator.model
        return layer.initial_state(random(model.nq), random(model.nv)), random(steps, model.nu)

    return make
