"""Estimation problems: a simulator, its free parameters, and the recordings to fit."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from truesim.core.typing import Array, Bool, Float, Int
from truesim.identification.problem.channels import Channel, predicted_values
from truesim.identification.problem.kernels import Pullback, SegmentKernels, TimedKernel
from truesim.identification.problem.network_weights import is_network, memory_size
from truesim.identification.problem.per_log import slot_columns, slots_of
from truesim.identification.problem.recording import Recording
from truesim.identification.problem.segments import (
    Nodes,
    Segmentation,
    intervals_at,
    past_commands,
    sampling_step,
    segment_recordings,
)
from truesim.identification.problem.shooting import Segment, Sensitivity, Shooting, SimulatedSegment
from truesim.identification.problem.tangent_space import TangentSpace
from truesim.physics.blueprint import Blueprint, Trained
from truesim.physics.model.model import Model
from truesim.physics.model.targets import write
from truesim.physics.parameters import ParameterSet, Target
from truesim.physics.parameters.value_map import ValueMap
from truesim.physics.simulation import Simulator

MANY_WEIGHTS = 200
"""Network weights beyond which gradients are taken in reverse mode. Larger allows Gauss-Newton for larger networks."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """An estimation problem: simulator, free parameters, channels and recordings."""

    simulator: Simulator
    """Simulator with the start values."""
    parameters: ParameterSet
    channels: tuple[Channel, ...]
    """Channels of the residual."""
    recordings: tuple[Recording, ...]
    known: tuple[Target, ...] = ()
    """Model parameters with a known value for each log."""
    known_values: Float[np.ndarray, "recordings known"] | None = None
    inputs: tuple[Target, ...] = ()
    """Model parameters that follow a column of the log."""
    prior_width: float = 2.0
    """Standard deviation of the weak prior of every coordinate; see `ProblemOptions.prior_width`."""
    blueprint: Blueprint | Trained | None = None
    """Description of the networks of the simulator, if it has any."""
    level: int = 0
    """LLVM's optimization level of the kernels; see `ProblemOptions.level`. Training has level 1."""
    like: "Problem | None" = None
    """A problem whose kernels are shared if they are the same, such as the same problem with other logs."""
    selection: Int[np.ndarray, " some"] | None = None
    """Segments of the problem `like` that this problem consists of; all segments of its own logs if not given."""

    @functools.cached_property
    def layout(self) -> Segmentation:
        """Segments of all recordings."""
        if self.selection is not None and self.like is not None:
            return self.like.layout.select(self.selection)
        return segment_recordings(self.recordings, history=self.simulator.history)

    def select(self, segments: Int[np.ndarray, " some"]) -> "Problem":
        """The problem restricted to some of its segments."""
        return dataclasses.replace(self, like=self, selection=segments)

    @functools.cached_property
    def substeps(self) -> int:
        """Simulator steps in each interval: the fewest that are not longer than the simulator's own step."""
        return max(1, int(np.ceil(sampling_step(self.recordings) / float(self.simulator.timestep) - 0.01)))

    @functools.cached_property
    def rows(self) -> list[str]:
        """Name of each row of the residual."""
        return [row for channel in self.channels for row in channel.rows]

    @functools.cached_property
    def trained(self) -> ParameterSet:
        """Network weights, if there are more than `MANY_WEIGHTS`: the last parameters, shared by all logs."""
        networks = tuple(p for p in self.parameters if is_network(p))
        return ParameterSet(networks if sum(p.size for p in networks) > MANY_WEIGHTS else ())

    @functools.cached_property
    def solved(self) -> ParameterSet:
        """All other parameters, which Gauss-Newton solves for."""
        return ParameterSet(tuple(p for p in self.parameters if not (self.trained.size and is_network(p))))

    @functools.cached_property
    def slots(self) -> ParameterSet:
        """Solved parameters of one log: those that differ from log to log appear once."""
        return slots_of(self.solved)

    @functools.cached_property
    def columns(self) -> Int[np.ndarray, "recordings slots"]:
        """For each log, the index of each coordinate of `slots` among all coordinates."""
        return np.stack([slot_columns(self.solved, recording.name) for recording in self.recordings])

    @functools.cached_property
    def shooting(self) -> Shooting:
        """Simulation of segments by coordinates; networks with many weights keep their start."""
        return self._make_shooting(self.simulator, self._simulator_of)

    def _make_shooting(self, simulator: Simulator, simulator_of: Callable[[Array, Array], Simulator]) -> Shooting:
        return Shooting(
            model=simulator.model,
            memory_size=memory_size(self.simulator),
            simulator_of=simulator_of,
            with_inputs=self._with_inputs,
            channels=self.channels,
            substeps=self.substeps,
        )

    def _shooting_by_values(self, weights: Array | None) -> Shooting:
        """Simulation of segments by physical values; NaN is in the place of every number that they replace."""
        start = self._blank
        return self._make_shooting(start, lambda values, known: self._with_values(start, values, known, weights))

    @functools.cached_property
    def _blank(self) -> Simulator:
        """The simulator with NaN in the place of all free numbers."""
        return self.trained.erase(self.slots.erase(self.simulator))

    @functools.cached_property
    def kernels(self) -> SegmentKernels:
        """Compiled kernels of the segments, shared with `like` if they are the same."""
        if self._twin is not None:
            return self._twin.kernels
        level = 1 if self.trained.size else self.level
        by_routines = self.simulator.constraint_contact is not None
        return SegmentKernels(self._shooting_by_values, self._example, self.slots, self._parts, level, by_routines)

    @functools.cached_property
    def optimized(self) -> "Problem":
        """The same problem with kernels for many thousands of calls."""
        return self if self.level else dataclasses.replace(self, level=1)

    @functools.cached_property
    def _parts(self) -> tuple[Any, ...]:
        """Everything that the kernels of the segments are made from."""
        free, trained = ([(p.targets, np.shape(p.start)) for p in each] for each in (self.slots, self.trained))
        return self._blank, self.channels, self.known, self.inputs, self.substeps, free, trained

    @property
    def kernel(self) -> TimedKernel:
        """Compiled kernel of segments with their derivatives."""
        return self.kernels.derivatives

    def compile(self) -> float:
        """Compile all kernels of the fit, unless that is done; return how long that took [s]."""
        return self.kernel.seconds + (self.kernels.pullback.seconds if self.trained.size else 0.0)

    @functools.cached_property
    def tangent_space(self) -> TangentSpace:
        """Differences and small moves of configurations."""
        return TangentSpace(self.simulator.model)

    def initial_nodes(self) -> Nodes:
        """Measured initial states of all segments."""
        layout = self.layout
        at = list(zip(layout.log, layout.first, strict=True))
        return Nodes(
            q=np.stack([self.recordings[log].q[first] for log, first in at]),
            v=np.stack([self.recordings[log].v[first] for log, first in at]),
        )

    @functools.cached_property
    def anchored(self) -> Bool[np.ndarray, "segments nx"]:
        """Components of initial states that stay at their initial guess: with contact, those that no log measures.

        Bodies in contact rest on each other. An unmeasured height or tilt could otherwise lift them.
        """
        unobserved = np.zeros((len(self.recordings), self.simulator.model.nv), bool)
        if self.simulator.contact is not None:
            for k, recording in enumerate(self.recordings):
                unobserved[k] = False if recording.unobserved is None else recording.unobserved
        return np.tile(unobserved, 2)[self.layout.log]

    def simulate(self, theta: Float[np.ndarray, " size"], nodes: Nodes) -> SimulatedSegment:
        """Simulate all segments."""
        return self.kernels.values(*self.arguments(theta, nodes))

    def differentiate(self, theta: Float[np.ndarray, " size"], nodes: Nodes) -> tuple[SimulatedSegment, Sensitivity]:
        """Simulate all segments with derivatives; columns are the log's solved parameters, then the initial state."""
        return self.kernel(*self.arguments(theta, nodes))

    def gradient(
        self,
        theta: Float[np.ndarray, " size"],
        nodes: Nodes,
        residual: Float[np.ndarray, "segments intervals rows"],
        state: Float[np.ndarray, "segments nx"],
        used: Bool[np.ndarray, " segments"],
    ) -> Float[np.ndarray, " size"]:
        """Gradient of `sum(residual * residuals) + sum(state * end states)` over segments, in reverse mode.

        Args:
            theta: Coordinates of the parameters.
            nodes: Initial states.
            residual: Weight of each residual.
            state: Weight of each end state, in its tangent space.
            used: Segments that are included.
        """
        own, known, segment, *weights = self.arguments(theta, nodes)
        *arguments, r, x = jax.tree.map(lambda x: x[used], (own, known, segment, residual, state))
        found: Pullback = self.kernels.pullback(*arguments, *(weights or [np.zeros(0)]), r, x)
        gradient = np.zeros(len(theta))
        gradient[self.solved.size :] = found.weights.sum(axis=0)
        for log, where in enumerate(self.columns):
            gradient[where] += found.theta[self.layout.log[used] == log].sum(axis=0)
        return gradient

    def segments(
        self,
        log: int,
        at: Int[np.ndarray, "segments intervals"],
        q: np.ndarray,
        v: np.ndarray,
        memory: np.ndarray | None = None,
    ) -> Segment:
        """Segments of a log, stacked.

        Args:
            log: Index of the log.
            at: Samples at which the intervals begin.
            q: Initial configurations.
            v: Initial velocities.
            memory: Initial memory of the networks; initialized if not given.
        """
        recording = self.recordings[log]
        commands, stamps = past_commands(recording, at[:, 0], 0, self.simulator.history)
        return Segment(q, v, commands, stamps, intervals_at(recording, at), self._memory(memory, len(q)))

    def _memory(self, memory: np.ndarray | None, count: int) -> Float[np.ndarray, "segments memory"]:
        return np.full((count, memory_size(self.simulator)), np.nan) if memory is None else memory

    def predict(self, theta: Float[np.ndarray, " size"], log: int, segment: Segment) -> SimulatedSegment:
        """Simulate segments of a log."""
        return self.kernels.predict(*self._of_log(theta, log, segment))

    def predict_with_derivatives(
        self, theta: Float[np.ndarray, " size"], log: int, segment: Segment
    ) -> tuple[SimulatedSegment, Sensitivity]:
        """Simulate segments of a log with derivatives; columns as in `differentiate`."""
        return self.kernel(*self._of_log(theta, log, segment))

    def values(
        self, theta: Float[np.ndarray, "*batch size"]
    ) -> tuple[Float[np.ndarray, "*batch numbers"], Float[np.ndarray, "*batch numbers solved"]]:
        """Values of the solved parameters as one vector [SI units], and their derivatives by the coordinates."""
        own = theta[..., : self.solved.size]
        return self._value_map.values(own), self._value_map.jacobian(own)

    @functools.cached_property
    def _value_map(self) -> ValueMap:
        return ValueMap(self.solved)

    @functools.cached_property
    def measured_rows(self) -> Float[np.ndarray, "segments intervals rows"]:
        """Measurement of each row of the residual; zero for rotations."""
        measured = np.asarray(self.layout.intervals.measured)
        return predicted_values(self.channels, np.zeros((*measured.shape[:-1], len(self.rows))), measured)

    def model_at(self, theta: Float[np.ndarray, " size"], model: Model) -> Model:
        """A model with the parameters at these coordinates, as NumPy arrays."""
        simulator = self.simulator.with_parts(model, self.simulator.learned)
        return self.slots.write_values(simulator, ValueMap(self.slots).values(theta[self.columns[0]])).model

    def simulator_at(self, theta: Float[np.ndarray, " size"], log: int = 0) -> Simulator:
        """The simulator at these coordinates, for one of the logs."""
        with jax.enable_x64(True):
            values = ValueMap(self.slots).values(theta[self.columns[log]])
            return self._with_values(self.simulator, values, self._known[log], theta[self.solved.size :])

    @functools.cached_property
    def _known(self) -> Float[np.ndarray, "recordings known"]:
        return np.zeros((len(self.recordings), 0)) if self.known_values is None else self.known_values

    def _simulator_of(self, theta: Array, known: Array) -> Simulator:
        return self._with_known(self.slots.write(self.simulator, theta), known)

    def _with_values(self, simulator: Simulator, values: Array, known: Array, weights: Array | None) -> Simulator:
        simulator = self.slots.write_values(simulator, values)
        if weights is not None:
            simulator = self.trained.write_values(simulator, weights)
        return self._with_known(simulator, known)

    def _with_known(self, simulator: Simulator, known: Array) -> Simulator:
        model = simulator.model
        for target, value in zip(self.known, known, strict=True):
            model = write(model, target, value)
        return simulator.with_parts(model, simulator.learned)

    def _with_inputs(self, simulator: Simulator, inputs: Array) -> Simulator:
        model = simulator.model
        for k, target in enumerate(self.inputs):
            model = write(model, target, inputs[k])
        return eqx.tree_at(lambda s: s.model, simulator, model)

    def arguments(self, theta: np.ndarray, nodes: Nodes) -> tuple[Any, ...]:
        """Arguments of the kernels for all segments."""
        layout = self.layout
        memory = self._memory(nodes.memory, len(nodes.q))
        segment = Segment(nodes.q, nodes.v, layout.commands, layout.stamps, layout.intervals, memory)
        return theta[self.columns[layout.log]], self._known[layout.log], segment, *self._weights(theta)

    def _of_log(self, theta: np.ndarray, log: int, segment: Segment) -> tuple[Any, ...]:
        return theta[self.columns[log]], self._known[log], segment, *self._weights(theta)

    def _weights(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        """Weights that all segments share, if there are many."""
        return (theta[self.solved.size :],) if self.trained.size else ()

    @functools.cached_property
    def _twin(self) -> "Problem | None":
        """The problem `like`, if its kernels are the same: equal simulator, channels, parameters and shapes."""

        def signature(problem: Problem) -> tuple:
            shapes = tuple(x.shape for x in jax.tree.leaves(problem._example))
            slots = [(p.targets, p.transform) for p in problem.slots]
            compiled = problem.known, problem.inputs, problem.substeps, problem.level
            return problem.simulator, problem.channels, *compiled, shapes, slots

        if self.like is None or self.selection is not None:
            return self.like
        with jax.enable_x64(True):
            return self.like if bool(eqx.tree_equal(signature(self.like), signature(self))) else None

    @functools.cached_property
    def _example(self) -> tuple[Any, ...]:
        """Arguments of a kernel for one segment."""
        own, known, segment, *weights = self.arguments(self.parameters.start, self.initial_nodes())
        return *jax.tree.map(lambda x: x[0], (own, known, segment)), *weights
