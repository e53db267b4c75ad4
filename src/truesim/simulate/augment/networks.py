"""Small networks, and recipes that make them in the sizes that a rule needs."""

import abc
import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Array, Float

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
    "sin": jnp.sin,
}


class Layered(eqx.Module):
    """Dense layers with an activation between them: `y = W_n f(... f(W_1 x + b_1) ...) + b_n`."""

    weights: tuple[Float[Array, "to from"], ...]
    biases: tuple[Float[Array, "to"], ...]
    """Empty for a network without biases."""
    activation: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "inputs"]) -> Float[Array, "outputs"]:
        """The output for one input."""
        for k, W in enumerate(self.weights):
            x = jnp.asarray(W) @ (ACTIVATIONS[self.activation](x) if k else x)
            x = x + self.biases[k] if self.biases else x
        return x


class Recurrent(eqx.Module):
    """A gated recurrent unit with a linear output (Cho et al. 2014)."""

    input: Float[Array, "gates inputs"]
    """Weights of reset gate, update gate and candidate, one below the other."""
    state: Float[Array, "gates hidden"]
    bias: Float[Array, "gates"]
    output: Float[Array, "outputs hidden"]
    offset: Float[Array, "outputs"]

    @property
    def hidden(self) -> int:
        """Size of its state."""
        return self.state.shape[-1]

    def __call__(self, x: Float[Array, "inputs"], h: Float[Array, "hidden"]) -> tuple[Array, Array]:
        """The output for one input, and the state after it."""
        n = self.hidden
        of_input, of_state = jnp.asarray(self.input) @ x + self.bias, jnp.asarray(self.state) @ h
        gates = jax.nn.sigmoid(of_input[: 2 * n] + of_state[: 2 * n])
        reset, update = gates[:n], gates[n:]
        h = update * h + (1 - update) * jnp.tanh(of_input[2 * n :] + reset * of_state[2 * n :])
        return jnp.asarray(self.output) @ h + self.offset, h


@dataclasses.dataclass(frozen=True)
class AbstractRecipe(abc.ABC):
    """Makes a network once its sizes are known."""

    kind: ClassVar[str]
    """Name in a blueprint file."""

    @abc.abstractmethod
    def make(self, inputs: int, outputs: int, *, silent: bool) -> eqx.Module:
        """A network of these sizes.

        Args:
            inputs: Numbers that go in.
            outputs: Numbers that come out.
            silent: Whether it says zero until it is trained.
        """


@dataclasses.dataclass(frozen=True)
class MLP(AbstractRecipe):
    """Dense layers; without hidden ones a linear map."""

    kind: ClassVar[str] = "mlp"
    hidden: tuple[int, ...] = (8,)
    """Size of each hidden layer."""
    activation: str = "tanh"
    bias: bool = True
    """Whether the layers have offsets."""
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if self.activation not in ACTIVATIONS:
            raise unknown_name("activation", self.activation, ACTIVATIONS)
        _check_sizes(self.hidden)

    def make(self, inputs: int, outputs: int, *, silent: bool) -> Layered:
        """Weights of each layer are uniform within one over the root of its inputs."""
        rng, sizes = np.random.default_rng(self.seed), [inputs, *self.hidden, outputs]
        weights = [_uniform(rng, (b, a)) for a, b in itertools.pairwise(sizes)]
        biases = [rng.uniform(-1, 1, b) / np.sqrt(a) for a, b in itertools.pairwise(sizes)] if self.bias else []
        if silent:
            weights[-1] = np.zeros_like(weights[-1])
            biases[-1:] = [np.zeros(outputs)] * self.bias
        return Layered(tuple(weights), tuple(biases), self.activation)


@dataclasses.dataclass(frozen=True)
class GRU(AbstractRecipe):
    """A recurrent network: what it remembers is part of the state of the simulation, zero at the start."""

    kind: ClassVar[str] = "gru"
    hidden: int = 8
    """Size of its state."""
    seed: int = 0

    def __post_init__(self) -> None:
        _check_sizes((self.hidden,))

    def make(self, inputs: int, outputs: int, *, silent: bool) -> Recurrent:
        """Weights are uniform within one over the root of the number of inputs of each gate."""
        rng, n = np.random.default_rng(self.seed), self.hidden
        output = np.zeros((outputs, n)) if silent else _uniform(rng, (outputs, n))
        return Recurrent(
            _uniform(rng, (3 * n, inputs)), _uniform(rng, (3 * n, n)), np.zeros(3 * n), output, np.zeros(outputs)
        )


@dataclasses.dataclass(frozen=True)
class Constant(AbstractRecipe):
    """The same numbers whatever goes in: an unknown offset of a port."""

    kind: ClassVar[str] = "constant"

    def make(self, inputs: int, outputs: int, *, silent: bool) -> Layered:
        """Zero at the start."""
        return Layered((np.zeros((outputs, 0)),), (np.zeros(outputs),), "tanh")


RECIPES: dict[str, type[AbstractRecipe]] = {recipe.kind: recipe for recipe in (MLP, GRU, Constant)}
"""Networks that a blueprint file can ask for, by name."""


def double(network: Any) -> Any:
    """The network with its numbers as NumPy arrays of double precision, like those of a model."""
    return jax.tree.map(lambda x: np.asarray(x, np.float64) if eqx.is_inexact_array_like(x) else x, network)


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Float[np.ndarray, "to from"]:
    return rng.uniform(-1, 1, shape) / np.sqrt(max(shape[1], 1))


def _check_sizes(sizes: tuple[int, ...]) -> None:
    if any(not isinstance(n, int) or n < 1 for n in sizes):
        raise TruesimError(f"The hidden sizes of a network are {list(sizes)}; they must be whole numbers above zero.")
