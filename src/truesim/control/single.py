"""Iterations of a problem that is solved alone: calls prepared on its arrays, and numbers in place of arrays.

They are those of `ProblemBatch`, whose handling of arrays takes longer than the passes of small robots do.
"""

from typing import TYPE_CHECKING

import numpy as np

from truesim.control.line_search import (
    BATCH_WIDTH,
    DEFECT_TOLERANCE,
    HIGHEST_STATE_DAMPING,
    LOWEST_STATE_DAMPING,
    STEP_LENGTHS_TRIED,
    accepted_step,
    damping_factor,
    needed_penalty,
)
from truesim.control.options import PlanStatus
from truesim.control.passes import Motion, Policy

if TYPE_CHECKING:
    from truesim.control.solver import ProblemBatch

REAL_TIME_LENGTHS = np.array([1.0, 0.5, 0.25, 0.0])
"""Step lengths of a real-time iteration, of which the best is taken."""
SEARCH_LENGTHS = 0.5 ** np.arange(-(-STEP_LENGTHS_TRIED // BATCH_WIDTH) * BATCH_WIDTH).reshape(-1, BATCH_WIDTH)
"""Step lengths of the line search, in the groups that one call tries."""


class SingleProblem:
    """The only problem of a batch, without designed numbers; it works on the arrays of the batch."""

    def __init__(self, batch: "ProblemBatch"):
        """Prepare the calls for the present arrays and smoothing of the batch."""
        self.batch, kernels = batch, batch.kernels
        f = kernels.functions
        self._arrays = _arrays_of(batch)  # kept, so that no other array takes their identity
        self._identity = tuple(map(id, self._arrays))
        z, u, p, rows = batch.z[0], batch.u[0], batch.p[0], batch.rows[0]
        exact, smoothed = batch.theta[0], batch.numbers(batch.smoothing)[0]
        tries = BATCH_WIDTH
        self._z, self._u, self._lengths = z, u, np.zeros(tries)
        self._gaps, self._feedback = batch.gaps[0], np.zeros((f.steps, f.nu, f.nx + 1))
        self.policy = Policy(self._feedback, np.zeros((f.steps, f.nu)), np.zeros(2), np.zeros((0, 2)))
        states, commands = np.zeros((tries, *z.shape)), np.zeros((tries, *u.shape))
        self._found = Motion(states, commands, np.zeros((tries, 0)), np.zeros(tries))
        knots = z[:-1], u, z[1:], p
        limits = tuple(np.tile(bound, (f.steps, 1)) for bound in (batch.low, batch.high))
        scratch = batch.expansion[0], np.zeros_like(self._gaps)
        self._expand = kernels.prepare("expand", (*knots, exact, rows[:-1]), (batch.expansion[0], self._gaps))
        self._expand_smoothed = kernels.prepare("expand", (*knots, smoothed, rows[:-1]), scratch)
        end = z, p, smoothed, rows[-1]
        damping = batch.damping.reshape(())
        expansions = batch.expansion[0], self._gaps
        self._backward = kernels.prepare("backward", (expansions, end, u, limits, damping), self.policy)
        motion, steps = (z, u, p), (self._feedback, self._gaps, np.zeros_like(p))
        bounds = np.array(batch.low), np.array(batch.high)
        self._forward = kernels.prepare("forward", (motion, steps, self._lengths, bounds, (exact, rows)), self._found)

    def fits(self) -> bool:
        """True while the batch has the arrays and the smoothing for which the calls were prepared."""
        return tuple(map(id, _arrays_of(self.batch))) == self._identity

    def iterate(self) -> None:
        """One iteration, as `ProblemBatch.iterate`."""
        batch = self.batch
        self._backward()
        first, change = self.policy.prediction.tolist()
        cost, defect, curvature = batch.cost.item(), batch.defect.item(), 2 * (change - first)
        if defect > DEFECT_TOLERANCE:
            batch.penalty[0] = max(batch.penalty.item(), needed_penalty(first, curvature, defect))
        elif -change <= batch.tolerance * (1 + abs(cost)):
            batch.status[0], batch.active[0] = PlanStatus.CONVERGED, False
            return
        length = self._search((first, curvature), cost, batch.penalty.item() * defect)
        damping = max(batch.damping.item() * damping_factor(length), LOWEST_STATE_DAMPING)
        batch.damping[0] = damping
        batch.iterations[0] += 1
        if damping > HIGHEST_STATE_DAMPING:
            batch.status[0], batch.active[0] = PlanStatus.STALLED, False
        if length:
            self._expand_moved(length)

    def improve(self) -> None:
        """One real-time iteration: the best of a few step lengths, zero included; `policy` is that of the old motion.

        Unlike `iterate`, it evaluates the present motion in the same call as the new ones, and leaves expansions of
        the new motion to the next call.
        """
        batch, lengths = self.batch, REAL_TIME_LENGTHS
        self._expand()
        defect = self._defect()
        self._backward()
        first, change = self.policy.prediction.tolist()
        if defect > DEFECT_TOLERANCE:
            batch.penalty[0] = max(0.5 * batch.penalty.item(), needed_penalty(first, 2 * (change - first), defect))
        self._lengths[:] = lengths
        self._forward()
        merit = self._found.cost + batch.penalty.item() * defect * (1 - lengths)
        k = int(np.argmin(np.where(np.isfinite(merit), merit, np.inf)))
        self._take(k)
        damping = batch.damping.item() * damping_factor(lengths[k])
        batch.defect[0] = defect
        batch.damping[0] = min(max(damping, LOWEST_STATE_DAMPING), HIGHEST_STATE_DAMPING)

    def _search(self, prediction: tuple[float, float], cost: float, weight: float) -> float:
        """Line search: length of the first step that decreases the penalty function enough; moves the problem."""
        tried = 0
        for lengths in SEARCH_LENGTHS:
            self._lengths[:] = lengths
            self._forward()
            count = min(BATCH_WIDTH, STEP_LENGTHS_TRIED - tried)
            best = accepted_step(lengths[:count].tolist(), self._found.cost[:count].tolist(), cost, weight, prediction)
            if best is not None:
                self._take(best)
                return float(lengths[best])
            tried += count
        return 0.0

    def _take(self, k: int) -> None:
        """Move to one of the motions that were tried."""
        self._z[:], self._u[:] = self._found.z[k], self._found.u[k]
        self.batch.cost[0] = self._found.cost[k]

    def _expand_moved(self, length: float) -> None:
        """Expansions and defects after a step."""
        batch = self.batch
        if batch.smoothing is not None:
            self._gaps *= 1 - length
            batch.defect[0] *= 1 - length
            self._expand_smoothed()
            return
        self._expand()
        batch.defect[0] = self._defect()

    def _defect(self) -> float:
        """Sum of the defects."""
        return float(np.abs(self._gaps).sum())


def _arrays_of(batch: "ProblemBatch") -> tuple[object, ...]:
    """The arrays of a batch and its smoothing, on which calls are prepared."""
    return (
        batch.z,
        batch.u,
        batch.p,
        batch.theta,
        batch.rows,
        batch.expansion,
        batch.gaps,
        batch.damping,
        batch.smoothing,
    )
