"""The fit: from a problem to estimates, in stages that begin with what cannot go astray.

1. Every stretch is simulated from its own first state: even a poor model cannot go far in so short a time.
2. Stretches are joined to windows, at first loosely, then ever more tightly, while noise levels are estimated anew.
3. Whole logs are windows if the model explains them as well as it does short stretches; otherwise windows are short,
   and the estimate of the stretches alone is kept if it predicts these windows as well.

Networks are silent meanwhile: they are trained from there, together with everything else.
"""

import dataclasses
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Bool, Float
from truesim.identify.adam import minimise
from truesim.identify.layout import Windows
from truesim.identify.levenberg_marquardt import FLAT, Outcome, Progress, Search, solve
from truesim.identify.noise import first_allowance, first_noise, residual_noise
from truesim.identify.normal import Point, Weights, cost, point, remembering
from truesim.identify.problem import MANY, Problem
from truesim.identify.search.hopping import Found
from truesim.identify.weights import network_coordinates

Judge = Callable[[np.ndarray], float]
"""How good coordinates are: smaller is better."""
OPTIMISERS = ("auto", "lm", "adam")
WINDOW = 0.5
"""Length of windows where the model cannot follow whole logs [s]."""
TIGHT = (1.0, 3e-2, 1e-3)
"""Jumps between joined stretches that are allowed, in units of the states' roughness or misfit: stage by stage."""
MISFIT = 1.25
"""Whole logs are too much for a model if this factor comes upon the residuals of short stretches."""
FAR = 1.0
"""A stage that others follow ends when the cost would fall by less than this."""
AS_GOOD = 1.06
"""Two estimates predict equally well if their residuals differ by less than this factor."""
TRAINED = 3e-4
"""With networks a search ends when the cost falls by less than this fraction an iteration: they have flat valleys."""
FLOOR = 0.3
"""Residuals are not taken to be smaller than this fraction of the sensors' own noise."""
HUBER = 8.0
"""Residuals beyond this many standard deviations count linearly."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a problem is solved."""

    window: float | None = None
    """Length of windows [s]; found from the data if not given."""
    horizons: tuple[float, ...] = ()
    """Lengths of windows [s], one stage after the other, instead: ever longer ones are a curriculum for networks."""
    patience: int = 8
    """With logs to validate on, a stage ends once so many iterations have not helped there."""
    threshold: float = HUBER
    """Huber's threshold, in standard deviations; infinite for plain least squares."""
    optimiser: str = "auto"
    """`lm` (Levenberg-Marquardt) or `adam`; `auto` is `adam` for networks with many weights."""
    iterations: int = 60
    """Iterations of each stage, at most."""
    gain: float = 1e-5
    """Converged when the cost, half a chi-square, would fall by less than this."""

    def __post_init__(self) -> None:
        if self.optimiser not in OPTIMISERS:
            raise unknown_name("optimizer", self.optimiser, OPTIMISERS)
        if self.window is not None and self.window <= 0:
            raise TruesimError(f"The window is {self.window:g} s; it must be positive.")
        if any(h <= 0 for h in self.horizons):
            raise TruesimError(f"The horizons are {list(self.horizons)} s; they must be positive.")


@dataclasses.dataclass(frozen=True)
class Solution:
    """A solved problem."""

    problem: Problem
    at: Point
    weights: Weights
    windows: Windows
    start: Point
    sensor_noise: Float[np.ndarray, "rows"]
    """Noise that the sensors have by themselves."""
    converged: bool
    interrupted: bool
    """Whether the user stopped it; then this is the best so far."""
    history: tuple[Progress, ...]
    compile_seconds: float
    solve_seconds: float
    """CPU time without compilation [s]."""
    found: Found | None = None
    """What a search came to that gave the start."""

    @property
    def window_seconds(self) -> float:
        """Typical length of a window [s]."""
        longest = np.bincount(self.windows.window, self.problem.layout.intervals.duration.sum(axis=1))
        return float(np.median(longest))

    @property
    def theta(self) -> Float[np.ndarray, "size"]:
        """Coordinates of the estimates."""
        return self.at.theta


