"""The recursion: one chunk of samples after the other, with noise that is learned and changes that are noticed."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.data import prepared
from truesim.identify.fit import FLOOR, solve_problem
from truesim.identify.locate import located
from truesim.identify.noise import first_allowance, first_noise
from truesim.identify.online.belief import Beliefs, Chunk, forgotten, learn
from truesim.identify.online.changes import JUMP, Bank
from truesim.identify.online.chunks import Buffer, Rejected, Sample
from truesim.identify.online.update import Change, Update, known
from truesim.identify.problem import Problem
from truesim.identify.recording import recording
from truesim.identify.uncertainty import uncertainty
from truesim.parameters.parameter_set import matches_pattern
from truesim.simulate.sensors import from_encoders

DRIFT = 0.01
"""What the model leaves out moves the state in each chunk by this part of the sensors' roughness."""
UNSURE = 10.0
"""Standard deviation of a state that was read from sensors, over their roughness."""
NOISE_SECONDS = 10.0
"""Time over which the noise of sensors is averaged [s]."""
LOST = 30.0
"""A belief whose predictions are off by this many standard deviations has lost the robot."""


@dataclasses.dataclass(frozen=True)
class Watching:
    """How a stream is watched."""

    changes: Sequence[str] = ("*",)
    """Patterns of free parameters that may change suddenly; none for no detection."""
    first: float = 1.0
    """What is fitted as a whole before the rest is taken chunk by chunk [s]."""
    memory: float = 60.0
    """Time in which what is known of the parameters fades to 37 % [s]; infinite for parameters that never drift."""
    between_alarms: float = 86400.0
    """Mean time between false alarms, at least, for a model that is right [s]."""

    def __post_init__(self) -> None:
        for name in ("first", "memory", "between_alarms"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g} s; it must be positive.")


class Recursion:
    """The belief about a robot whose samples arrive one by one."""

    def __init__(self, problem: Problem, watching: Watching):
        self.problem, self._watching = problem, watching
        self.buffer = Buffer(problem)
        self._floor = FLOOR * first_noise(problem)
        self._roughness = first_allowance(problem)
        _, beliefs = problem.beliefs(problem.parameters.start)
        self._prior = beliefs.T @ beliefs
        self._may_change = _matching(problem, watching.changes)
        solution = solve_problem(problem)
        self.noise = np.maximum(solution.weights.noise, self._floor)
        nx = 2 * problem.simulator.model.nv
        P = np.zeros((1, len(self._prior) + nx, len(self._prior) + nx))
        P[0, : len(self._prior), : len(self._prior)] = uncertainty(solution).coordinates
        model = problem.simulator.model
        belief = Beliefs(solution.theta[None], np.zeros((1, model.nq)), np.zeros((1, model.nv)), P)
        self.bank = Bank(belief, np.where(self._may_change, JUMP**2, 0.0), watching.between_alarms)

    def take(self, sample: Sample) -> Update | Rejected | None:
        """Takes one sample: an update if it completes a chunk, and why if it cannot be used."""
        chunk = self.buffer.add(sample)
        if chunk is None:
            return None
        with threadpool_limits(1):
            return self._learned(chunk)

    def update(self, time: float, change: Change | None = None) -> Update:
        """What is known now."""
        belief, size = self.bank.beliefs, len(self._prior)
        return Update(
            time, self.problem, belief.theta[0], belief.covariance[0, :size, :size], self.bank.statistic, change
        )

    def _learned(self, chunk: Chunk) -> Update | Rejected:
        if self.buffer.fresh:
            self._find_state()
        self.bank.begin(chunk.time - chunk.seconds)
        learned = learn(self.problem, self.bank.beliefs, chunk, self.noise)
        lost = not learned.beliefs.finite[0] or not (self.buffer.fresh or learned.surprise < LOST)
        if lost:
            self.buffer.fresh = True
            return Rejected(f"The simulation lost the robot at {chunk.time:.6g} s and starts again from its sensors.")
        self.buffer.fresh = False
        self._learn_noise(learned.squares, chunk.seconds)
        share = -np.expm1(-chunk.seconds / self._watching.memory)
        self.bank.weigh(forgotten(learned.beliefs, share, self._prior, DRIFT * self._roughness), learned.evidence)
        change = self._change(chunk.time) if self.bank.statistic >= 1 else None
        return self.update(chunk.time, change)

    def _change(self, now: float) -> Change:
        size = len(self._prior)
        winner, before = self.bank.accept()
        past = known(self.problem, before.theta[0], before.covariance[0, :size, :size])
        slices = zip(self.problem.parameters, self.problem.parameters.slices(), strict=True)
        paths = tuple(p.name for p, at in slices if self._may_change[at].any())
        return Change(winner.time, now, past, paths)

    def _find_state(self) -> None:
        """The state at the start of the buffer's chunk as sensors show it; parameters stay."""
        problem, belief = self.problem, self.bank.beliefs.lane(0)
        model = problem.model_at(belief.theta[0], problem.simulator.model)
        log = located([prepared(self.buffer.log(), model)], model)[0]
        shown = recording(log, model, problem.channels)
        q, v = shown.q[0], shown.v[0]
        if not shown.hidden:
            q, v = (np.asarray(x) for x in from_encoders(model, jnp.asarray(q), jnp.asarray(v)))
        P, size = np.zeros_like(belief.covariance), len(self._prior)
        P[:, :size, :size] = belief.covariance[:, :size, :size]
        P[:, size:, size:] = np.diag((UNSURE * self._roughness) ** 2)
        self.bank.restart(Beliefs(belief.theta, q[None], v[None], P))

    def _learn_noise(self, squares: Float[np.ndarray, "intervals rows"], seconds: float) -> None:
        seen = np.isfinite(squares)
        mean = np.where(seen, squares, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        share = np.where(seen.any(axis=0), -np.expm1(-seconds / NOISE_SECONDS), 0.0)
        self.noise = np.maximum(np.sqrt((1 - share) * self.noise**2 + share * mean), self._floor)


def _matching(problem: Problem, patterns: Sequence[str]) -> np.ndarray:
    """Which coordinates belong to parameters that match a pattern."""
    names = problem.parameters.names
    for pattern in patterns:
        if not any(matches_pattern(name, pattern) for name in names):
            raise unknown_name("free parameter", pattern, names)
    chosen = [any(matches_pattern(name, pattern) for pattern in patterns) for name in names]
    return np.repeat(chosen, [p.size for p in problem.parameters]).astype(bool)
