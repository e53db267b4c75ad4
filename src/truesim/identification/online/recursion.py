"""Recursive identification: filter chunk by chunk, with adaptive noise and change detection."""

import dataclasses
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from threadpoolctl import ThreadpoolController

from truesim.core.errors import TruesimError, unknown_name
from truesim.files.logs import prepare
from truesim.identification.diagnose.covariance import Uncertainty, uncertainty, widen
from truesim.identification.diagnose.diagnosis import Part, find_misfit
from truesim.identification.diagnose.evaluation import errors, predictions
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.status import Diagnostic, Status
from truesim.identification.online.changes import SUDDEN_CHANGE_STD, HypothesisBank
from truesim.identification.online.chunks import ChunkBuffer, Rejected, Sample
from truesim.identification.online.deviations import Deviations
from truesim.identification.online.filter_state import ChunkUpdate, FilterState, SampleChunk, filter_chunk, forget
from truesim.identification.online.update import ParameterChange, Update, tracked_parameters
from truesim.identification.problem.locate import locate
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import recording
from truesim.identification.solve.prior import prior_residuals
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem
from truesim.physics.model.targets import matches_pattern
from truesim.physics.simulation.sensors import from_encoders

WARM_UP_PASSES = 3
"""Number of passes over the first samples that estimate noise and drift."""
SENSED_STATE_FACTOR = 10.0
"""Standard deviation of a state that is initialized from sensors, relative to the roughness of measured states."""
DIVERGED_INNOVATION = 30.0
"""The filter has diverged when its prediction error exceeds this many standard deviations of the noise."""


@dataclasses.dataclass(frozen=True)
class WatchOptions:
    """Initial fit, forgetting and change detection of a watched stream."""

    changes: Sequence[str] = ("*",)
    """Patterns of free parameters that may change suddenly; empty for no change detection."""
    first: float = 2.0
    """Duration of the initial fit, before the filter starts [s]."""
    memory: float = 60.0
    """Time constant of forgetting [s]; infinite for constant parameters."""
    between_alarms: float = 86400.0
    """Minimum mean time between false alarms of a correct model [s]."""

    def __post_init__(self) -> None:
        for name in ("first", "memory", "between_alarms"):
            if not getattr(self, name) > 0:
                raise TruesimError(f"{name} is {getattr(self, name):g} s; it must be positive.")


