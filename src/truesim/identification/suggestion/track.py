"""Track of a robot through its logs: smoothed states, and linearized dynamics of every interval around them.

Initial states of all segments are fitted with fixed parameters, first separately, then weakly joined to windows, so
that the states are those of the machine and not of the model. Every interval is linearized in its initial state, in the
parameters, and in disturbances of the torques, of the friction bounds of joints, and of the friction coefficients of
rigid contact.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from truesim import native
from truesim.core.typing import Array, Float, Int
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.segments import Nodes, Windows, past_commands
from truesim.identification.problem.shooting import Segment
from truesim.identification.solve.levenberg_marquardt import StageOptions, solve
from truesim.identification.solve.noise import initial_defect_std, initial_noise, residual_noise
from truesim.identification.solve.normal_equations import Point, ResidualWeights, defects, point
from truesim.physics.augmentation.learned import LearnedPhysics
from truesim.physics.blueprint import Blueprint, Constant, Rule, ports
from truesim.physics.simulation import Simulator

SMOOTHING_ITERATIONS = 10
"""Maximum number of iterations that smooth the initial states."""
SMOOTHING_GAIN = 1.0
"""Smoothing ends when the predicted decrease of the cost is below this, times the root of the number of segments."""
SMOOTHING_HUBER = 8.0
"""Residuals beyond this many standard deviations count linearly while states are smoothed."""
TORQUE_PORT, FRICTION_BOUND_PORT, CONTACT_FRICTION_PORT = (
    "joint.torque",
    "joint.friction_bound",
    "contact.friction_coefficient",
)


class IntervalLinearization(NamedTuple):
    """Linearized dynamics and residuals of every interval."""

    residual: Float[np.ndarray, "segments intervals rows"]
    q: Float[np.ndarray, "segments intervals nq"]
    """Configuration at the start of each interval."""
    v: Float[np.ndarray, "segments intervals nv"]
    """Velocity at the start of each interval."""
    A: Float[np.ndarray, "segments intervals nx nx"]
    """Derivative of the state after an interval by the state before, in its tangent space."""
    B: Float[np.ndarray, "segments intervals nx size"]
    """Derivative of the state after an interval by parameters and disturbances."""
    C: Float[np.ndarray, "segments intervals rows nx"]
    """Derivative of the residual by the state."""
    D: Float[np.ndarray, "segments intervals rows size"]
    """Derivative of the residual by parameters and disturbances."""


@dataclasses.dataclass(frozen=True)
class Track:
    """Smoothed states of a problem's logs, and linearizations around them."""

    problem: Problem
    theta: Float[np.ndarray, " size"]
    linear: IntervalLinearization
    """Linearizations; columns of B and D are the parameters of one log, then the disturbances."""
    end: Float[np.ndarray, "segments nv"]
    """Velocity at the end of each segment."""
    defect: Float[np.ndarray, "segments nx"]
    """Difference of the end state of each segment and the initial state of the next."""
    windows: Windows
    noise: Float[np.ndarray, " rows"]
    """Standard deviation of the sensor noise."""

    @property
    def disturbances(self) -> int:
        """Number of disturbances of an interval: torques, friction bounds and friction coefficients."""
        return self.linear.B.shape[-1] - self.problem.slots.size

    def places(self, port: str) -> Int[np.ndarray, " own"]:
        """Indices of the disturbances of a port; those of the torques if it has none of its own."""
        nv, bounds = self.linear.v.shape[-1], len(self.friction_dofs)
        ends = {
            FRICTION_BOUND_PORT: (nv, nv + bounds),
            CONTACT_FRICTION_PORT: (nv + bounds, self.disturbances),
        }
        return np.arange(*ends.get(port, (0, nv)))

    @property
    def friction_dofs(self) -> tuple[int, ...]:
        """Degrees of freedom with joint friction."""
        return self.problem.simulator.joint_model.rough(self.problem.simulator.model)

    @functools.cached_property
    def pieces(self) -> list[Int[np.ndarray, " segments"]]:
        """Groups of segments that follow each other without a gap."""
        return np.split(np.arange(self.problem.layout.size), np.flatnonzero(~self.problem.layout.follows)[1:])


