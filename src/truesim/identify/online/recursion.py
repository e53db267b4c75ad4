"""The recursion: one chunk of samples after the other, with noise that is learned and changes that are noticed."""

import dataclasses
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from threadpoolctl import ThreadpoolController

from truesim.core.errors import TruesimError, unknown_name
from truesim.data import prepared
from truesim.identify.beliefs import beliefs
from truesim.identify.fit import solve_problem
from truesim.identify.locate import located
from truesim.identify.online.belief import Beliefs, Chunk, Learned, forgotten, learn
from truesim.identify.online.changes import JUMP, Bank
from truesim.identify.online.chunks import Buffer, Rejected, Sample
from truesim.identify.online.departures import Departures
from truesim.identify.online.update import Change, Update, known
from truesim.identify.problem import Problem
from truesim.identify.recording import recording
from truesim.identify.uncertainty import uncertainty
from truesim.parameters.parameter_set import matches_pattern
from truesim.simulate.sensors import from_encoders

REHEARSALS = 3
"""Times that the first samples are gone through, to learn the noise and what the model leaves out."""
UNSURE = 10.0
"""Standard deviation of a state that was read from sensors, over their roughness."""
LOST = 30.0
"""A belief whose predictions are off by this many standard deviations has lost the robot."""


@dataclasses.dataclass(frozen=True)
class Watching:
    """How a stream is watched."""

    changes: Sequence[str] = ("*",)
    """Patterns of free parameters that may change suddenly; none for no detection."""
    first: float = 2.0
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

    def __init__(self, problem: Problem, watching: Watching, *, restored: Mapping[str, np.ndarray] | None = None):
        """Fits the problem's log as a whole, or goes on from arrays that `state` gave."""
        self.problem, self._watching = problem, watching
        self.buffer = Buffer(problem)
        self._threads = ThreadpoolController()
        _, prior = beliefs(problem, problem.parameters.start)
        self._prior = prior.T @ prior
        self._may_change = _matching(problem, watching.changes)
        self._rehearsed: Departures | None = None
        self._now = problem.recordings[0].time[-1]
        self.bank = Bank(np.where(self._may_change, JUMP**2, 0.0), watching.between_alarms)
        if restored is None:
            self._first = self._fit()
        else:
            self._restore(restored)

    def _fit(self) -> Beliefs:
        """What a fit to the first samples tells of the parameters."""
        model, size = self.problem.simulator.model, len(self._prior)
        solution = solve_problem(self.problem)
        self.departures = Departures.at_first(self.problem, solution.weights.noise)
        P = np.zeros((1, size + 2 * model.nv, size + 2 * model.nv))
        P[0, :size, :size] = uncertainty(solution).coordinates
        return Beliefs(solution.theta[None], np.zeros((1, model.nq)), np.zeros((1, model.nv)), P)

    def state(self) -> dict[str, np.ndarray]:
        """What is needed to go on, as arrays."""
        belief = self.bank.beliefs.lane(0)
        departures = {f"departures/{k}": np.asarray(v) for k, v in dataclasses.asdict(self.departures).items()}
        buffer = {f"buffer/{k}": v for k, v in self.buffer.state().items()}
        best = {"best": np.array(self.bank.best), "now": np.array(self._now)}
        return {**belief._asdict(), **departures, **buffer, **best}

    def _restore(self, state: Mapping[str, np.ndarray]) -> None:
        def part(name: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(name): v for k, v in state.items() if k.startswith(name)}

        self.departures = Departures(**part("departures/"))  # type: ignore[arg-type]
        self.buffer.restore(part("buffer/"))
        self.bank.restart(Beliefs(*(state[name] for name in Beliefs._fields)))
        self.bank.best, self._now = state["best"].tolist(), float(state["now"])

    def rehearse(self, samples: Sequence[Sample]) -> None:
        """Goes through the first samples several times, to learn the noise of sensors and what the model leaves out."""
        for _ in range(REHEARSALS):
            self.buffer, self._rehearsed = Buffer(self.problem), self.departures.forgetful()
            self.bank.restart(self._first)
            for sample in samples:
                self.take(sample)
            self.departures, self._rehearsed = self._rehearsed, None
        self.buffer = Buffer(self.problem)
        self.bank.restart(self._first)

    def take(self, sample: Sample) -> Update | Rejected | None:
        """Takes one sample: an update if it completes a chunk, and why if it cannot be used."""
        chunk = self.buffer.add(sample)
        if chunk is None:
            return None
        with self._threads.limit(limits=1):
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
        if self._rehearsed is None:
            self.bank.begin(chunk.time - chunk.seconds)
        learned = learn(self.problem, self.bank.beliefs, chunk, self.departures.noise)
        lost = not learned.beliefs.finite[0] or not (self.buffer.fresh or learned.surprise < LOST)
        if lost:
            self.buffer.fresh = True
            return Rejected(f"The simulation lost the robot at {chunk.time:.6g} s and starts again from its sensors.")
        self._learn_departures(learned, chunk.seconds)
        self.buffer.fresh, self._now = False, chunk.time
        share = -np.expm1(-chunk.seconds / self._watching.memory)
        self.bank.weigh(forgotten(learned.beliefs, share, self._prior, self.departures.drift), learned.evidence)
        change = self._change(chunk.time) if self.bank.statistic >= 1 else None
        return self.update(chunk.time, change)

    def _learn_departures(self, learned: Learned, seconds: float) -> None:
        drift, fresh = self.departures.drift, self.buffer.fresh
        if self._rehearsed is None:
            self.departures = self.departures.after(learned, seconds, drift, fresh=fresh)
        else:
            self._rehearsed = self._rehearsed.after(learned, seconds, drift, fresh=fresh)

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
        P[:, size:, size:] = np.diag((UNSURE * self.departures.roughness) ** 2)
        self.bank.restart(Beliefs(belief.theta, q[None], v[None], P))


def _matching(problem: Problem, patterns: Sequence[str]) -> np.ndarray:
    """Which coordinates belong to parameters that match a pattern."""
    names = problem.parameters.names
    for pattern in patterns:
        if not any(matches_pattern(name, pattern) for name in names):
            raise unknown_name("free parameter", pattern, names)
    chosen = [any(matches_pattern(name, pattern) for pattern in patterns) for name in names]
    return np.repeat(chosen, [p.size for p in problem.parameters]).astype(bool)