class Recursion:
    """Recursive filter of a robot whose samples arrive one by one."""

    def __init__(self, problem: Problem, watching: WatchOptions, *, restored: Mapping[str, np.ndarray] | None = None):
        """Fit the log of the problem, or restore the arrays of `state`."""
        self.problem, self._watching = problem, watching
        self.buffer = ChunkBuffer(problem)
        self._threads = ThreadpoolController()
        _, prior = prior_residuals(problem, problem.parameters.start)
        self._prior = prior.T @ prior
        self._may_change = _matching(problem, watching.changes)
        self._warming: Deviations | None = None
        self._shift = np.zeros(len(self._prior))
        self.status: Status | None = None
        """Status of the fit to the first samples; that of a restored state is not known."""
        self.misfit: tuple[Diagnostic, ...] = ()
        """Signs of a model that does not fit the first samples."""
        self._now = problem.recordings[0].time[-1]
        self.bank = HypothesisBank(np.where(self._may_change, SUDDEN_CHANGE_STD**2, 0.0), watching.between_alarms)
        if restored is None:
            self._first = self._fit()
        else:
            self._restore(restored)

    def _fit(self) -> FilterState:
        """Initial filter state from a fit to the first samples."""
        model, size = self.problem.simulator.model, len(self._prior)
        solution = solve_problem(self.problem)
        found = uncertainty(solution)
        self._examine(solution, found)
        self.deviations = Deviations.initial(self.problem, solution.weights.noise)
        P = np.zeros((1, size + 2 * model.nv, size + 2 * model.nv))
        P[0, :size, :size] = found.coordinates
        return FilterState(solution.theta[None], np.zeros((1, model.nq)), np.zeros((1, model.nv)), P)

    def _examine(self, solution: Solution, found: Uncertainty) -> None:
        """Status of the initial fit, and fixed parameters that its residuals tell to be wrong."""
        options = DiagnoseOptions()
        window = min(options.error_window, self._watching.first / 2)
        open_loop = errors(self.problem, list(predictions(self.problem, solution.theta, window)))
        self.status, self.misfit, _, self._shift = find_misfit(solution, found, (), {Part.TRAIN: open_loop}, options)

    def state(self) -> dict[str, np.ndarray]:
        """State of the recursion as arrays."""
        filtered = self.bank.states.element(0)
        deviations = {f"deviations/{k}": np.asarray(v) for k, v in dataclasses.asdict(self.deviations).items()}
        buffer = {f"buffer/{k}": v for k, v in self.buffer.state().items()}
        best = {"best": np.array(self.bank.best), "now": np.array(self._now), "shift": self._shift}
        return {**filtered._asdict(), **deviations, **buffer, **best}

    def _restore(self, state: Mapping[str, np.ndarray]) -> None:
        def part(name: str) -> dict[str, np.ndarray]:
            return {k.removeprefix(name): v for k, v in state.items() if k.startswith(name)}

        deviations = part("deviations/") or part("departures/")  # the name in files of earlier versions
        count = float(deviations.pop("count"))
        self.deviations = Deviations(**deviations, count=count)
        self.buffer.restore(part("buffer/"))
        self._shift = state.get("shift", self._shift)
        self.bank.restart(FilterState(*(state[name] for name in FilterState._fields)))
        self.bank.best, self._now = state["best"].tolist(), float(state["now"])

    def warm_up(self, samples: Sequence[Sample]) -> None:
        """Filter the first samples several times to estimate noise and drift."""
        for _ in range(WARM_UP_PASSES):
            self.buffer, self._warming = ChunkBuffer(self.problem), self.deviations.reset_count()
            self.bank.restart(self._first)
            for sample in samples:
                self.take(sample)
            self.deviations, self._warming = self._warming, None
        self.buffer = ChunkBuffer(self.problem)
        self.bank.restart(self._first)

    def take(self, sample: Sample) -> Update | Rejected | None:
        """Take one sample; returns an update if it completes a chunk, or the reason for its rejection."""
        chunk = self.buffer.add(sample)
        if chunk is None:
            return None
        with self._threads.limit(limits=1):
            return self._filter(chunk)

    def update(self, time: float, change: ParameterChange | None = None) -> Update:
        """Current estimates."""
        now, size = self.bank.states, len(self._prior)
        covariance = widen(now.covariance[0, :size, :size], self._shift)
        return Update(time, self.problem, now.theta[0], covariance, self.bank.statistic, change)

    def _filter(self, chunk: SampleChunk) -> Update | Rejected:
        if self.buffer.fresh:
            self._initialize_state()
        if self._warming is None:
            self.bank.begin(chunk.time - chunk.seconds)
        learned = filter_chunk(self.problem, self.bank.states, chunk, self.deviations.noise)
        known = self.buffer.fresh or learned.innovation < DIVERGED_INNOVATION
        if not (learned.states.finite[0] and known):
            self.buffer.fresh = True
            return Rejected(f"The filter diverged at {chunk.time:.6g} s and starts again from the sensors.")
        self._update_deviations(learned, chunk.seconds)
        self.buffer.fresh, self._now = False, chunk.time
        share = -np.expm1(-chunk.seconds / self._watching.memory)
        self.bank.update(forget(learned.states, share, self._prior, self.deviations.drift), learned.evidence)
        change = self._change(chunk.time) if self.bank.statistic >= 1 else None
        return self.update(chunk.time, change)

    def _update_deviations(self, learned: ChunkUpdate, seconds: float) -> None:
        drift, fresh = self.deviations.drift, self.buffer.fresh
        if self._warming is None:
            self.deviations = self.deviations.update(learned, seconds, drift, fresh=fresh)
        else:
            self._warming = self._warming.update(learned, seconds, drift, fresh=fresh)

    def _change(self, now: float) -> ParameterChange:
        size = len(self._prior)
        winner, before = self.bank.accept()
        past = tracked_parameters(self.problem, before.theta[0], before.covariance[0, :size, :size])
        slices = zip(self.problem.parameters, self.problem.parameters.slices(), strict=True)
        paths = tuple(p.name for p, at in slices if self._may_change[at].any())
        return ParameterChange(winner.time, now, past, paths)

    def _initialize_state(self) -> None:
        """Initialize the state at the start of the chunk from sensors, with unchanged parameters."""
        problem, before = self.problem, self.bank.states.element(0)
        model = problem.model_at(before.theta[0], problem.simulator.model)
        log = locate([prepare(self.buffer.log(), model)], model)[0]
        shown = recording(log, model, problem.channels)
        q, v = shown.q[0], shown.v[0]
        if not shown.has_unmeasured_joints:
            q, v = (np.asarray(x) for x in from_encoders(model, jnp.asarray(q), jnp.asarray(v)))
        P, size = np.zeros_like(before.covariance), len(self._prior)
        P[:, :size, :size] = before.covariance[:, :size, :size]
        P[:, size:, size:] = np.diag((SENSED_STATE_FACTOR * self.deviations.roughness) ** 2)
        self.bank.restart(FilterState(before.theta, q[None], v[None], P))


def _matching(problem: Problem, patterns: Sequence[str]) -> np.ndarray:
    """Mask of the coordinates whose parameters match a pattern."""
    names = problem.parameters.names
    for pattern in patterns:
        if not any(matches_pattern(name, pattern) for name in names):
            raise unknown_name("free parameter", pattern, names)
    chosen = [any(matches_pattern(name, pattern) for pattern in patterns) for name in names]
    return np.repeat(chosen, [p.size for p in problem.parameters]).astype(bool)