@dataclasses.dataclass(frozen=True)
class Tracker:
    """Computes tracks of a problem at given coordinates of its parameters."""

    problem: Problem
    theta: Float[np.ndarray, " size"]

    def track(self, length: int) -> Track:
        """Track with windows of `length` segments."""
        problem = self.problem
        with threadpool_limits(1):
            nodes = self._smooth(length)
        linear, q, v = self._linearize(nodes)
        ahead = problem.tangent_space.difference(q, np.roll(nodes.q, -1, axis=0)), v - np.roll(nodes.v, -1, axis=0)
        windows = problem.layout.windows(length)
        return Track(problem, self.theta, linear, v, np.concatenate(ahead, axis=1), windows, self._sensor_noise)

    @functools.cached_property
    def _sensor_noise(self) -> Float[np.ndarray, " rows"]:
        return initial_noise(self.problem)

    @functools.cached_property
    def _separate(self) -> Point:
        """Separate segments fitted to the measurements with fixed parameters."""
        problem = self.problem
        weights = ResidualWeights(self._sensor_noise, initial_defect_std(problem), SMOOTHING_HUBER)
        start = point(problem, self.theta, problem.initial_nodes())
        return solve(problem, start, weights, problem.layout.windows(1), self._solver_options).at

    @property
    def _solver_options(self) -> StageOptions:
        return StageOptions(
            iterations=SMOOTHING_ITERATIONS,
            gain=SMOOTHING_GAIN * self.problem.layout.size**0.5,
            held=np.ones(len(self.theta), bool),
        )

    def _smooth(self, length: int) -> Nodes:
        """Initial states of all segments, joined with the defects of the separate segments as continuity weights."""
        problem, at = self.problem, self._separate
        joined = problem.layout.windows(length)
        if not joined.joined.any():
            return at.nodes
        scale = np.sqrt(np.mean(defects(problem, at)[joined.joined] ** 2, axis=0))
        separate = ResidualWeights(self._sensor_noise, initial_defect_std(problem), SMOOTHING_HUBER)
        noise, _ = residual_noise(problem, at, separate, problem.layout.windows(1))
        weights = ResidualWeights(np.maximum(noise, self._sensor_noise), np.maximum(scale, 1e-9), SMOOTHING_HUBER)
        return solve(problem, at, weights, joined, self._solver_options).at.nodes

    def _linearize(self, nodes: Nodes) -> tuple[IntervalLinearization, np.ndarray, np.ndarray]:
        """Linearize all intervals, and return the states at the ends of the segments."""
        problem, layout = self.problem, self.problem.layout
        own, nx, known = problem.slots.size, 2 * nodes.v.shape[1], problem.known_values
        known = np.zeros((layout.size, 0)) if known is None else known[layout.log]
        theta = np.concatenate([self.theta[problem.columns[layout.log]], np.zeros((layout.size, self._count))], axis=1)
        q, v, memory = nodes.q, nodes.v, None
        rows = []
        for k in range(layout.intervals.duration.shape[1]):
            segment = self._interval(k, q, v, memory)
            if k == 0:
                kernel = self._kernel(theta, known, segment)
            simulated, sensitivity = kernel(theta, known, segment)
            J, X = sensitivity.residual[:, 0], sensitivity.state
            split = own + self._count
            rows.append(
                (simulated.residual[:, 0], q, v, X[..., split:], X[..., :split], J[..., split:], J[..., :split])
            )
            q, v, memory = simulated.q, simulated.v, simulated.memory
        assert X.shape[1] == nx, "derivatives of a state are in its tangent space"
        return IntervalLinearization(*(np.stack(parts, axis=1) for parts in zip(*rows, strict=True))), q, v

    def _interval(self, k: int, q: np.ndarray, v: np.ndarray, memory: np.ndarray | None) -> Segment:
        """Interval `k` of every segment as a segment."""
        problem, layout = self.problem, self.problem.layout
        last = np.array([len(r.time) - 2 for r in problem.recordings])[layout.log]
        at, past = np.minimum(layout.first + k, last), []
        for log, recording in enumerate(problem.recordings):
            past.append(past_commands(recording, at[layout.log == log], 0, problem.simulator.history))
        commands, stamps = (np.concatenate(parts) for parts in zip(*past, strict=True))
        interval = jax.tree.map(lambda x: x[:, k : k + 1], layout.intervals)
        remembered = problem.shooting.memory_size
        memory = np.full((layout.size, remembered), np.nan) if memory is None else memory
        return Segment(q, v, commands, stamps, interval, memory)

    @functools.cached_property
    def _disturbances(self) -> LearnedPhysics:
        """Networks that add unknown constants to torques, friction bounds and friction coefficients."""
        simulator = self.problem.simulator
        rules = [Rule(TORQUE_PORT, network=Constant(), sharing="each", name="suggest torque")]
        joints = ports.names(simulator, ports.port(FRICTION_BOUND_PORT))
        names = tuple(joints[d] for d in simulator.joint_model.rough(simulator.model))
        if names:
            rules.append(
                Rule(FRICTION_BOUND_PORT, network=Constant(), sharing="each", names=names, name="suggest bound")
            )
        contact = simulator.impulse_contact
        if contact is not None:
            sharing = "shared" if contact.detector.culls else "each"
            rules.append(Rule(CONTACT_FRICTION_PORT, network=Constant(), sharing=sharing, name="suggest friction"))
        with jax.enable_x64(True):
            return Blueprint(tuple(rules)).build(simulator)

    @functools.cached_property
    def _count(self) -> int:
        with jax.enable_x64(True):
            return sum(self._disturbances.weights(k).size for k in range(len(self._disturbances.networks)))

    @functools.cached_property
    def _kernels(self) -> dict[str, native.Kernel]:
        return {}

    def _kernel(self, *arguments: Any) -> native.Kernel:
        """Kernel of a segment's derivatives by parameters and disturbances."""
        if "kernel" not in self._kernels:
            shooting = dataclasses.replace(self.problem.shooting, simulator_of=self._disturbed_simulator)
            with jax.enable_x64(True):
                example = jax.tree.map(lambda x: x[0], arguments)
                self._kernels["kernel"] = native.compile(shooting.differentiate, *example)
        return self._kernels["kernel"]

    def _disturbed_simulator(self, theta: Array, known: Array) -> Simulator:
        """Simulator with disturbances, whose values follow those of the parameters."""
        at = self.problem.slots.size
        simulator, learned = self.problem.shooting.simulator_of(theta[:at], known), self._disturbances
        for k in range(len(learned.networks)):
            size = learned.weights(k).size
            learned, at = learned.with_weights(k, theta[at : at + size]), at + size
        if simulator.learned is not None:
            learned = LearnedPhysics((*simulator.learned.networks, *learned.networks), simulator.learned.shapes)
        return simulator.with_parts(simulator.model, learned)