def solve_problem(
    problem: Problem,
    settings: Settings | None = None,
    watch: Callable[[Progress], None] | None = None,
    theta: Float[np.ndarray, "size"] | None = None,
    judge: Judge | None = None,
) -> Solution:
    """Solves a problem.

    Args:
        problem: The problem.
        settings: How; sensible for most logs by default.
        watch: Called after every iteration.
        theta: Coordinates to start from, instead of the model's values.
        judge: How good coordinates are on logs that take no part in the fit; the best of all iterations count.
    """
    settings = settings or Settings()
    if problem.trained.size and settings.optimiser == "lm":
        raise TruesimError(
            f"Levenberg-Marquardt takes the derivative by each unknown, which {problem.trained.size} weights are too "
            f"many for (more than {MANY}): use adam, or a smaller network."
        )
    compile_seconds = problem.compile_seconds
    begin = time.process_time()
    run = _Run(problem, settings, watch, judge)
    with threadpool_limits(1):
        start = point(problem, problem.parameters.start if theta is None else theta, problem.first_nodes())
        run.solve(start)
    return Solution(
        problem=problem,
        at=run.at,
        weights=run.weights,
        windows=run.windows,
        start=start,
        sensor_noise=run.floor,
        converged=run.converged,
        interrupted=run.interrupted,
        history=tuple(run.history),
        compile_seconds=compile_seconds,
        solve_seconds=time.process_time() - begin,
    )


