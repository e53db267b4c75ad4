"""States of a simulation as tensors."""

from typing import Any, NamedTuple

import jax
import numpy as np
from torch import Tensor

from truesim.bridges.torch.functions import Axes
from truesim.core.typing import Array
from truesim.physics.simulation import Simulator, State


class TensorState(NamedTuple):
    """State of a simulation, or of a batch of them: all tensors have the same leading batch axes, or none."""

    q: Tensor
    """Configuration [rad, m, unit quaternions], shape (..., nq)."""
    v: Tensor
    """Velocity [rad/s, m/s], shape (..., nv)."""
    time: Tensor
    """[s], shape (...)."""
    rest: tuple[Tensor, ...] = ()
    """Past commands, contact impulses and memory of networks, if the simulator has any. If empty, the first step
    fills it: the first command is taken as held before."""


class StateParts:
    """Parts that states of a simulator have beside q, v and time, and their places in a flat tuple."""

    def __init__(self, simulator: Simulator):
        state = simulator.initial_state()
        leaves, self._tree = jax.tree.flatten((state.history, state.impulses, state.memory))
        self.axes = tuple(Axes(f"state.rest[{k}]", tuple(np.shape(x))) for k, x in enumerate(leaves))

    def state(self, q: Array, v: Array, time: Array, rest: tuple[Array, ...]) -> State:
        """State with these parts; without them, a rollout fills them."""
        history, impulses, memory = jax.tree.unflatten(self._tree, rest) if rest else (None, None, None)
        return State(q, v, time, history, impulses, memory)

    def flat(self, state: State) -> tuple[Any, ...]:
        """All parts of a state."""
        return state.q, state.v, state.time, *jax.tree.leaves((state.history, state.impulses, state.memory))
