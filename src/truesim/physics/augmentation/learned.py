"""Networks at the ports of one robot, and the tap that evaluates them during a step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.core.tap import Port, Tap
from truesim.core.typing import Array, Float
from truesim.physics.augmentation.heads import (
    AbstractHead,
    Conservative,
    Dissipative,
    Kinetic,
    LearnedInertia,
    factors,
    lagrange,
)
from truesim.physics.augmentation.memory import PREVIOUS, NetworkMemory, TapRecord
from truesim.physics.augmentation.networks import AbstractRecurrent
from truesim.physics.dynamics import integrate, joint_coordinates
from truesim.physics.model.model import Model

JOINT_INERTIA = Port(
    "joint.inertia",
    "dofs",
    "kg m^2|kg",
    "Part of the mass matrix that the bodies do not account for; kinetic head only.",
)


class PortNetwork(eqx.Module):
    """A network between the ports of one robot."""

    net: Any
    """Module that maps a vector to a vector; its arrays have a leading axis of rows where each row has its own."""
    name: str = eqx.field(static=True)
    output: str = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    mode: str = eqx.field(static=True)
    """residual, replace or scale."""
    sharing: str = eqx.field(static=True)
    """shared, each or whole."""
    rows: tuple[int, ...] = eqx.field(static=True)
    """Rows of the output port that it changes, and of the inputs that it reads."""
    every: bool = eqx.field(static=True)
    """True if it acts on all rows."""
    beside: tuple[bool, ...] = eqx.field(static=True)
    """For each input, whether its rows differ from the output's, so that it is read as a whole."""
    scales: tuple[float, ...] = eqx.field(static=True)
    """Typical magnitude of each input [its own unit]."""
    size: float = eqx.field(static=True)
    """Typical magnitude of the output [its own unit]."""
    head: AbstractHead | None = eqx.field(static=True)
    velocity: str | None = eqx.field(static=True)
    """Port of the velocity that a dissipative head acts against."""

    @property
    def recurrent(self) -> bool:
        """True if the network has a state."""
        return isinstance(self.net, AbstractRecurrent)

    @property
    def reads(self) -> tuple[str, ...]:
        """All ports that must be computed before it runs."""
        return self.inputs if self.velocity is None else (*self.inputs, self.velocity)

    def initial_hidden(self) -> Float[Array, "*rows hidden"]:
        """Initial state of a recurrent network: zeros."""
        size = (self.net.hidden,)
        return jnp.zeros(size if self.sharing == "whole" else (len(self.rows), *size))

    def run(self, x: Array, state: Array | None) -> tuple[Array, Array | None]:
        """Outputs of the network and its new state: row by row, or for all rows at once."""
        if self.sharing == "whole":
            return self.net(x, state) if self.recurrent else (self.net(x), None)
        own = eqx.if_array(0) if self.sharing == "each" else None
        if self.recurrent:
            return eqx.filter_vmap(lambda net, x, h: net(x, h), in_axes=(own, 0, 0))(self.net, x, state)
        return eqx.filter_vmap(lambda net, x: net(x), in_axes=(own, 0))(self.net, x), None

    def features(self, values: list[Array]) -> Float[Array, "*rows features"]:
        """Inputs in units of their typical magnitude: row by row, or concatenated."""
        columns = zip(values, self.beside, self.scales, strict=True)
        own = [(_columns(x) if beside else _columns(x)[np.array(self.rows)]) / s for x, beside, s in columns]
        if self.sharing == "whole":
            return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(x) for x in own)])
        return jnp.concatenate([jnp.zeros((len(self.rows), 0)), *own], axis=1)