class _Run:
    """The stages of one solve, and where they have come to."""

    def __init__(
        self, problem: Problem, settings: Settings, watch: Callable[[Progress], None] | None, judge: Judge | None
    ):
        self.problem, self.settings, self.watch, self.judge = problem, settings, watch, judge
        self.best: tuple[float, tuple] | None = None
        self.waited, self.last = 0, np.zeros(0)
        self.history: list[Progress] = []
        self.floor = first_noise(problem)
        self.roughness = first_allowance(problem)
        self.weights = Weights(self.floor, self.roughness, settings.threshold)
        self.windows = problem.layout.windows(1)
        self.networks = network_coordinates(problem.parameters)
        self.many = problem.trained.size > 0
        self.adam = settings.optimiser == "adam" or self.many
        self.converged = self.interrupted = self.held = False
        self.at: Point

    def solve(self, start: Point) -> None:
        """All stages."""
        self.at = start
        try:
            self._stages()
        except KeyboardInterrupt:
            self.interrupted = True
        if self.best is not None:
            self._restore((*self.best[1][:3], self.converged))

    def _stages(self) -> None:
        if self.settings.horizons:
            self._curriculum()
        elif not self.networks.any():
            self._explain()
        else:
            if not self.networks.all():
                self._explain(held=self.networks)  # physics explains what it can
            self._train()

    def _explain(self, held: Bool[np.ndarray, "size"] | None = None) -> None:
        """From single stretches to the longest windows that the model explains."""
        self._stretch_by_stretch(held)
        stretches = self._saved()
        if self.settings.window is None and self._whole(held):
            return
        self._join(self._windows(), held)
        if self.settings.window is None:
            self._prefer(stretches)

    def _train(self) -> None:
        """The same for everything together, but never on single stretches alone: networks learn their noise."""
        self._stretch_by_stretch()
        if self.settings.window is not None or not self._whole():
            self._join(self._windows())

    def _stretch_by_stretch(self, held: Bool[np.ndarray, "size"] | None = None) -> None:
        """Every stretch from a first state of its own."""
        alone = self.problem.layout.windows(1)
        self.converged = self._stage(alone, gain=FAR, damping=1e-3, held=held).converged
        self._settle(alone, held=held)

    def _whole(self, held: Bool[np.ndarray, "size"] | None = None) -> bool:
        """Takes whole logs as windows if they are explained as well as those so far; otherwise all stays as it was."""
        before, noise = self._saved(), self._noise()
        whole = self.problem.layout.windows(self.problem.layout.size)
        self._stage(whole, gain=FAR, held=held)
        if np.median(self._noise() / noise) < MISFIT:
            self._join(whole, held)
        if np.median(self._noise() / noise) < MISFIT:
            return True
        self._restore(before)
        return False

    def _windows(self) -> Windows:
        """Windows where the model cannot follow whole logs."""
        return self.problem.layout.windows(self._stretches(self.settings.window or WINDOW))

    def _stretches(self, seconds: float) -> int:
        """Number of stretches of a window."""
        return max(1, round(seconds / self.problem.layout.seconds))

    def _curriculum(self) -> None:
        """Physics alone on short stretches, then everything on ever longer windows."""
        layout = self.problem.layout
        if self.networks.any() and not self.networks.all():
            self._stage(layout.windows(1), gain=FAR, damping=1e-3, held=self.networks)
        self._stage(layout.windows(1), gain=FAR, damping=1e-3)
        for seconds in self.settings.horizons:
            self._join(layout.windows(self._stretches(seconds)))

    def _join(self, windows: Windows, held: np.ndarray | None = None) -> None:
        """Windows whose stretches are joined ever more tightly."""
        for tight in TIGHT:
            self.converged = self._stage(windows, tight, gain=FAR, held=held).converged
        self._settle(windows, TIGHT[-1], held)

    def _settle(self, windows: Windows, tight: float = 1.0, held: np.ndarray | None = None) -> None:
        """The last stage again, to the end, with noise levels as it left them; many weights have no other end."""
        if not self.many or held is not None:
            self.converged = self._stage(windows, tight, gain=self.settings.gain, held=held).converged

    def _prefer(self, stretches: tuple) -> None:
        """Takes the estimate from single stretches if it predicts windows as well: its residuals are whiter."""
        windowed, misfit = self._saved(), float(np.mean(np.log(self._noise())))
        theta = stretches[0].theta
        self.at = point(self.problem, theta, stretches[0].nodes)
        self._join(self.windows, held=np.ones(len(theta), bool))
        as_good = float(np.mean(np.log(self._noise()))) < misfit + np.log(AS_GOOD)
        self._restore(stretches if as_good else windowed)

    def _saved(self) -> tuple:
        return self.at, self.weights, self.windows, self.converged

    def _restore(self, saved: tuple) -> None:
        self.at, self.weights, self.windows, self.converged = saved

    def _stage(
        self,
        windows: Windows,
        tight: float = 1.0,
        *,
        gain: float,
        damping: float = 1e-7,
        held: Bool[np.ndarray, "size"] | None = None,
    ) -> Outcome:
        """One solve, with noise levels as the residuals show them where it begins."""
        noise = self._noise()
        misfit = max(1.0, float(np.median(noise / self.floor)))
        self.weights = Weights(noise, tight * misfit * self.roughness, self.settings.threshold)
        self.windows, self.held = windows, held is not None
        training = self.networks.any() and held is None
        search = Search(self.settings.iterations, gain, damping, held, TRAINED if training else FLAT)
        method = minimise if self.adam and held is None else solve
        if self.problem.shooting.remembered:
            self.at = remembering(self.problem, self.at)
        try:
            outcome = method(self.problem, self.at, self.weights, windows, search, self._seen)
        except _EnoughError:
            outcome = self._judged_best()
        self.at = outcome.at
        return outcome

    def _judged_best(self) -> Outcome:
        """The end of a stage that no longer helps on other logs: what did best there."""
        assert self.best is not None, "something was judged"
        self.waited = 0
        at = self.best[1][0]
        return Outcome(at, cost(self.problem, at, self.weights, self.windows), True, len(self.history))

    def _noise(self) -> Float[np.ndarray, "rows"]:
        noise, _ = residual_noise(self.problem, self.at, self.weights, self.windows)
        return np.maximum(noise, FLOOR * self.floor)

    def _seen(self, progress: Progress, best: Point) -> None:
        self.at = best
        self._judged()
        self.history.append(dataclasses.replace(progress, iteration=len(self.history) + 1))
        if self.watch is not None:
            self.watch(self.history[-1])
        if self.waited > self.settings.patience:
            raise _EnoughError

    def _judged(self) -> None:
        """Remembers the coordinates that do best on other logs, and for how long none did better.

        Only training can go on for too long, and only in windows: neither physics alone nor single stretches.
        """
        if self.judge is None or self.held or np.array_equal(self.at.theta, self.last):
            return
        self.last, score = self.at.theta, self.judge(self.at.theta)
        if self.best is None or score < self.best[0]:
            self.best, self.waited = (score, self._saved()), 0
        else:
            self.waited += bool(self.windows.joined.any())


class _EnoughError(Exception):
    """A stage has stopped to help."""
