"""The problem: a simulator, its free parameters, and the logs it has to agree with."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.typing import Array, Bool, Float, Int
from truesim.dynamics import difference, integrate
from truesim.identify.channels import Channel, predicted_values
from truesim.identify.kernels import Kernel, Pulled, compiled_pull, compiled_shots
from truesim.identify.layout import STRETCH, Layout, Nodes, intervals_at, lay_out, past_commands, sampling_step
from truesim.identify.recording import Recording
from truesim.identify.shooting import Sensitivity, Shooting, Shot, Stretch
from truesim.identify.weights import is_network, remembered, written
from truesim.model.model import Model
from truesim.parameters import ParameterSet, Target
from truesim.parameters.parameter import write
from truesim.simulate import Blueprint, Simulator, Trained

MANY = 200
"""Beyond so many weights of networks their derivatives are no longer taken one by one, but backwards, all at once."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is to be found out, and from what."""

    simulator: Simulator
    """Where the search starts."""
    parameters: ParameterSet
    channels: tuple[Channel, ...]
    """What is compared."""
    recordings: tuple[Recording, ...]
    known: tuple[Target, ...] = ()
    """Numbers that differ from log to log and are known."""
    known_values: Float[np.ndarray, "recordings known"] | None = None
    inputs: tuple[Target, ...] = ()
    """Numbers that follow a column of the log."""
    stretch: float = STRETCH
    """Longest stretch [s]."""
    blueprint: Blueprint | Trained | None = None
    """What the networks of the simulator are, if it has any."""
    like: "Problem | None" = None
    """The same problem with other logs: what was compiled for it serves this one too."""
    chosen: Int[np.ndarray, "some"] | None = None
    """Which stretches of the problem `like` this one has, if not all of its own logs."""

    @functools.cached_property
    def layout(self) -> Layout:
        """The logs cut into stretches."""
        if self.chosen is not None and self.like is not None:
            return self.like.layout.taken(self.chosen)
        return lay_out(self.recordings, self.stretch, self.simulator.history)

    def part(self, stretches: Int[np.ndarray, "some"]) -> "Problem":
        """The same problem with some of its stretches only."""
        return dataclasses.replace(self, like=self, chosen=stretches)

    @functools.cached_property
    def substeps(self) -> int:
        """Steps of the simulator within an interval: no step is longer than the simulator's own."""
        return max(1, int(np.ceil(sampling_step(self.recordings) / float(self.simulator.timestep) - 0.01)))

    @functools.cached_property
    def rows(self) -> list[str]:
        """Name of each row of the residual."""
        return [row for channel in self.channels for row in channel.rows]

    @functools.cached_property
    def trained(self) -> ParameterSet:
        """Weights of networks that have many: the last of the parameters, the same for every log."""
        networks = tuple(p for p in self.parameters if is_network(p))
        return ParameterSet(networks if sum(p.size for p in networks) > MANY else ())

    @functools.cached_property
    def solved(self) -> ParameterSet:
        """Parameters whose derivatives are taken one by one, and which Gauss-Newton steps can move: all others."""
        return ParameterSet(tuple(p for p in self.parameters if not (self.trained.size and is_network(p))))

    @functools.cached_property
    def slots(self) -> ParameterSet:
        """The solved parameters of one log: those that differ from log to log appear once."""
        places: dict[tuple[Target, ...], Any] = {}
        for parameter in self.solved:
            places.setdefault(parameter.targets, parameter)
        return ParameterSet(tuple(places.values()))

    @functools.cached_property
    def columns(self) -> Int[np.ndarray, "recordings slots"]:
        """Which coordinate of the whole each coordinate of one log's parameters is."""
        where = list(zip(self.solved, self.solved.slices(), strict=True))
        out = []
        for recording in self.recordings:
            own: list[int] = []
            for slot in self.slots:
                matches = [s for p, s in where if p.targets == slot.targets and p.log in (None, recording.name)]
                own.extend(range(matches[0].start, matches[0].stop))
            out.append(own)
        return np.array(out, int).reshape(len(self.recordings), self.slots.size)

    @functools.cached_property
    def shooting(self) -> Shooting:
        """How stretches are simulated and compared; networks with many weights are as at the start."""
        return self._shooting(None)

    def _shooting(self, weights: Array | None) -> Shooting:
        return Shooting(
            model=self.simulator.model,
            remembered=remembered(self.simulator),
            simulator_of=lambda theta, known: self._simulator_of(theta, known, weights),
            with_inputs=self._with_inputs,
            channels=self.channels,
            substeps=self.substeps,
        )

    @functools.cached_property
    def kernel(self) -> Kernel:
        """Shots with their derivatives, compiled."""
        return self._twin.kernel if self._twin else self._compiled(lambda shooting: shooting.differentiate)

    @functools.cached_property
    def prediction(self) -> Kernel:
        """Shots without derivatives, compiled."""
        return self._twin.prediction if self._twin else self._compiled(lambda shooting: shooting.shoot)

    @functools.cached_property
    def backwards(self) -> Kernel:
        """The gradient by parameters and weights, compiled."""
        if self._twin:
            return self._twin.backwards
        example = self._one if self.trained.size else (*self._one, np.zeros(0))
        return compiled_pull(self._shooting, example)

    @property
    def compile_seconds(self) -> float:
        """How long it takes to compile all that a fit needs; then it is done [s]."""
        return self.kernel.seconds + (self.backwards.seconds if self.trained.size else 0.0)

    def first_nodes(self) -> Nodes:
        """First states as measured."""
        layout = self.layout
        at = list(zip(layout.log, layout.first, strict=True))
        return Nodes(
            q=np.stack([self.recordings[log].q[first] for log, first in at]),
            v=np.stack([self.recordings[log].v[first] for log, first in at]),
        )

    @functools.cached_property
    def resting(self) -> Bool[np.ndarray, "stretches nx"]:
        """Which numbers of first states are taken to rest as guessed: with contact, those of which no log tells.

        Bodies that touch lie on each other. A height or tilt that no sensor shows would otherwise be free to lift them.
        """
        guessed = np.zeros((len(self.recordings), self.simulator.model.nv), bool)
        if self.simulator.contact is not None:
            for k, recording in enumerate(self.recordings):
                guessed[k] = False if recording.guessed is None else recording.guessed
        return np.tile(guessed, 2)[self.layout.log]

    def differentiate(self, theta: Float[np.ndarray, "size"], nodes: Nodes) -> tuple[Shot, Sensitivity]:
        """All stretches with their derivatives; columns are one log's solved parameters, then those of first states."""
        return self.kernel(*self._arguments(theta, nodes))

    def pull(
        self,
        theta: Float[np.ndarray, "size"],
        nodes: Nodes,
        residual: Float[np.ndarray, "stretches intervals rows"],
        state: Float[np.ndarray, "stretches nx"],
        used: Bool[np.ndarray, "stretches"],
    ) -> Float[np.ndarray, "size"]:
        """The gradient of `sum(residual * residuals) + sum(state * end states)` over stretches, in reverse mode.

        Args:
            theta: Coordinates of the parameters.
            nodes: First states.
            residual: How much each residual counts.
            state: How much each end state counts, in its tangent space.
            used: Which stretches count.
        """
        own, known, stretch, *weights = self._arguments(theta, nodes)
        *shots, r, x = jax.tree.map(lambda x: x[used], (own, known, stretch, residual, state))
        found: Pulled = self.backwards(*shots, *(weights or [np.zeros(0)]), r, x)
        gradient = np.zeros(len(theta))
        gradient[self.solved.size :] = found.weights.sum(axis=0)
        for log, where in enumerate(self.columns):
            gradient[where] += found.theta[self.layout.log[used] == log].sum(axis=0)
        return gradient

    def differentiate_many(
        self, choices: Sequence[tuple[Float[np.ndarray, "size"], Nodes]]
    ) -> list[tuple[Shot, Sensitivity]]:
        """The same for many choices of parameters and first states, side by side."""
        each = [self._arguments(theta, nodes) for theta, nodes in choices]
        done = self.kernel(*jax.tree.map(lambda *x: np.concatenate(x), *each))
        size = self.layout.size
        return [jax.tree.map(lambda x, k=k: x[k * size : (k + 1) * size], done) for k in range(len(each))]

    def stretches(
        self,
        log: int,
        at: Int[np.ndarray, "stretches intervals"],
        q: np.ndarray,
        v: np.ndarray,
        memory: np.ndarray | None = None,
    ) -> Stretch:
        """Stretches of a log, side by side.

        Args:
            log: Which log.
            at: Samples at which their intervals begin.
            q: Their first configurations.
            v: Their first velocities.
            memory: What networks remember at their starts; nothing if not given.
        """
        recording = self.recordings[log]
        commands, stamps = past_commands(recording, at[:, 0], 0, self.simulator.history)
        return Stretch(q, v, commands, stamps, intervals_at(recording, at), self._memory(memory, len(q)))

    def _memory(self, memory: np.ndarray | None, count: int) -> Float[np.ndarray, "stretches remembered"]:
        return np.full((count, self.shooting.remembered), np.nan) if memory is None else memory

    def predict(self, theta: Float[np.ndarray, "size"], log: int, stretch: Stretch) -> Shot:
        """Other stretches of a log, side by side."""
        return self.prediction(*self._of_log(theta, log, stretch))

    def predict_with_derivatives(
        self, theta: Float[np.ndarray, "size"], log: int, stretch: Stretch
    ) -> tuple[Shot, Sensitivity]:
        """The same with derivatives; columns as those of `differentiate`."""
        return self.kernel(*self._of_log(theta, log, stretch))

    def values(self, theta: Float[np.ndarray, "size"]) -> tuple[np.ndarray, np.ndarray]:
        """Values of the solved parameters as one vector, in SI units, and their derivatives by their coordinates."""
        return self._values(theta[..., : self.solved.size])

    @functools.cached_property
    def _values(self) -> Any:
        flat = self.solved.flat
        with jax.enable_x64(True):
            return native.compile(lambda theta: (flat(theta), jax.jacfwd(flat)(theta)), self.solved.start)

    def apart(self, q: Float[np.ndarray, "stretches nq"], start: Float[np.ndarray, "stretches nq"]) -> np.ndarray:
        """The small moves that lead from `start` to `q`."""
        return q - start if self._flat else self._manifold[0](q, start)

    def moved(self, q: Float[np.ndarray, "stretches nq"], dq: Float[np.ndarray, "stretches nv"]) -> np.ndarray:
        """Configurations after small moves."""
        return q + dq if self._flat else self._manifold[1](q, dq)

    @property
    def _flat(self) -> bool:
        return self.simulator.model.nq == self.simulator.model.nv

    @functools.cached_property
    def _manifold(self) -> tuple[Any, Any]:
        model = self.simulator.model
        q, v = np.zeros(model.nq), np.zeros(model.nv)
        with jax.enable_x64(True):
            return (
                native.compile(lambda q, start: difference(model, q, start), q, q),
                native.compile(lambda q, dq: integrate(model, q, dq), q, v),
            )

    @functools.cached_property
    def measured_rows(self) -> Float[np.ndarray, "stretches intervals rows"]:
        """What was measured, row by row of the residual; zero for rotations."""
        measured = self.layout.intervals.measured
        return predicted_values(self.channels, np.zeros((*measured.shape[:-1], len(self.rows))), measured)

    def model_at(self, theta: Float[np.ndarray, "size"], model: Model) -> Model:
        """A model with the parameters at these coordinates, as NumPy arrays."""
        with jax.enable_x64(True):
            simulator = self.simulator.with_parts(model, self.simulator.learned)
            moved = written(simulator, self.slots, jnp.asarray(theta[self.columns[0]])).model
        return jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, moved)

    def simulator_at(self, theta: Float[np.ndarray, "size"], log: int = 0) -> Simulator:
        """The simulator with these parameters, as it is for one of the logs."""
        with jax.enable_x64(True):
            parts = theta[self.columns[log]], self._known[log], theta[self.solved.size :]
            return self._simulator_of(*map(jnp.asarray, parts))

    @functools.cached_property
    def _known(self) -> Float[np.ndarray, "recordings known"]:
        return np.zeros((len(self.recordings), 0)) if self.known_values is None else self.known_values

    def _simulator_of(self, theta: Array, known: Array, weights: Array | None = None) -> Simulator:
        simulator = written(self.simulator, self.slots, theta)
        if weights is not None:
            simulator = written(simulator, self.trained, weights)
        model = simulator.model
        for place, value in zip(self.known, known, strict=True):
            model = write(model, place, value)
        return simulator.with_parts(model, simulator.learned)

    def _with_inputs(self, simulator: Simulator, inputs: Array) -> Simulator:
        model = simulator.model
        for k, place in enumerate(self.inputs):
            model = write(model, place, inputs[k])
        return eqx.tree_at(lambda s: s.model, simulator, model)

    def _arguments(self, theta: np.ndarray, nodes: Nodes) -> tuple[Any, ...]:
        layout = self.layout
        memory = self._memory(nodes.memory, len(nodes.q))
        stretch = Stretch(nodes.q, nodes.v, layout.commands, layout.stamps, layout.intervals, memory)
        return theta[self.columns[layout.log]], self._known[layout.log], stretch, *self._weights(theta)

    def _of_log(self, theta: np.ndarray, log: int, stretch: Stretch) -> tuple[Any, ...]:
        return theta[self.columns[log]], self._known[log], stretch, *self._weights(theta)

    def _weights(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        """Many weights, which all stretches share."""
        return (theta[self.solved.size :],) if self.trained.size else ()

    @functools.cached_property
    def _twin(self) -> "Problem | None":
        """The problem whose kernels serve this one: all that they were compiled from must be the same."""

        def form(problem: Problem) -> tuple:
            shapes = tuple(x.shape for x in jax.tree.leaves(problem._one))
            slots = [(p.targets, p.transform) for p in problem.slots]
            return problem.simulator, problem.channels, problem.known, problem.inputs, problem.substeps, shapes, slots

        if self.like is None or self.chosen is not None:
            return self.like
        with jax.enable_x64(True):
            return self.like if bool(eqx.tree_equal(form(self.like), form(self))) else None

    @functools.cached_property
    def _one(self) -> tuple[Any, ...]:
        """What a kernel takes for one stretch."""
        own, known, stretch, *weights = self._arguments(self.parameters.start, self.first_nodes())
        return *jax.tree.map(lambda x: x[0], (own, known, stretch)), *weights

    def _compiled(self, of: Callable[[Shooting], Callable[..., Any]]) -> Kernel:
        return compiled_shots(lambda weights: of(self._shooting(weights)), self._one)
