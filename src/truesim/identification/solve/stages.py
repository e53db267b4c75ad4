"""The stages that solve an estimation problem.

1. Every segment is simulated from its own initial state: even a poor model stays close to the log over a short time.
2. Segments are joined to windows by a penalty on defects that tightens from stage to stage, with updated noise.
3. Windows are whole logs if the model fits these as well as short segments. Otherwise they are short, and the
   estimate from single segments is kept if it predicts the windows as well.

Networks stay at their start during these stages. They are trained afterwards, together with all parameters.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from truesim.core.errors import TruesimError
from truesim.core.typing import Bool, Float
from truesim.identification.problem.network_weights import network_coordinates
from truesim.identification.problem.problem import MANY_WEIGHTS, Problem
from truesim.identification.problem.segments import Windows
from truesim.identification.solve.adam import minimize
from truesim.identification.solve.levenberg_marquardt import (
    RELATIVE_DECREASE,
    Ending,
    Outcome,
    Progress,
    StageOptions,
    solve,
)
from truesim.identification.solve.noise import initial_defect_std, initial_noise, residual_noise
from truesim.identification.solve.normal_equations import Point, ResidualWeights, cost, point, propagate_memory
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution

SolveCallback = Callable[[Progress], None]
"""Called after every iteration."""
ValidationLoss = Callable[[np.ndarray], float]
"""Loss on validation logs at given coordinates: smaller is better."""
STAGE_GAIN = 1.0
"""A stage that others follow ends when the cost is predicted to fall by less than this. Larger is faster."""
TRAINING_DECREASE = 3e-4
"""Training ends when the cost falls by less than this fraction per iteration. Larger ends earlier."""


class _StageResult(NamedTuple):
    """A point with the cost that it minimizes."""

    at: Point
    weights: ResidualWeights
    windows: Windows
    ending: Ending


def solve_problem(
    problem: Problem,
    options: SolveOptions | None = None,
    callback: SolveCallback | None = None,
    theta: Float[np.ndarray, " size"] | None = None,
    validation_loss: ValidationLoss | None = None,
) -> Solution:
    """Solve an estimation problem.

    Args:
        problem: The problem.
        options: Windows, loss, optimizer and thresholds; the defaults suit most logs.
        callback: Called after every iteration.
        theta: Coordinates to start from, instead of the model's values.
        validation_loss: Loss on validation logs; the iteration with the lowest loss is returned.
    """
    options = options or SolveOptions()
    if problem.trained.size and options.optimizer == "lm":
        raise TruesimError(
            f"Levenberg-Marquardt supports at most {MANY_WEIGHTS} network weights; there are {problem.trained.size}: "
            "use adam, or a smaller network."
        )
    compile_seconds = problem.compile()
    begin = time.process_time()
    run = _StagedSolve(problem, options, callback, validation_loss)
    with threadpool_limits(1):
        start = point(problem, problem.parameters.start if theta is None else theta, problem.initial_nodes())
        run.solve(start)
    return Solution.at_point(
        problem,
        run.at,
        weights=run.weights,
        windows=run.windows,
        sensor_noise=run.sensor_noise,
        ending=run.ending,
        history=tuple(run.history),
        compile_seconds=compile_seconds,
        solve_seconds=time.process_time() - begin,
    )


class _StagedSolve:
    """The stages of one solve, and their progress."""

    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        callback: SolveCallback | None,
        validation_loss: ValidationLoss | None,
    ):
        self.problem, self.options, self.callback, self.validation_loss = problem, options, callback, validation_loss
        self.best: tuple[float, _StageResult] | None = None
        self.waited, self.last = 0, np.zeros(0)
        self.history: list[Progress] = []
        self.sensor_noise = initial_noise(problem)
        self.roughness = initial_defect_std(problem)
        self.weights = ResidualWeights(self.sensor_noise, self.roughness, options.robust)
        self.windows = problem.layout.windows(1)
        self.networks = network_coordinates(problem.parameters)
        self.has_many_weights = problem.trained.size > 0
        self.adam = options.optimizer == "adam" or self.has_many_weights
        self.ending, self.held = Ending.ITERATION_LIMIT, False
        self.at: Point

    def solve(self, start: Point) -> None:
        """Run all stages; after an interrupt, the result is the best so far."""
        self.at = start
        interrupted = False
        try:
            self._stages()
        except KeyboardInterrupt:
            interrupted = True
        if self.best is not None:
            self._restore(self.best[1]._replace(ending=self.ending))
        if interrupted:
            self.ending = Ending.INTERRUPTED

    def _stages(self) -> None:
        if self.options.horizons:
            self._curriculum()
        elif not self.networks.any():
            self._fit_physics()
        else:
            if not self.networks.all():
                self._fit_physics(held=self.networks)  # parameters first, with networks at their start
            self._train()

    def _fit_physics(self, held: Bool[np.ndarray, " size"] | None = None) -> None:
        """Fit single segments, then the longest windows that the model fits."""
        self._fit_segments(held)
        segments = self._save()
        if self.options.window is None and self._fit_whole_logs(held):
            return
        self._join(self._windows(), held)
        if self.options.window is None:
            self._choose(segments)

    def _train(self) -> None:
        """Fit all parameters on windows: on single segments alone, networks would overfit the noise."""
        self._fit_segments()
        if self.options.window is not None or not self._fit_whole_logs():
            self._join(self._windows())

    def _fit_segments(self, held: Bool[np.ndarray, " size"] | None = None) -> None:
        """Fit every segment independently, from its own initial state."""
        alone = self.problem.layout.windows(1)
        self.ending = self._stage(alone, gain=STAGE_GAIN, damping=1e-3, held=held).ending
        self._finish(alone, held=held)

    def _fit_whole_logs(self, held: Bool[np.ndarray, " size"] | None = None) -> bool:
        """Use whole logs as windows if their residuals are as small as those of shorter windows; else undo."""
        before, noise = self._save(), self._noise()
        whole = self.problem.layout.windows(self.problem.layout.size)
        self._stage(whole, gain=STAGE_GAIN, held=held)
        if self._fits(noise):
            self._join(whole, held)
        if self._fits(noise):
            return True
        self._restore(before)
        return False

    def _fits(self, noise: Float[np.ndarray, " rows"]) -> bool:
        return bool(np.median(self._noise() / noise) < self.options.misfit_factor)

    def _windows(self) -> Windows:
        """Windows for models that cannot fit whole logs."""
        return self.problem.layout.windows(self._segments_of(self.options.window or self.options.fallback_window))

    def _segments_of(self, seconds: float) -> int:
        """Number of segments of a window."""
        return max(1, round(seconds / self.problem.layout.seconds))

    def _curriculum(self) -> None:
        """Fit physical parameters on single segments, then all parameters on windows of the given lengths."""
        layout = self.problem.layout
        if self.networks.any() and not self.networks.all():
            self._stage(layout.windows(1), gain=STAGE_GAIN, damping=1e-3, held=self.networks)
        self._stage(layout.windows(1), gain=STAGE_GAIN, damping=1e-3)
        for seconds in self.options.horizons:
            self._join(layout.windows(self._segments_of(seconds)))

    def _join(self, windows: Windows, held: Bool[np.ndarray, " size"] | None = None) -> None:
        """Join the segments of each window, with a defect penalty that tightens from stage to stage."""
        for continuity in self.options.continuity:
            self.ending = self._stage(windows, continuity, gain=STAGE_GAIN, held=held).ending
        self._finish(windows, self.options.continuity[-1], held)

    def _finish(self, windows: Windows, continuity: float = 1.0, held: Bool[np.ndarray, " size"] | None = None) -> None:
        """Repeat the last stage to convergence with its final noise; not for networks with many weights."""
        if not self.has_many_weights or held is not None:
            self.ending = self._stage(windows, continuity, gain=self.options.gain, held=held).ending

    def _choose(self, segments: _StageResult) -> None:
        """Use the estimate from single segments if it predicts windows as well: its residuals are whiter."""
        windowed, misfit = self._save(), float(np.mean(np.log(self._noise())))
        theta = segments.at.theta
        self.at = point(self.problem, theta, segments.at.nodes)
        self._join(self.windows, held=np.ones(len(theta), bool))
        equal = float(np.mean(np.log(self._noise()))) < misfit + np.log(self.options.segment_factor)
        self._restore(segments if equal else windowed)

    def _save(self) -> _StageResult:
        return _StageResult(self.at, self.weights, self.windows, self.ending)

    def _restore(self, saved: _StageResult) -> None:
        self.at, self.weights, self.windows, self.ending = saved

    def _stage(
        self,
        windows: Windows,
        continuity: float = 1.0,
        *,
        gain: float,
        damping: float = 1e-7,
        held: Bool[np.ndarray, " size"] | None = None,
    ) -> Outcome:
        """Run one solve, with the noise of the residuals at its start."""
        noise = self._noise()
        misfit = max(1.0, float(np.median(noise / self.sensor_noise)))
        self.weights = ResidualWeights(noise, continuity * misfit * self.roughness, self.options.robust)
        self.windows, self.held = windows, held is not None
        training = self.networks.any() and held is None
        decrease = TRAINING_DECREASE if training else RELATIVE_DECREASE
        stage = StageOptions(self.options.iterations, gain, damping, held, decrease, self.options.seed)
        method = minimize if self.adam and held is None else solve
        if self.problem.shooting.memory_size:
            self.at = propagate_memory(self.problem, self.at)
        try:
            outcome = method(self.problem, self.at, self.weights, windows, stage, self._iterated)
        except _StopEarlyError:
            outcome = self._best_validated()
        self.at = outcome.at
        return outcome

    def _best_validated(self) -> Outcome:
        """Outcome of a stage that early stopping ended: the point of the lowest validation loss."""
        assert self.best is not None, "the validation loss was evaluated"
        self.waited = 0
        at = self.best[1].at
        return Outcome(at, cost(self.problem, at, self.weights, self.windows), Ending.CONVERGED, len(self.history))

    def _noise(self) -> Float[np.ndarray, " rows"]:
        noise, _ = residual_noise(self.problem, self.at, self.weights, self.windows)
        return np.maximum(noise, self.options.noise_floor * self.sensor_noise)

    def _iterated(self, progress: Progress, best: Point) -> None:
        self.at = best
        self._validate()
        self.history.append(dataclasses.replace(progress, iteration=len(self.history) + 1))
        if self.callback is not None:
            self.callback(self.history[-1])
        if self.waited > self.options.patience:
            raise _StopEarlyError

    def _validate(self) -> None:
        """Keep the coordinates of the lowest validation loss, and count iterations without an improvement.

        Only training can overfit, and only in windows: neither physics alone nor single segments are stopped early.
        """
        if self.validation_loss is None or self.held or np.array_equal(self.at.theta, self.last):
            return
        self.last, loss = self.at.theta, self.validation_loss(self.at.theta)
        if self.best is None or loss < self.best[0]:
            self.best, self.waited = (loss, self._save()), 0
        else:
            self.waited += bool(self.windows.joined.any())


class _StopEarlyError(Exception):
    """Raised when early stopping ends a stage."""
