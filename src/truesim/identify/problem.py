"""The problem: a simulator, its free parameters, and the logs it has to agree with."""

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim import native
from truesim.core.typing import Array, Bool, Float, Int
from truesim.dynamics import difference, integrate
from truesim.identify.channels import Channel, predicted_values
from truesim.identify.layout import STRETCH, Layout, intervals_at, lay_out, past_commands, sampling_step
from truesim.identify.recording import Recording
from truesim.identify.shooting import Sensitivity, Shooting, Shot, Stretch
from truesim.identify.weights import written
from truesim.model.model import Model
from truesim.parameters import ParameterSet, Target
from truesim.parameters.parameter import write
from truesim.simulate import Blueprint, Simulator, Trained

VAGUE = 2.0
"""Standard deviation of every coordinate before any log is seen: keeps what no log shows at its start."""


@dataclasses.dataclass(frozen=True)
class Nodes:
    """First states of all stretches."""

    q: Float[np.ndarray, "stretches nq"]
    v: Float[np.ndarray, "stretches nv"]
    memory: Float[np.ndarray, "stretches remembered"] | None = None
    """What networks remember there; without it they begin anew."""


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

    @functools.cached_property
    def layout(self) -> Layout:
        """The logs cut into stretches."""
        return lay_out(self.recordings, self.stretch, self.simulator.history)

    @functools.cached_property
    def substeps(self) -> int:
        """Steps of the simulator within an interval: no step is longer than the simulator's own."""
        return max(1, int(np.ceil(sampling_step(self.recordings) / float(self.simulator.timestep) - 0.01)))

    @functools.cached_property
    def rows(self) -> list[str]:
        """Name of each row of the residual."""
        return [row for channel in self.channels for row in channel.rows]

    @functools.cached_property
    def slots(self) -> ParameterSet:
        """The parameters of one log: those that differ from log to log appear once."""
        places: dict[tuple[Target, ...], Any] = {}
        for parameter in self.parameters:
            places.setdefault(parameter.targets, parameter)
        return ParameterSet(tuple(places.values()))

    @functools.cached_property
    def columns(self) -> Int[np.ndarray, "recordings slots"]:
        """Which coordinate of the whole each coordinate of one log's parameters is."""
        where = list(zip(self.parameters, self.parameters.slices(), strict=True))
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
        """How stretches are simulated and compared."""
        return Shooting(
            model=self.simulator.model,
            remembered=_remembered(self.simulator),
            simulator_of=self._simulator_of,
            with_inputs=self._with_inputs,
            channels=self.channels,
            substeps=self.substeps,
        )

    @functools.cached_property
    def kernel(self) -> "Timed":
        """Shots with their derivatives, compiled."""
        return self._twin.kernel if self._twin else self._compiled(self.shooting.differentiate)

    @functools.cached_property
    def prediction(self) -> "Timed":
        """Shots without derivatives, compiled."""
        return self._twin.prediction if self._twin else self._compiled(self.shooting.shoot)

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
        """All stretches with their derivatives; columns are those of one log's parameters, then of the first state."""
        return self.kernel(*self._arguments(theta, nodes))

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
        return self.prediction(theta[self.columns[log]], self._known[log], stretch)

    def predict_with_derivatives(
        self, theta: Float[np.ndarray, "size"], log: int, stretch: Stretch
    ) -> tuple[Shot, Sensitivity]:
        """The same with derivatives; columns as those of `differentiate`."""
        return self.kernel(theta[self.columns[log]], self._known[log], stretch)

    def beliefs(self, theta: Float[np.ndarray, "size"]) -> tuple[np.ndarray, np.ndarray]:
        """Departures from priors in standard deviations, and their derivatives by the coordinates."""
        size = self.parameters.size
        rows, derivatives = [(theta - self.parameters.start) / VAGUE], [np.eye(size) / VAGUE]
        if any(p.prior for p in self.parameters):
            values, jacobian = self.values(theta)
            for parameter, at in zip(self.parameters, self.parameters.number_slices(), strict=True):
                if parameter.prior:
                    std = np.ravel(parameter.prior.std)
                    rows.append((values[at] - np.ravel(parameter.prior.mean)) / std)
                    derivatives.append(jacobian[at] / std[:, None])
        return np.concatenate(rows), np.concatenate(derivatives)

    def values(self, theta: Float[np.ndarray, "size"]) -> tuple[np.ndarray, np.ndarray]:
        """All values as one vector, in SI units, and their derivatives by the coordinates."""
        return self._values(theta)

    @functools.cached_property
    def _values(self) -> Any:
        flat = self.parameters.flat
        with jax.enable_x64(True):
            return native.compile(lambda theta: (flat(theta), jax.jacfwd(flat)(theta)), self.parameters.start)

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
            return self._simulator_of(jnp.asarray(theta[self.columns[log]]), jnp.asarray(self._known[log]))

    @functools.cached_property
    def _known(self) -> Float[np.ndarray, "recordings known"]:
        return np.zeros((len(self.recordings), 0)) if self.known_values is None else self.known_values

    def _simulator_of(self, theta: Array, known: Array) -> Simulator:
        simulator = written(self.simulator, self.slots, theta)
        model = simulator.model
        for place, value in zip(self.known, known, strict=True):
            model = write(model, place, value)
        return simulator.with_parts(model, simulator.learned)

    def _with_inputs(self, simulator: Simulator, inputs: Array) -> Simulator:
        model = simulator.model
        for k, place in enumerate(self.inputs):
            model = write(model, place, inputs[k])
        return eqx.tree_at(lambda s: s.model, simulator, model)

    def _arguments(self, theta: np.ndarray, nodes: Nodes) -> tuple[np.ndarray, np.ndarray, Stretch]:
        layout = self.layout
        memory = self._memory(nodes.memory, len(nodes.q))
        stretch = Stretch(nodes.q, nodes.v, layout.commands, layout.stamps, layout.intervals, memory)
        return theta[self.columns[layout.log]], self._known[layout.log], stretch

    @functools.cached_property
    def _twin(self) -> "Problem | None":
        """The problem whose kernels serve this one: all that they were compiled from must be the same."""

        def form(problem: Problem) -> tuple:
            shapes = tuple(x.shape for x in jax.tree.leaves(problem._one))
            slots = [(p.targets, p.transform) for p in problem.slots]
            return problem.simulator, problem.channels, problem.known, problem.inputs, problem.substeps, shapes, slots

        if self.like is None:
            return None
        with jax.enable_x64(True):
            return self.like if bool(eqx.tree_equal(form(self.like), form(self))) else None

    @functools.cached_property
    def _one(self) -> tuple:
        """What a kernel takes for one stretch."""
        return jax.tree.map(lambda x: x[0], self._arguments(self.parameters.start, self.first_nodes()))

    def _compiled(self, f: Any) -> "Timed":
        begin = time.perf_counter()
        with jax.enable_x64(True):
            kernel = native.compile(f, *self._one)
        return Timed(kernel, time.perf_counter() - begin)


@dataclasses.dataclass(frozen=True)
class Timed:
    """A kernel, and how long it took to compile."""

    kernel: native.Kernel
    seconds: float
    """[s]"""

    def __call__(self, *args: Any) -> Any:
        """Runs the kernel."""
        return self.kernel(*args)


def _remembered(simulator: Simulator) -> int:
    """How many numbers networks remember from step to step."""
    if simulator.learned is None:
        return 0
    with jax.enable_x64(True):
        return ravel_pytree(simulator.learned.first_memory())[0].size
