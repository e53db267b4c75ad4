"""Networks of policies: hidden layers, a recurrent cell if the policy has a memory, and a linear output.

    weights = network.make(rng, observations, actions)
    memory = network.memory(batch)                                    # empty without a cell
    memory, action = network.step(weights, memory, observation)       # one control step
    action = network.unroll(weights, memory, observations, fresh)     # whole sequences, time first

Inputs of a cell are multiplied for all control steps at once; only the product with the memory goes step by step.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array, Bool, Float
from truesim.policies.networks import POLICY_ACTIVATIONS, Layers, MeanNetwork, apply_layers, make_layers

GATES = {"mlp": 0, "gru": 3, "lstm": 4}
"""Kinds of networks, and the number of products of a cell."""
FORGET_BIAS = 1.0
"""Initial bias of an LSTM's forget gate; larger remembers longer at the start."""


@dataclasses.dataclass(frozen=True)
class PolicyNetwork:
    """Shape of a policy's network."""

    kind: str = "mlp"
    """`mlp`, or with a memory `gru` (Cho et al., 2014) or `lstm` (Hochreiter and Schmidhuber, 1997)."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers; a cell comes after them."""
    units: int = 64
    """Units of the cell."""
    activation: str = "elu"
    """Of the hidden layers."""

    def __post_init__(self) -> None:
        if self.kind not in GATES:
            raise unknown_name("network", self.kind, GATES)
        if self.activation not in POLICY_ACTIVATIONS:
            raise unknown_name("activation", self.activation, POLICY_ACTIVATIONS)
        if self.is_recurrent and self.units < 1:
            raise TruesimError(f"A {self.kind} of {self.units} units has no memory; give at least one.")

    @property
    def is_recurrent(self) -> bool:
        """True if the network has a memory."""
        return GATES[self.kind] > 0

    @property
    def memory_size(self) -> int:
        """Numbers that are remembered from one control step to the next."""
        return {"mlp": 0, "gru": self.units, "lstm": 2 * self.units}[self.kind]

    def make(self, rng: np.random.Generator, inputs: int, outputs: int, last: float = 0.01) -> Any:
        """Initial weights: orthogonal, those of the output of gain `last`; a list of layers without a cell."""
        if not self.is_recurrent:
            return make_layers(rng, (inputs, *self.hidden, outputs), last)
        features = (inputs, *self.hidden)
        hidden: Layers = make_layers(rng, features, 2.0**0.5) if self.hidden else []
        gates = GATES[self.kind] * self.units
        (W, b), (U, c) = (make_layers(rng, (n, gates), 1.0)[0] for n in (features[-1], self.units))
        if self.kind == "lstm":
            b[self.units : 2 * self.units] = FORGET_BIAS
        output = make_layers(rng, (self.units, outputs), last)
        return {"layers": [*hidden, *output], "cell": [(W, b), (U, c)]}

    def memory(self, batch: int) -> Float[np.ndarray, "batch memory"]:
        """Memory at the start of episodes."""
        return np.zeros((batch, self.memory_size), np.float32)

    def step(
        self, weights: Any, memory: Float[Array, "*batch memory"], x: Float[Array, "*batch no"]
    ) -> tuple[Float[Array, "*batch memory"], Float[Array, "*batch na"]]:
        """Memory and output after one observation."""
        if not self.is_recurrent:
            return memory, apply_layers(weights, x, self.activation)
        (W, b), recurrent = weights["cell"]
        memory, y = self._cell(recurrent, memory, self._features(weights, x) @ W + b)
        return memory, apply_layers(weights["layers"][-1:], y, self.activation)

    def unroll(
        self,
        weights: Any,
        memory: Float[Array, "batch memory"],
        x: Float[Array, "time batch no"],
        fresh: Bool[Array, "time batch"],
    ) -> Float[Array, "time batch na"]:
        """Outputs of sequences.

        Args:
            weights: Weights of the network.
            memory: Memory before the first observation.
            x: Observations.
            fresh: True where an episode begins, before which nothing is remembered.
        """
        if not self.is_recurrent:
            return apply_layers(weights, x, self.activation)
        (W, b), recurrent = weights["cell"]

        def one(memory: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            gates, fresh = now
            return self._cell(recurrent, jnp.where(fresh[:, None], 0.0, memory), gates)

        _, y = jax.lax.scan(one, memory, (self._features(weights, x) @ W + b, fresh))
        return apply_layers(weights["layers"][-1:], y, self.activation)

    def penalty(self, weights: Any, x: Array) -> Array:
        """Number that is added to the loss: zero."""
        return jnp.zeros(())

    def _features(self, weights: Any, x: Array) -> Array:
        """Output of the hidden layers."""
        for W, b in weights["layers"][:-1]:
            x = POLICY_ACTIVATIONS[self.activation](x @ W + b)
        return x

    def _cell(self, recurrent: tuple[Array, Array], memory: Array, gates: Array) -> tuple[Array, Array]:
        """Memory and output after one step, from the products of the input."""
        cell = gru_cell if self.kind == "gru" else lstm_cell
        return cell(recurrent, memory, gates)


class MemorylessNetwork:
    """A `MeanNetwork` in the place of a `PolicyNetwork`: its memory is empty."""

    is_recurrent = False

    def __init__(self, network: MeanNetwork):
        self.make, self.penalty, self._apply = network.init, network.penalty, network.apply

    def memory(self, batch: int) -> Float[np.ndarray, "batch memory"]:
        """Nothing."""
        return np.zeros((batch, 0), np.float32)

    def step(self, weights: Any, memory: Array, x: Array) -> tuple[Array, Array]:
        """Memory and output after one observation."""
        return memory, self._apply(weights, x)

    def unroll(self, weights: Any, memory: Array, x: Array, fresh: Array) -> Array:
        """Outputs of sequences."""
        return self._apply(weights, x)


def gru_cell(recurrent: tuple[Array, Array], memory: Array, gates: Array) -> tuple[Array, Array]:
    """Gated recurrent unit; gates are reset, update and candidate."""
    U, c = recurrent
    r, z, n = jnp.split(gates, 3, axis=-1)
    r_memory, z_memory, n_memory = jnp.split(memory @ U + c, 3, axis=-1)
    update = jax.nn.sigmoid(z + z_memory)
    candidate = jnp.tanh(n + jax.nn.sigmoid(r + r_memory) * n_memory)
    memory = (1.0 - update) * candidate + update * memory
    return memory, memory


def lstm_cell(recurrent: tuple[Array, Array], memory: Array, gates: Array) -> tuple[Array, Array]:
    """Long short-term memory; gates are input, forget, candidate and output, the memory is (cell, output)."""
    U, c = recurrent
    cell, output = jnp.split(memory, 2, axis=-1)
    i, f, g, o = jnp.split(gates + output @ U + c, 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    output = jax.nn.sigmoid(o) * jnp.tanh(cell)
    return jnp.concatenate([cell, output], axis=-1), output