class LearnedPhysics(eqx.Module):
    """All networks of one robot, in the order in which they run."""

    networks: tuple[PortNetwork, ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = eqx.field(static=True)
    """Shape of every port that is read one step late."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each network."""
        return tuple(network.name for network in self.networks)

    @property
    def remembers(self) -> bool:
        """True if the networks have memory from step to step."""
        return bool(self.shapes) or any(network.recurrent for network in self.networks)

    def touches(self, name: str) -> bool:
        """True if any network reads or changes a port."""
        late = [port for port, _ in self.shapes]
        return name in late or any(name == n.output or name in n.reads for n in self.networks)

    def takes_over(self, port: Port) -> bool:
        """True if a network replaces or scales the value that physics computes for a port."""
        return any(n.output == port.name and n.mode != "residual" for n in self.networks)

    def initial_memory(self) -> NetworkMemory:
        """Memory before the first step: zeros."""
        hidden = {n.name: n.initial_hidden() for n in self.networks if n.recurrent}
        return NetworkMemory({name: jnp.zeros(shape) for name, shape in self.shapes}, hidden)

    def listen(
        self, model: Model, q: Float[Array, " nq"], memory: NetworkMemory | None, seen: TapRecord | None = None
    ) -> Tap:
        """Tap that evaluates these networks, empty or with the values that another tap has recorded."""
        return Listener(self, (model, q), self.initial_memory() if memory is None else memory, seen)

    def remembered(self, seen: TapRecord, before: NetworkMemory | None) -> NetworkMemory | None:
        """Memory for the next step, after all taps of this one."""
        if not self.remembers:
            return None
        memory = self.initial_memory() if before is None else before
        previous = {name: seen.values.get(name, old) for name, old in memory.previous.items()}
        return NetworkMemory(previous, {**memory.hidden, **seen.hidden})

    def kinetic(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> LearnedInertia | None:
        """Terms of learned kinetic energies in the equation of motion; None if there are none."""
        if not any(isinstance(n.head, Kinetic) for n in self.networks):
            return None
        return lagrange(lambda dq: self.inertia(model, q + dq), v)

    def inertia(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Learned part of the mass matrix [kg m^2 or kg]."""
        total = jnp.zeros((model.nv, model.nv))
        for network in self.networks:
            if isinstance(network.head, Kinetic):
                rows = np.array(network.rows)
                x = network.features([joint_coordinates(model, q)])
                numbers, _ = network.run(x, None)
                if network.sharing == "whole":
                    L, d = factors(numbers, len(rows))
                    total = total.at[np.ix_(rows, rows)].add(network.size * (L * d[None, :]) @ L.T)
                else:
                    d = jax.vmap(lambda n: factors(n, 1)[1][0])(numbers)
                    total = total.at[rows, rows].add(network.size * d)
        return total

    def potential(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, ""]:
        """Sum of all learned potentials [J]."""
        potentials = [n for n in self.networks if isinstance(n.head, Conservative)]
        return sum((_potential(n, joint_coordinates(model, q)) for n in potentials), start=jnp.zeros(()))

    def weights(self, k: int) -> Float[Array, " numbers"]:
        """All weights of a network as one vector."""
        return ravel_pytree(eqx.filter(self.networks[k].net, eqx.is_inexact_array))[0]

    def with_weights(self, k: int, numbers: Float[Array, " numbers"]) -> "LearnedPhysics":
        """The same networks with other weights in one of them."""
        own, rest = eqx.partition(self.networks[k].net, eqx.is_inexact_array)
        return eqx.tree_at(
            lambda s: s.networks[k].net, self, eqx.combine(ravel_pytree(own)[1](jnp.asarray(numbers)), rest)
        )


class Listener(Tap):
    """Tap that runs networks at their output ports and records the values that they read."""

    def __init__(
        self, learned: LearnedPhysics, at: tuple[Model, Array], memory: NetworkMemory, seen: TapRecord | None = None
    ):
        self._learned, self._at, self._memory = learned, at, memory
        self._values = {} if seen is None else dict(seen.values)
        self._hidden = {} if seen is None else dict(seen.hidden)

    @property
    def seen(self) -> TapRecord:
        """Values that have passed so far."""
        return TapRecord(self._values, self._hidden)

    def wants(self, port: Port) -> bool:
        """True if a network reads or changes it."""
        return self._learned.touches(port.name)

    def __call__(self, port: Port, value: Array) -> Array:
        """Value after all networks of this port."""
        if self.wants(port):
            self._values[port.name] = value
        for network in self._learned.networks:
            if network.output == port.name:
                value = self._values[port.name] = self._changed(network, value)
        return value

    def _changed(self, network: PortNetwork, value: Array) -> Array:
        rows = np.array(network.rows)
        own = _columns(value)[rows]
        change = network.size * jnp.reshape(self._force(network, own), own.shape)
        if network.mode == "scale":
            change = own * change
        if network.every:
            change = jnp.reshape(change, value.shape)
            return change if network.mode == "replace" else value + change
        new = change if network.mode == "replace" else own + change
        return jnp.reshape(jnp.asarray(_columns(value)).at[rows].set(new), value.shape)

    def _force(self, network: PortNetwork, own: Array) -> Array:
        if isinstance(network.head, Conservative):
            return self._gradient(network)
        values = [self._value(name) for name in network.inputs]
        state = self._memory.hidden.get(network.name)
        numbers, state = network.run(network.features(values), state)
        if state is not None:
            self._hidden[network.name] = state
        if not isinstance(network.head, Dissipative):
            return numbers
        assert network.velocity is not None, "a dissipative head has a velocity to work against"
        velocity = _columns(self._value(network.velocity))[np.array(network.rows)]
        if network.sharing == "whole":
            return network.head.force(numbers, jnp.ravel(velocity))
        return jax.vmap(network.head.force)(numbers, velocity)

    def _gradient(self, network: PortNetwork) -> Float[Array, " rows"]:
        """Negative gradient of the potential along each degree of freedom, in units of the output's magnitude."""
        model, q = self._at

        def potential(dq: Array) -> Array:
            return _potential(network, joint_coordinates(model, integrate(model, q, dq)))

        return -jax.grad(potential)(jnp.zeros(model.nv))[np.array(network.rows)] / network.size

    def _value(self, name: str) -> Array:
        if name.startswith(PREVIOUS):
            return self._memory.previous[name.removeprefix(PREVIOUS)]
        return self._values[name]


def _potential(network: PortNetwork, coordinates: Float[Array, " nv"]) -> Float[Array, ""]:
    numbers, _ = network.run(network.features([coordinates]), None)
    return network.size * jnp.sum(numbers)


def _columns(value: Array) -> Float[Array, "rows width"]:
    return value[:, None] if value.ndim == 1 else value
