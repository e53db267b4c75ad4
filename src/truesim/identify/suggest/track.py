"""The track of a robot through its logs: smoothed states, and what a disturbance of any interval would have changed.

First states of all stretches are fitted with the parameters held, at first alone, then loosely joined to windows, so
that the states are those of the machine and not of the model. Around them every interval is linear in a small move of
its first state, in the parameters, and in a disturbance of the torques, of the bounds of dry friction in joints, and of
the coefficients of friction of rigid contact.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from truesim import native
from truesim.core.typing import Array, Float, Int
from truesim.identify.layout import Nodes, Windows, past_commands
from truesim.identify.levenberg_marquardt import Search, solve
from truesim.identify.noise import first_allowance, first_noise, residual_noise
from truesim.identify.normal import Point, Weights, jumps, point
from truesim.identify.problem import Problem
from truesim.identify.shooting import Stretch
from truesim.simulate import Blueprint, Constant, Rule, Simulator
from truesim.simulate.augment import ports
from truesim.simulate.augment.learned import Learned

ITERATIONS, GAIN = 10, 1.0
"""First states are good enough when the cost would fall by less than this."""
THRESHOLD = 8.0
"""Residuals beyond this many standard deviations count linearly while states are smoothed."""
TORQUE, BOUND, FRICTION = "joint.torque", "joint.friction_bound", "contact.friction_coefficient"


class Linear(NamedTuple):
    """Every interval by itself: lanes are stretches, then come their intervals."""

    residual: Float[np.ndarray, "stretches intervals rows"]
    q: Float[np.ndarray, "stretches intervals nq"]
    """Configuration at the start of each interval."""
    v: Float[np.ndarray, "stretches intervals nv"]
    """Velocity at the start of each interval."""
    A: Float[np.ndarray, "stretches intervals nx nx"]
    """Derivative of the state after an interval by the state before, in its tangent space."""
    B: Float[np.ndarray, "stretches intervals nx size"]
    """Derivative of the state after an interval by parameters and disturbances."""
    C: Float[np.ndarray, "stretches intervals rows nx"]
    """Derivative of the residual by the state."""
    D: Float[np.ndarray, "stretches intervals rows size"]
    """Derivative of the residual by parameters and disturbances."""


@dataclasses.dataclass(frozen=True)
class Track:
    """Smoothed logs of a problem, linear around their states."""

    problem: Problem
    theta: Float[np.ndarray, "size"]
    linear: Linear
    """Columns of B and D: the parameters of one log, then the disturbances."""
    end: Float[np.ndarray, "stretches nv"]
    """Velocity at the end of each stretch."""
    jump: Float[np.ndarray, "stretches nx"]
    """From the first state of the next stretch to the end of this one."""
    windows: Windows
    noise: Float[np.ndarray, "rows"]
    """What the sensors have by themselves."""

    @property
    def disturbances(self) -> int:
        """Number of disturbances of an interval: torques, bounds of dry friction, coefficients of contact."""
        return self.linear.B.shape[-1] - self.problem.slots.size

    def places(self, port: str) -> Int[np.ndarray, "own"]:
        """Which of the disturbances are those of a port; torques unless it has its own."""
        nv, rough = self.linear.v.shape[-1], len(self.rough)
        ends = {BOUND: (nv, nv + rough), FRICTION: (nv + rough, self.disturbances)}
        return np.arange(*ends.get(port, (0, nv)))

    @property
    def rough(self) -> tuple[int, ...]:
        """Degrees of freedom with dry friction."""
        return self.problem.simulator.joint_law.rough(self.problem.simulator.model)

    @functools.cached_property
    def pieces(self) -> list[Int[np.ndarray, "stretches"]]:
        """Stretches that follow each other without a gap."""
        return np.split(np.arange(self.problem.layout.size), np.flatnonzero(~self.problem.layout.follows)[1:])


@dataclasses.dataclass(frozen=True)
class Tracker:
    """Makes tracks of a problem at given coordinates of its parameters."""

    problem: Problem
    theta: Float[np.ndarray, "size"]

    def track(self, length: int) -> Track:
        """The track with windows of `length` stretches."""
        problem = self.problem
        with threadpool_limits(1):
            nodes = self._smoothed(length)
        linear, q, v = self._linear(nodes)
        ahead = problem.apart(q, np.roll(nodes.q, -1, axis=0)), v - np.roll(nodes.v, -1, axis=0)
        windows = problem.layout.windows(length)
        return Track(problem, self.theta, linear, v, np.concatenate(ahead, axis=1), windows, self._floor)

    @functools.cached_property
    def _floor(self) -> Float[np.ndarray, "rows"]:
        return first_noise(self.problem)

    @functools.cached_property
    def _alone(self) -> Point:
        """Stretches alone, fitted to the measurements, parameters held."""
        problem = self.problem
        weights = Weights(self._floor, first_allowance(problem), THRESHOLD)
        start = point(problem, self.theta, problem.first_nodes())
        return solve(problem, start, weights, problem.layout.windows(1), self._search).at

    @property
    def _search(self) -> Search:
        return Search(
            iterations=ITERATIONS, gain=GAIN * self.problem.layout.size**0.5, held=np.ones(len(self.theta), bool)
        )

    def _smoothed(self, length: int) -> Nodes:
        """First states of all stretches, joined as loosely as the stretches alone show that the model is wrong."""
        problem, at = self.problem, self._alone
        joined = problem.layout.windows(length)
        if not joined.joined.any():
            return at.nodes
        scale = np.sqrt(np.mean(jumps(problem, at)[joined.joined] ** 2, axis=0))
        rough = Weights(self._floor, first_allowance(problem), THRESHOLD)
        noise, _ = residual_noise(problem, at, rough, problem.layout.windows(1))
        weights = Weights(np.maximum(noise, self._floor), np.maximum(scale, 1e-9), THRESHOLD)
        return solve(problem, at, weights, joined, self._search).at.nodes

    def _linear(self, nodes: Nodes) -> tuple[Linear, np.ndarray, np.ndarray]:
        """All stretches interval by interval, and the states at their ends."""
        problem, layout = self.problem, self.problem.layout
        own, nx, known = problem.slots.size, 2 * nodes.v.shape[1], problem.known_values
        known = np.zeros((layout.size, 0)) if known is None else known[layout.log]
        theta = np.concatenate([self.theta[problem.columns[layout.log]], np.zeros((layout.size, self._count))], axis=1)
        q, v, memory = nodes.q, nodes.v, None
        rows = []
        for k in range(layout.intervals.duration.shape[1]):
            stretch = self._interval(k, q, v, memory)
            if k == 0:
                kernel = self._kernel(theta, known, stretch)
            shot, sensitivity = kernel(theta, known, stretch)
            J, X = sensitivity.residual[:, 0], sensitivity.state
            split = own + self._count
            rows.append((shot.residual[:, 0], q, v, X[..., split:], X[..., :split], J[..., split:], J[..., :split]))
            q, v, memory = shot.q, shot.v, shot.memory
        assert X.shape[1] == nx, "derivatives of a state are in its tangent space"
        return Linear(*(np.stack(parts, axis=1) for parts in zip(*rows, strict=True))), q, v

    def _interval(self, k: int, q: np.ndarray, v: np.ndarray, memory: np.ndarray | None) -> Stretch:
        """Interval `k` of every stretch as a stretch of its own."""
        problem, layout = self.problem, self.problem.layout
        last = np.array([len(r.time) - 2 for r in problem.recordings])[layout.log]
        at, past = np.minimum(layout.first + k, last), []
        for log, recording in enumerate(problem.recordings):
            past.append(past_commands(recording, at[layout.log == log], 0, problem.simulator.history))
        commands, stamps = (np.concatenate(parts) for parts in zip(*past, strict=True))
        interval = jax.tree.map(lambda x: x[:, k : k + 1], layout.intervals)
        remembered = problem.shooting.remembered
        memory = np.full((layout.size, remembered), np.nan) if memory is None else memory
        return Stretch(q, v, commands, stamps, interval, memory)

    @functools.cached_property
    def _plan(self) -> Learned:
        """Unknown numbers at all torques, bounds of friction, and coefficients of friction without own forces."""
        simulator = self.problem.simulator
        rules = [Rule(TORQUE, network=Constant(), sharing="each", name="suggest torque")]
        joints = ports.names(simulator, ports.port(BOUND))
        rough = tuple(joints[d] for d in simulator.joint_law.rough(simulator.model))
        if rough:
            rules.append(Rule(BOUND, network=Constant(), sharing="each", names=rough, name="suggest bound"))
        if simulator.contact is not None and not simulator.contact.is_smooth:
            sharing = "shared" if simulator.contact.detector.culls else "each"
            rules.append(Rule(FRICTION, network=Constant(), sharing=sharing, name="suggest friction"))
        with jax.enable_x64(True):
            return Blueprint(tuple(rules)).build(simulator)

    @functools.cached_property
    def _count(self) -> int:
        with jax.enable_x64(True):
            return sum(self._plan.weights(k).size for k in range(len(self._plan.networks)))

    @functools.cached_property
    def _compiled(self) -> dict[str, native.Kernel]:
        return {}

    def _kernel(self, *arguments: Any) -> native.Kernel:
        """Derivatives of a stretch by parameters and disturbances."""
        if "kernel" not in self._compiled:
            shooting = dataclasses.replace(self.problem.shooting, simulator_of=self._disturbed)
            with jax.enable_x64(True):
                example = jax.tree.map(lambda x: x[0], arguments)
                self._compiled["kernel"] = native.compile(shooting.differentiate, *example)
        return self._compiled["kernel"]

    def _disturbed(self, theta: Array, known: Array) -> Simulator:
        """The simulator with disturbances, whose numbers follow those of the parameters."""
        at = self.problem.slots.size
        simulator, learned = self.problem.shooting.simulator_of(theta[:at], known), self._plan
        for k in range(len(learned.networks)):
            size = learned.weights(k).size
            learned, at = learned.with_weights(k, theta[at : at + size]), at + size
        if simulator.learned is not None:
            learned = Learned((*simulator.learned.networks, *learned.networks), simulator.learned.shapes)
        return simulator.with_parts(simulator.model, learned)
