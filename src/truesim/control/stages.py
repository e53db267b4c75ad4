"""Stages of an optimization: multipliers of limits are updated, and the smoothing of contact is tightened."""

import dataclasses
import time

import numpy as np

from truesim.control.options import PlanStatus
from truesim.control.solver import ProblemBatch
from truesim.control.task import Task
from truesim.control.transcription import limit_bounds
from truesim.core.typing import Float
from truesim.optimize.augmented_lagrangian import range_multipliers

FIRST_STAGE_TOLERANCE = 1e-4
"""Tolerance of the first stage; it falls tenfold from stage to stage. A smaller value spends more in early stages."""
SUFFICIENT_REDUCTION = 0.25
"""Part of a violation that may remain after a stage; otherwise the stiffness grows."""
STIFFNESS_FACTOR, HIGHEST_STIFFNESS = 5.0, 1e9
"""Factor by which the stiffness grows, and its end."""


@dataclasses.dataclass
class BestMotions:
    """Best motion of each problem so far: the cheapest within the limits, or else the one that violates them least."""

    z: Float[np.ndarray, "b knots nz"]
    u: Float[np.ndarray, "b steps nu"]
    p: Float[np.ndarray, "b np"]
    cost: Float[np.ndarray, " b"]
    violation: Float[np.ndarray, " b"]


class LimitStages:
    """Limits of a batch: their values, violations and multipliers."""

    def __init__(self, batch: ProblemBatch, task: Task):
        self.batch = batch
        self.bounds = {final: limit_bounds(task, final) for final in (False, True)}
        self.best: BestMotions | None = None

    def evaluate(self) -> tuple[dict[bool, np.ndarray], dict[bool, np.ndarray]]:
        """Costs of the terms, and limited quantities, at running knots and at the last one of every problem."""
        b, f = self.batch, self.batch.kernels.functions
        p, theta = (np.repeat(x[:, None], f.steps, axis=1) for x in (b.p, b.theta))
        running = b.kernels.values(False, b.z[:, :-1], b.u, p, theta, b.rows[:, :-1])
        final = b.kernels.values(True, b.z[:, -1], b.u[:, -1], b.p, b.theta, b.rows[:, -1])
        costs = {False: np.asarray(running.costs), True: np.asarray(final.costs)[:, None]}
        return costs, {False: np.asarray(running.limited), True: np.asarray(final.limited)[:, None]}

    def violations(self, limited: dict[bool, np.ndarray]) -> dict[bool, Float[np.ndarray, "b limits"]]:
        """Largest violation of each limited quantity."""
        found = {}
        for final, (low, high) in self.bounds.items():
            found[final] = np.maximum(limited[final] - high, low - limited[final]).max(axis=1, initial=0.0)
        return found

    def worst(self, limited: dict[bool, np.ndarray]) -> Float[np.ndarray, " b"]:
        """Largest violation of every problem."""
        return np.concatenate(list(self.violations(limited).values()), axis=1).max(axis=1, initial=0.0)

    def remember(self) -> Float[np.ndarray, " b"]:
        """Keep the motions that are better than the best so far; returns the present violations."""
        b, allowed = self.batch, self.batch.options.violation
        costs, limited = self.evaluate()
        cost, violation = sum(x.sum((1, 2)) for x in costs.values()), self.worst(limited)
        assert isinstance(cost, np.ndarray)
        if b.shared:
            cost, violation = np.full(b.count, cost.sum()), np.full(b.count, violation.max())
        now = BestMotions(b.z.copy(), b.u.copy(), b.p.copy(), cost, violation)
        if self.best is None:
            self.best = now
            return violation
        fits, fitted = violation <= allowed, self.best.violation <= allowed
        better = np.where(
            fits & fitted, cost <= self.best.cost, np.where(fits | fitted, fits, violation <= self.best.violation)
        )
        for field in dataclasses.fields(now):
            getattr(self.best, field.name)[better] = getattr(now, field.name)[better]
        return violation

    def update(self, reduced: np.ndarray) -> None:
        """Update multipliers; the stiffness grows where violations have not been reduced enough."""
        b = self.batch
        _, limited = self.evaluate()
        for final, (low, high) in self.bounds.items():
            rows = b.rows[:, -1:] if final else b.rows[:, :-1]
            size = len(low)
            own = rows[..., rows.shape[2] - 1 - size : -1]
            own[:] = range_multipliers(limited[final], own, rows[..., -1:], low, high)
        grown = np.where(reduced, 1.0, STIFFNESS_FACTOR)[:, None]
        b.rows[..., -1] = np.minimum(b.rows[..., -1] * grown, HIGHEST_STIFFNESS)


def solve_stages(batch: ProblemBatch, stages: LimitStages, deadline: float | None) -> None:
    """Solve a batch; with limits or a schedule of smoothing, in stages. The batch ends at the best motions."""
    options, schedule = batch.options, batch.options.smoothing
    limited = bool(batch.kernels.multipliers)
    before = np.full(batch.count, np.inf)
    unfinished = np.ones(batch.count, bool)
    for stage in range(max(options.stages if limited else 1, len(schedule))):
        last = stage >= len(schedule) - 1
        batch.iteration_limit = options.iterations if last else options.iterations * (stage + 1) // len(schedule)
        batch.smoothing = schedule[min(stage, len(schedule) - 1)] if schedule else None
        batch.tolerance = (
            max(options.tolerance, FIRST_STAGE_TOLERANCE * 0.1**stage) if limited or not last else options.tolerance
        )
        if stage or schedule:
            batch.restart(unfinished)
        batch.solve(deadline)
        violation = stages.remember()
        precise = batch.tolerance <= options.tolerance or not limited
        unfinished &= ~((violation <= options.violation) & precise & last)
        unfinished &= batch.iterations < options.iterations
        if not unfinished.any() or (deadline is not None and time.perf_counter() > deadline):
            break
        if limited:
            stages.update(violation <= np.maximum(SUFFICIENT_REDUCTION * before, options.violation))
        before = violation
    best = stages.best
    assert best is not None, "there is at least one stage"
    batch.z, batch.u, batch.p = best.z, best.u, best.p
    batch.status[best.violation > options.violation] = PlanStatus.LIMITS_VIOLATED
