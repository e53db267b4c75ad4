"""Small networks, and recipes that build them with the sizes that a rule needs."""

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
    "softsign": jax.nn.soft_sign,
}


class Layered(eqx.Module):
    """Dense layers with an activation between them: `y = W_n f(... f(W_1 x + b_1) ...) + b_n`."""

    weights: tuple[Float[Array, "to from"], ...]
    biases: tuple[Float[Array, " to"], ...]
    """Empty for a network without biases."""
    activation: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The output for one input."""
        for k, W in enumerate(self.weights):
            x = jnp.asarray(W) @ (ACTIVATIONS[self.activation](x) if k else x)
            x = x + self.biases[k] if self.biases else x
        return x


class AbstractRecurrent(eqx.Module):
    """A network with a state, which is zero at the start."""

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """Size of its state."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, " inputs"], h: Float[Array, " hidden"]) -> tuple[Array, Array]:
        """The output for one input, and the state after it."""


class Lagging(AbstractRecurrent):
    """A network on present and past inputs; before the first step, inputs equal those of the first step."""

    network: Layered
    steps: tuple[int, ...] = eqx.field(static=True)
    """Lags in time steps."""
    inputs: int = eqx.field(static=True)

    @property
    def hidden(self) -> int:
        """Size of the state: a flag that it has started, and the inputs of the last steps."""
        return 1 + max(self.steps) * self.inputs

    def __call__(self, x: Float[Array, " inputs"], h: Float[Array, " hidden"]) -> tuple[Array, Array]:
        """The output for one input, and the state after it."""
        past = jnp.where(h[0] > 0.5, h[1:].reshape(-1, self.inputs), x[None])
        rows = jnp.concatenate([x[None], past])
        y = self.network(jnp.ravel(rows[np.array(self.steps)]))
        return y, jnp.concatenate([jnp.ones(1, x.dtype), jnp.ravel(rows[:-1])])


class Recurrent(AbstractRecurrent):
    """A gated recurrent unit with a linear output (Cho et al. 2014)."""

    input: Float[Array, "gates inputs"]
    """Weights of reset gate, update gate and candidate, one below the other."""
    state: Float[Array, "gates hidden"]
    bias: Float[Array, " gates"]
    output: Float[Array, "outputs hidden"]
    offset: Float[Array, " outputs"]

    @property
    def hidden(self) -> int:
        """Size of its state."""
        return self.state.shape[-1]

    def __call__(self, x: Float[Array, " inputs"], h: Float[Array, " hidden"]) -> tuple[Array, Array]:
        """The output for one input, and the state after it."""
        n = self.hidden
        of_input, of_state = jnp.asarray(self.input) @ x + self.bias, jnp.asarray(self.state) @ h
        gates = jax.nn.sigmoid(of_input[: 2 * n] + of_state[: 2 * n])
        reset, update = gates[:n], gates[n:]
        h = update * h + (1 - update) * jnp.tanh(of_input[2 * n :] + reset * of_state[2 * n :])
        return jnp.asarray(self.output) @ h + self.offset, h


@dataclasses.dataclass(frozen=True)
class AbstractRecipe(abc.ABC):
    """Recipe of a network, built once its sizes are known."""

    kind: ClassVar[str]
    """Name in a blueprint file."""

    @property
    def step(self) -> float | None:
        """Only time step that it can be used with [s]; None for any."""
        return None

    @abc.abstractmethod
    def make(self, inputs: int, outputs: int, *, silent: bool) -> eqx.Module:
        """A network of these sizes.

        Args:
            inputs: Number of inputs.
            outputs: Number of outputs.
            silent: Whether its output is zero until it is trained.
        """


@dataclasses.dataclass(frozen=True)
class MLP(AbstractRecipe):
    """Dense layers; without hidden ones a linear map."""

    kind: ClassVar[str] = "mlp"
    hidden: tuple[int, ...] = (8,)
    """Size of each hidden layer."""
    activation: str = "tanh"
    bias: bool = True
    """True if the layers have biases."""
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
    """A gated recurrent unit; its state is part of the state of the simulation, zero at the start."""

    kind: ClassVar[str] = "gru"
    hidden: int = 8
    """Size of its state."""
    seed: int = 0
    interval: float | None = None
    """Time step of its data [s]; with any other it is refused."""

    def __post_init__(self) -> None:
        _check_sizes((self.hidden,))

    @property
    def step(self) -> float | None:
        """The time step of its data [s]."""
        return self.interval

    def make(self, inputs: int, outputs: int, *, silent: bool) -> Recurrent:
        """Weights are uniform within one over the root of the number of inputs of each gate."""
        rng, n = np.random.default_rng(self.seed), self.hidden
        output = np.zeros((outputs, n)) if silent else _uniform(rng, (outputs, n))
        return Recurrent(
            _uniform(rng, (3 * n, inputs)), _uniform(rng, (3 * n, n)), np.zeros(3 * n), output, np.zeros(outputs)
        )


@dataclasses.dataclass(frozen=True)
class Lagged(AbstractRecipe):
    """Dense layers on the inputs now and at earlier times (Hwangbo et al. 2019)."""

    kind: ClassVar[str] = "lagged"
    interval: float
    """Time step of its data, the only one that it can be used with [s]."""
    lags: tuple[float, ...] = (0.0, 0.01, 0.02)
    """Lags [s]; whole multiples of the interval."""
    hidden: tuple[int, ...] = (32, 32)
    """Size of each hidden layer."""
    activation: str = "softsign"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        object.__setattr__(self, "lags", tuple(self.lags))
        if not self.interval > 0:
            raise TruesimError(f"The interval of a lagged network is {self.interval:g} s; it must be positive.")
        off = [t for t in self.lags if t < 0 or abs(t / self.interval - round(t / self.interval)) > 1e-6]
        if off or not self.lags or max(self.lags) == 0:
            raise TruesimError(
                f"Lags are {list(self.lags)} s; they must be whole intervals of {self.interval:g} s, one above zero."
            )

    @property
    def step(self) -> float | None:
        """The time step of its data [s]."""
        return self.interval

    def make(self, inputs: int, outputs: int, *, silent: bool) -> Lagging:
        """Dense layers on all lags of all inputs."""
        steps = tuple(round(t / self.interval) for t in self.lags)
        dense = MLP(self.hidden, self.activation, seed=self.seed)
        return Lagging(dense.make(inputs * len(steps), outputs, silent=silent), steps, inputs)


@dataclasses.dataclass(frozen=True)
class Constant(AbstractRecipe):
    """Constant outputs without inputs: an unknown offset of a port."""

    kind: ClassVar[str] = "constant"

    def make(self, inputs: int, outputs: int, *, silent: bool) -> Layered:
        """Zero at the start."""
        return Layered((np.zeros((outputs, 0)),), (np.zeros(outputs),), "tanh")


RECIPES: dict[str, type[AbstractRecipe]] = {recipe.kind: recipe for recipe in (MLP, GRU, Lagged, Constant)}
"""Recipes by their names in blueprint files."""


def double(network: Any) -> Any:
    """The network with its numbers as NumPy arrays of double precision, like those of a model."""
    return jax.tree.map(lambda x: np.asarray(x, np.float64) if eqx.is_inexact_array_like(x) else x, network)


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Float[np.ndarray, "to from"]:
    return rng.uniform(-1, 1, shape) / np.sqrt(max(shape[1], 1))


def _check_sizes(sizes: tuple[int, ...]) -> None:
    if any(not isinstance(n, int) or n < 1 for n in sizes):
        raise TruesimError(f"The hidden sizes of a network are {list(sizes)}; they must be whole numbers above zero.")
