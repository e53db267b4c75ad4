"""Overhead of the PyTorch layer over the same native kernels called directly.

`python -m benchmarks.torch_layer`, a minute. The Panda arm of `example-robot-data`, 100 steps, derivatives by seven
masses, initial state and commands; CPU time of one thread, the best of several rounds in which both take turns.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch

import truesim.torch as tt
from truesim.bridges.torch.simulate import Simulation
from truesim.files.robots import load
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.kernels import compile, compile_pullback  # noqa: A004

STEPS, BATCHES, ROUNDS, CALLS = 100, (1, 64, 512), 4, 12
MASSES = tuple(f"bodies/panda_link{k}.mass" for k in range(1, 8))


PANDA = "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"


def main() -> None:
    """Measure and print a table."""
    torch.set_num_threads(1)
    simulator = Simulator.of(load(panda()), timestep=0.002)
    layer = tt.Simulate(simulator, MASSES, dtype=torch.float64)
    value, pull = kernels(simulator, layer)
    print("batch | kernels [us]: value, with pullback | overhead [us]: forward, with backward | the same [%]")
    for batch in BATCHES:
        inputs = tensors(layer, batch)
        both = measure(layer, value, pull, inputs)
        direct, layered = both[:2], both[2:]
        plain, trained = layered[0] - direct[0], layered[1] - direct[1]
        share = 100 * plain / direct[0], 100 * trained / direct[1]
        print(
            f"{batch:5d} | {1e6 * direct[0]:10.0f} {1e6 * direct[1]:10.0f} | {1e6 * plain:8.0f} {1e6 * trained:8.0f} "
            f"| {share[0]:6.1f} {share[1]:6.1f}"
        )


def panda() -> Path:
    """The robot's file."""
    return Path(jax.__file__).parents[1] / PANDA


def kernels(simulator: Simulator, layer: tt.Simulate) -> tuple[Any, Any]:
    """The layer's own function and its pullback, compiled as native kernels of NumPy arrays."""
    f = Simulation(simulator, layer.paths)._rollout
    model = simulator.model
    shapes = [*[()] * len(MASSES), (model.nq,), (model.nv,), (), (STEPS, model.nu)]
    by = tuple(k for k in range(len(shapes)) if k != len(MASSES) + 2)
    with jax.enable_x64(True):
        examples = [np.zeros(shape) for shape in shapes]
        return compile(f, *examples), compile_pullback(f, *examples, by=by)


def tensors(layer: tt.Simulate, batch: int) -> tuple[tt.TensorState, torch.Tensor]:
    """Initial states and commands of a batch; one without a batch axis."""
    front = () if batch == 1 else (batch,)
    model, generator = layer.simulator.model, torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*front, *shape, generator=generator, dtype=torch.float64, requires_grad=True)

    state = layer.initial_state(random(model.nq), random(model.nv))
    return state, random(STEPS, model.nu)


def measure(layer: tt.Simulate, value: Any, pull: Any, inputs: tuple[tt.TensorState, torch.Tensor]) -> list[float]:
    """CPU seconds of kernels and of the layer, without and with derivatives: (kernels, both, layer, both)."""
    state, commands = inputs
    leaves = [*layer.parameters(), state.q, state.v, commands]
    arrays = [x.detach().numpy() for x in (*layer.parameters(), state.q, state.v, state.time, commands)]
    results = value(*arrays)
    cotangents = tuple(np.ones_like(x) if k == 3 else np.zeros_like(x) for k, x in enumerate(results))
    ones = torch.ones(results[3].shape, dtype=torch.float64)

    def train() -> None:
        torch.autograd.grad(layer(state, commands)[1].q, leaves, ones)

    jobs = (
        lambda: value(*arrays),
        lambda: (value(*arrays), pull(*arrays, cotangents)),
        lambda: layer(state, commands),
        train,
    )
    return best(jobs)


def best(jobs: tuple[Callable[[], Any], ...]) -> list[float]:
    """CPU seconds of each job, the least of several rounds of some calls each."""
    found = [np.inf] * len(jobs)
    for _ in range(ROUNDS):
        for k, job in enumerate(jobs):
            job()  # compiles, and warms the caches
            for _ in range(CALLS):
                start = time.process_time()
                job()
                found[k] = min(found[k], time.process_time() - start)
    return found


if __name__ == "__main__":
    main()
