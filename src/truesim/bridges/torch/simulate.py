"""Rollouts and steps on tensors, and a module whose physical parameters are trained."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from truesim.bridges.torch.compiled import FlatFunction, as_constants, as_numpy
from truesim.bridges.torch.functions import Axes, TensorFunction
from truesim.bridges.torch.networks import weights
from truesim.bridges.torch.state import StateParts, TensorState
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array
from truesim.physics.simulation import Simulator
from truesim.physics.simulation import rollout as simulate_steps
from truesim.physics.simulation.named_values import NETWORKS, expand

CACHED_SIMULATIONS = 64
"""Number of simulators whose kernels `rollout` and `step` keep; larger uses more memory."""


class Simulation:
    """Functions of one simulator on tensors: its rollout and its step, by parameters, state and commands."""

    def __init__(self, simulator: Simulator, names: tuple[str, ...], threads: int = 1):
        """Prepare them; kernels are compiled at the first call.

        Args:
            simulator: The simulator; its other numbers are constants.
            names: Paths of the numbers that are arguments.
            threads: Number of threads over which a batch is split.
        """
        self.simulator, self.names = simulator, names
        self._parts = parts = StateParts(simulator)
        model = simulator.model
        numbers = [Axes(name, tuple(simulator.read(name).shape)) for name in names]
        state = [Axes("state.q", (model.nq,)), Axes("state.v", (model.nv,)), Axes("state.time", ())]

        def function(f: FlatFunction, control: Axes, filled: bool) -> TensorFunction:
            arguments = [*numbers, *state, *(parts.axes if filled else ()), control]
            return TensorFunction(f, arguments, name=f.__name__.strip("_"), threads=threads)

        commands, command = Axes("commands", ("steps", model.nu)), Axes("command", (model.nu,))
        self._rollouts = {filled: function(self._rollout, commands, filled) for filled in (True, False)}
        self._steps = {filled: function(self._step, command, filled) for filled in (True, False)}
        self._size = 3 + len(parts.axes)

    @property
    def key(self) -> str:
        """Name that no other simulation has."""
        return self._rollouts[True].key

    def rollout(
        self, parameters: Sequence[Tensor], state: TensorState, commands: Tensor
    ) -> tuple[TensorState, TensorState]:
        """The last state, and the states after each step."""
        f = self._rollouts[bool(state.rest)]
        results = f(*parameters, state.q, state.v, state.time, *state.rest, commands)
        return _packed(results[: self._size]), _packed(results[self._size :])

    def step(self, parameters: Sequence[Tensor], state: TensorState, command: Tensor) -> TensorState:
        """The state after one step."""
        f = self._steps[bool(state.rest)]
        return _packed(f(*parameters, state.q, state.v, state.time, *state.rest, command))

    def _split(self, arrays: Sequence[Array]) -> tuple[Simulator, Any, Array]:
        """Simulator, state and commands of flat arguments."""
        count = len(self.names)
        parameters, (q, v, time, *rest, control) = arrays[:count], arrays[count:]
        simulator = as_constants(self.simulator, q.dtype).replace(dict(zip(self.names, parameters, strict=True)))
        return simulator, self._parts.state(q, v, time, tuple(rest)), control

    def _rollout(self, *arrays: Array) -> tuple[Array, ...]:
        simulator, state, commands = self._split(arrays)
        end, path = simulate_steps(simulator, state, commands)
        return *self._parts.flat(end), path.q, path.v, path.time

    def _step(self, *arrays: Array) -> tuple[Array, ...]:
        simulator, state, command = self._split(arrays)
        return self._parts.flat(simulator.step(simulator.started(state, command), command)[0])


class Simulate(nn.Module):
    """A simulator as a module: physical parameters by path, and networks within the physics.

        layer = Simulate(simulator, ["bodies/*.mass", "joints/elbow.damping"], dtype=torch.float64)
        end, path = layer(layer.initial_state(q, v), commands)

    Parameters are in SI units. Their names in `state_dict` are their paths with `:` for `.`. `reference` is the
    configuration that the robot's file describes.
    """

    reference: Tensor

    def __init__(
        self,
        simulator: Simulator,
        parameters: Sequence[str] = (),
        *,
        networks: Mapping[str, nn.Module] | None = None,
        dtype: torch.dtype | None = None,
        threads: int = 1,
    ):
        """Read the parameters; kernels are compiled at the first call.

        Args:
            simulator: The simulator; numbers that are no parameters are constants.
            parameters: Paths of the parameters; `*` stands for any text, and each match is a parameter of its own.
            networks: Modules with the weights of networks of the simulator's blueprint, by rule; see `recipe`.
            dtype: Precision; PyTorch's default by default.
            threads: Number of threads over which a batch is split.
        """
        super().__init__()
        modules = dict(networks or {})
        names = [str(target) for pattern in parameters for target in expand(simulator, pattern)]
        names += [_network_name(simulator, rule) for rule in modules]
        self.paths = tuple(names)
        _refuse_twice(self.paths)
        dtype = torch.get_default_dtype() if dtype is None else dtype
        own = names[: len(names) - len(modules)]
        self._keys = tuple(map(_key, own))
        self.physical = nn.ParameterDict()
        for name, key in zip(own, self._keys, strict=True):
            self.physical[key] = nn.Parameter(torch.as_tensor(simulator.read(name).tolist(), dtype=dtype))
        self.networks = nn.ModuleDict({_key(rule): module for rule, module in modules.items()})
        reference = torch.as_tensor(simulator.initial_state().q.tolist(), dtype=dtype)
        self.register_buffer("reference", reference, persistent=False)
        self._nv, self._threads = simulator.model.nv, threads
        self._simulation = Simulation(simulator, self.paths, threads)

    def forward(self, state: TensorState, commands: Tensor) -> tuple[TensorState, TensorState]:
        """The last state, and the states after each step (axis of steps last but one).

        Args:
            state: Initial state.
            commands: One row per time step, held over the step; shape (..., steps, nu).
        """
        return self._simulation.rollout(self._values(), state, commands)

    def step(self, state: TensorState, command: Tensor) -> TensorState:
        """The state after one step.

        Args:
            state: Current state.
            command: Held over the step; shape (..., nu).
        """
        return self._simulation.step(self._values(), state, command)

    def initial_state(self, q: Tensor | None = None, v: Tensor | None = None) -> TensorState:
        """State to start from: the file's configuration, at rest and at time zero, except where given."""
        q = self.reference if q is None else q
        v = torch.zeros(self._nv, dtype=q.dtype) if v is None else v
        return TensorState(q, v, torch.zeros((), dtype=q.dtype))

    @property
    def simulator(self) -> Simulator:
        """The simulator with the values that it was made with."""
        return self._simulation.simulator

    def value(self, path: str) -> Tensor:
        """Parameter at a path."""
        if path not in self.paths:
            raise unknown_name("parameter", path, self.paths)
        return self._values()[self.paths.index(path)]

    def trained_simulator(self) -> Simulator:
        """The simulator with the present values of parameters and networks."""
        values = [x.detach().double().numpy() for x in self._values()]
        return self.simulator.replace(dict(zip(self.paths, values, strict=True)))

    def _values(self) -> list[Tensor]:
        own = [getattr(self.physical, key) for key in self._keys]
        return own + [weights(module) for module in self.networks.values()]

    def __getstate__(self) -> dict[str, Any]:
        # NumPy arrays keep their precision in a process in which JAX is set to another one.
        return {**self.__dict__, "_simulation": as_numpy(self.simulator)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._simulation = Simulation(state["_simulation"], self.paths, self._threads)


def rollout(
    simulator: Simulator, state: TensorState, commands: Tensor, parameters: Mapping[str, Tensor] | None = None
) -> tuple[TensorState, TensorState]:
    """Simulate many steps; gradients flow to parameters, state and commands.

    Args:
        simulator: The simulator. Kernels are kept for the object, so that numbers that change should be parameters.
        state: Initial state.
        commands: One row per time step, held over the step; shape (..., steps, nu).
        parameters: Values by path, in place of the simulator's own; each may have batch axes.

    Returns:
        The last state, and the states after each step.
    """
    values = dict(parameters or {})
    return _simulations[_simulation_key(simulator, tuple(values))].rollout(list(values.values()), state, commands)


def step(
    simulator: Simulator, state: TensorState, command: Tensor, parameters: Mapping[str, Tensor] | None = None
) -> TensorState:
    """Simulate one step; arguments are those of `rollout`, with a command of shape (..., nu)."""
    values = dict(parameters or {})
    return _simulations[_simulation_key(simulator, tuple(values))].step(list(values.values()), state, command)


_simulations: dict[str, Simulation] = {}
"""Simulations of `rollout` and `step`, the oldest first."""
_simulations_lock = threading.Lock()


@torch.compiler.assume_constant_result
def _simulation_key(simulator: Simulator, names: tuple[str, ...]) -> str:
    """Key of the simulation with these parameters, which is made if there is none."""
    with _simulations_lock:
        for key, found in _simulations.items():
            if found.simulator is simulator and found.names == names:
                return key
        made = Simulation(simulator, names)
        while len(_simulations) >= CACHED_SIMULATIONS:
            del _simulations[next(iter(_simulations))]
        _simulations[made.key] = made
        return made.key


def _packed(tensors: Sequence[Tensor]) -> TensorState:
    q, v, time, *rest = tensors
    return TensorState(q, v, time, tuple(rest))


def _key(path: str) -> str:
    """Name of a parameter in a module, which must not have dots."""
    return path.replace(".", ":")


def _network_name(simulator: Simulator, rule: str) -> str:
    rules = () if simulator.learned is None else simulator.learned.names
    if rule not in rules:
        raise unknown_name("network", rule, rules)
    return f"{NETWORKS}/{rule}"


def _refuse_twice(paths: Sequence[str]) -> None:
    twice = [path for path in paths if paths.count(path) > 1]
    if twice:
        raise TruesimError(f"{twice[0]} is named twice among the parameters.")
