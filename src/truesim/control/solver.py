"""Batches of trajectory optimizations: feasibility-driven differential dynamic programming on native kernels.

Every iteration is three kernels: expansions (a batch over problems and knots), the backward pass (over problems) and
the forward pass (over problems and step lengths). A step is accepted by the exact penalty `cost + weight * |gaps|_1`,
whose second part falls by exactly the step length (Nocedal and Wright, section 18.3).
"""

import time
from typing import Any

import jax
import numpy as np

from truesim.control.compiled import TaskKernels
from truesim.control.line_search import (
    ACCEPTED_DECREASE,
    BATCH_WIDTH,
    DAMPING_FACTOR,
    DEFECT_TOLERANCE,
    HIGHEST_STATE_DAMPING,
    LONG_STEP,
    LOWEST_STATE_DAMPING,
    PENALTY_MARGIN,
    SHORT_STEP,
    STEP_LENGTHS_TRIED,
)
from truesim.control.options import PlanOptions, PlanStatus
from truesim.control.passes import Motion, Policy
from truesim.control.single import SingleProblem
from truesim.control.transcription import SMOOTHING
from truesim.core.typing import Bool, Float, Int
from truesim.optimize.box import minimize_in_box


class ProblemBatch:
    """Problems of the same structure while they are solved. Arrays have the axis of problems in front."""

    def __init__(
        self,
        kernels: TaskKernels,
        motion: tuple[Float[np.ndarray, "b knots nz"], Float[np.ndarray, "b steps nu"], Float[np.ndarray, "b np"]],
        numbers: tuple[Float[np.ndarray, "b size"], Float[np.ndarray, "b knots row"]],
        bounds: tuple[Float[np.ndarray, " nu"], Float[np.ndarray, " nu"]],
        design_bounds: Float[np.ndarray, "2 np"],
        options: PlanOptions,
        shared: bool = False,
    ):
        """Take over the initial guesses; `restart` evaluates them.

        Args:
            kernels: Compiled functions.
            motion: States, commands and designed numbers.
            numbers: `theta`, and the rows of the knots without multipliers.
            bounds: Lower and upper bounds of the commands.
            design_bounds: Lower and upper bounds of the designed numbers.
            options: Options.
            shared: True if all problems share the designed numbers.
        """
        f = kernels.functions
        self.kernels, self.options, self.shared = kernels, options, shared
        self.count = len(motion[0])
        self.low, self.high = bounds
        self.z, self.u, self.p = (np.array(x, float, order="C") for x in motion)
        self.u = np.clip(self.u, self.low, self.high)
        self.design_bounds = design_bounds
        self.theta, rows = numbers
        extra = np.zeros((self.count, f.steps + 1, kernels.multipliers + 1))
        extra[..., -1] = options.stiffness
        self.rows = np.concatenate([rows, extra], axis=2) if kernels.multipliers else rows
        self.expansion = np.zeros((self.count, f.steps, f.expansion_size))
        self.gaps = np.zeros((self.count, f.steps, f.nx))
        self.cost, self.defect, self.penalty = (np.zeros(self.count) for _ in range(3))
        self.damping = np.full(self.count, options.damping)
        self.active = np.ones(self.count, bool)
        self.status = np.full(self.count, PlanStatus.OUT_OF_ITERATIONS, object)
        self.iterations = np.zeros(self.count, int)
        self.tolerance, self.iteration_limit = options.tolerance, options.iterations
        self.smoothing: float | None = None
        """Smoothing of rigid contact in the derivatives."""
        self._alone: SingleProblem | None = None
        self._limits = np.tile(self.low, (f.steps, 1)), np.tile(self.high, (f.steps, 1))

    def restart(self, which: Bool[np.ndarray, " b"]) -> None:
        """Evaluate all motions, after numbers or motions have changed, and continue some problems."""
        self.active, self.status[which] = which.copy(), PlanStatus.OUT_OF_ITERATIONS
        np.minimum(self.damping, self.options.damping, out=self.damping)
        every = np.arange(self.count)
        self._expand(every, None)
        found = self._forward(every, self._no_step(self.gaps), np.zeros(1))
        self.cost = np.array(found.cost)[:, 0]
        if self.kernels.functions.servo_forces is not None:  # commands beyond the forces of servos change nothing
            self.u[:] = found.u[:, 0]
            self._expand(every, None)
        if self.smoothing is not None:
            self._expand(np.arange(self.count), self.smoothing)

    def solve(self, deadline: float | None = None) -> None:
        """Iterate until every problem has ended, or until a time of `time.perf_counter` [s]."""
        while self.active.any():
            self.iterate()
            if self.active.any():
                self._finish(self.active & (self.iterations >= self.iteration_limit), PlanStatus.OUT_OF_ITERATIONS)
            if deadline is not None and time.perf_counter() > deadline:
                self._finish(self.active.copy(), PlanStatus.OUT_OF_TIME)

    def iterate(self) -> None:
        """One iteration of all active problems: policy, line search, damping, and new expansions."""
        if self.count == 1 and not self.kernels.functions.np:
            self.alone.iterate()
            return
        which = np.flatnonzero(self.active)
        policy = self.policy(which)
        dp = self._design_step(policy, which)
        first, change = self._predict(policy, dp)
        defect = self.defect[which]
        infeasible = defect > DEFECT_TOLERANCE
        done = ~infeasible & (-change <= self.tolerance * (1 + np.abs(self.cost[which])))
        if self.shared:
            done[:] = not infeasible.any() and -change.sum() <= self.tolerance * (1 + np.abs(self.cost).sum())
        if done.any():
            self.status[which[done]], self.active[which[done]] = PlanStatus.CONVERGED, False
            if done.all():
                return
            which, defect, infeasible = which[~done], defect[~done], infeasible[~done]
            first, change, dp = first[~done], change[~done], dp[~done]
            policy = Policy(*(x[~done] for x in policy))
        curvature = 2 * (change - first)
        if infeasible.any():
            needed = (first + 0.5 * np.maximum(curvature, 0)) / (PENALTY_MARGIN * defect + 1e-300)
            self.penalty[which] = np.maximum(self.penalty[which], np.where(infeasible, needed, 0))
        steps = policy.feedback, self._of(self.gaps, which), dp
        self._adapt(which, self._search(which, steps, first, curvature))

    @property
    def alone(self) -> SingleProblem:
        """The calls of a single problem, prepared anew where its arrays are others."""
        if self._alone is None or not self._alone.fits():
            self._alone = SingleProblem(self)
        return self._alone

    def simulate(self) -> Float[np.ndarray, "b knots nz"]:
        """States of a simulation of all commands from the initial states."""
        found = self._forward(np.arange(self.count), self._no_step(np.zeros_like(self.gaps)), np.ones(1))
        return np.asarray(found.z)[:, 0]

    def settle(self, which: Int[np.ndarray, " n"]) -> None:
        """Close the remaining defects of some problems with their feedback, and compute feedback and gradients."""
        f = self.kernels.functions
        self.feedback = np.zeros((self.count, f.steps, f.nu, f.nx + f.np + 1))
        self.gradient = np.zeros((self.count, f.steps, f.nu))
        self.damping[which] = LOWEST_STATE_DAMPING
        for _ in range(2):
            self._expand(which, None)
            policy = self.policy(which)
            self.feedback[which], self.gradient[which] = policy.feedback, policy.gradient
            if not (self.defect[which] > DEFECT_TOLERANCE).any():
                return
            steps = (
                self.feedback[which] * (np.arange(f.nx + f.np + 1) > 0),
                self.gaps[which],
                np.zeros_like(self.p[which]),
            )
            closed = self._forward(which, steps, np.ones(1))
            self.z[which], self.u[which] = closed.z[:, 0], closed.u[:, 0]

    def _no_step(self, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps of the forward pass without feedback."""
        f = self.kernels.functions
        return np.zeros((self.count, f.steps, f.nu, f.nx + f.np + 1)), gaps, np.zeros_like(self.p)

    def policy(self, which: Int[np.ndarray, " n"]) -> Policy:
        """Policies of some problems, around their motions."""
        expansions = self._of(self.expansion, which), self._of(self.gaps, which)
        z, rows = self._of(self.z, which), self._of(self.rows, which)
        end = z, self._of(self.p, which), self._of(self.numbers(self.smoothing), which), rows[:, -1]
        u, damping = self._of(self.u, which), self._of(self.damping, which)
        if len(which) > 1:
            return self.kernels.backward(expansions, end, u, self._limits, damping)
        x, gap = expansions
        one = self.kernels.backward((x[0], gap[0]), tuple(y[0] for y in end), u[0], self._limits, damping[0])
        return Policy(*(x[None] for x in one))

    def _of(self, x: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Rows of some problems; the array itself for all of them."""
        return x if len(which) == self.count else x[which]

    def numbers(self, smoothing: float | None) -> Float[np.ndarray, "b size"]:
        """`theta` with at least this smoothing of contact."""
        if smoothing is None:
            return self.theta
        assert self.kernels.functions.inputs[-1] == SMOOTHING, "smoothing is the last input"
        theta = self.theta.copy()
        theta[:, -1] = np.maximum(theta[:, -1], smoothing)
        return theta

    def _expand(self, which: np.ndarray, smoothing: float | None) -> None:
        """Compute the expansions of some problems, and without smoothing their defects."""
        z, u, p, rows = (self._of(x, which) for x in (self.z, self.u, self.p, self.rows))
        theta = self._of(self.numbers(smoothing), which)
        if len(which) == 1:
            z, u, rows = z[0], u[0], rows[0]
            expansion, gaps = self.kernels.expand(z[:-1], u, z[1:], p[0], theta[0], rows[:-1])
        else:
            p, theta = (np.repeat(x[:, None], u.shape[1], axis=1) for x in (p, theta))
            expansion, gaps = self.kernels.expand(z[:, :-1], u, z[:, 1:], p, theta, rows[:, :-1])
        self.expansion[which] = expansion
        if smoothing is None:
            self.gaps[which] = gaps
            self.defect[which] = np.abs(self._of(self.gaps, which)).sum((1, 2))

    def _design_step(self, policy: Policy, which: np.ndarray) -> Float[np.ndarray, "n np"]:
        """Step of the designed numbers within their bounds, by the value function at the first knot."""
        size = self.kernels.functions.np
        step = np.zeros((len(which), size))
        if not size:
            return step
        design = np.asarray(policy.design)
        g, H = design[:, :, 1], design[:, :, 2:]
        if self.shared:
            g, H = (np.broadcast_to(x.sum(0), x.shape) for x in (g, H))
        for i, k in enumerate(which):
            damped = H[i] + np.diag(self.damping[k] * (1 + np.diag(H[i])))
            low, high = self.design_bounds - self.p[k]
            step[i] = minimize_in_box(damped, g[i], low, high)
        return step

    def _predict(self, policy: Policy, dp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First-order and whole predicted change of the cost."""
        first, change = policy.prediction.T
        if not dp.shape[1]:
            return first, change
        d = policy.design
        linear = np.einsum("bi,bi->b", d[:, :, 1], dp) + 0.5 * np.einsum("bi,bij,bj->b", dp, d[:, :, 2:], dp)
        return first + np.einsum("bi,bi->b", d[:, :, 0], dp), change + linear

    def _forward(self, which: np.ndarray, steps: tuple, lengths: Float[np.ndarray, " tries"]) -> Motion:
        """Motions of some problems, each with several step lengths (axis 1)."""
        n, tries = len(which), len(lengths)
        z, u, p, theta, rows = (self._of(x, which) for x in (self.z, self.u, self.p, self.theta, self.rows))
        bounds = self.low, self.high
        if n == 1:
            policy = tuple(x[0] for x in steps)
            found = self.kernels.forward((z[0], u[0], p[0]), policy, lengths, bounds, (theta[0], rows[0]))
            return Motion(*(x[None] for x in found))
        args: Any = (z, u, p), steps, (theta, rows)
        if tries > 1:
            args = jax.tree.map(lambda x: np.repeat(x, tries, axis=0), args)
        found = self.kernels.forward(args[0], args[1], np.tile(lengths, n), bounds, args[2])
        return Motion(*(x.reshape(n, tries, *x.shape[1:]) for x in found))

    def _search(
        self, which: np.ndarray, steps: tuple, first: np.ndarray, curvature: np.ndarray
    ) -> Float[np.ndarray, " n"]:
        """Line search: the longest of halved steps that decreases the penalty function enough; moves the problems."""
        pending, tried = np.arange(len(which)), 0
        taken = np.zeros(len(which))
        while len(pending) and tried < STEP_LENGTHS_TRIED:
            tries = min(-(-BATCH_WIDTH // len(pending)), STEP_LENGTHS_TRIED - tried)
            lengths = 0.5 ** np.arange(tried, tried + tries)
            own = which[pending]
            found = self._forward(own, tuple(x[pending] for x in steps) if tried else steps, lengths)
            accepted = self._accepted(
                own, np.asarray(found.cost), lengths, first[pending, None], curvature[pending, None]
            )
            hit, choice = accepted.any(1), accepted.argmax(1)
            if hit.any():
                rows, k = np.flatnonzero(hit), choice[hit]
                own = own[hit]
                self.z[own], self.u[own], self.p[own] = found.z[rows, k], found.u[rows, k], found.p[rows, k]
                self.cost[own] = found.cost[rows, k]
                taken[pending[hit]] = lengths[k]
            pending, tried = pending[~hit], tried + tries
        return taken

    def _accepted(
        self, which: np.ndarray, cost: np.ndarray, lengths: np.ndarray, first: np.ndarray, curvature: np.ndarray
    ) -> Bool[np.ndarray, "n tries"]:
        """True for step lengths that decrease the penalty function by enough of what was predicted."""
        weight = (self.penalty[which] * self.defect[which])[:, None] * lengths
        actual = cost - self.cost[which, None] - weight
        expected = lengths * first + 0.5 * lengths**2 * curvature - weight
        if self.shared:
            actual, expected = (np.broadcast_to(x.sum(0), x.shape) for x in (actual, expected))
        return (actual <= ACCEPTED_DECREASE * np.minimum(expected, 0)) & (actual < 0)

    def _adapt(self, which: np.ndarray, taken: np.ndarray) -> None:
        """Damping and expansions after a line search; problems without any step at the largest damping stall."""
        moved = taken > 0
        factor = np.where(taken < SHORT_STEP, DAMPING_FACTOR, np.where(taken < LONG_STEP, 1.0, 1 / DAMPING_FACTOR))
        self.damping[which] = damping = np.maximum(self.damping[which] * factor, LOWEST_STATE_DAMPING)
        self.iterations[which] += 1
        if (damping > HIGHEST_STATE_DAMPING).any():
            ended = which[damping > HIGHEST_STATE_DAMPING]
            self.status[ended], self.active[ended] = PlanStatus.STALLED, False
        if moved.any():
            own = which[moved]
            self.gaps[own] *= (1 - taken[moved])[:, None, None]
            self.defect[own] *= 1 - taken[moved]
            self._expand(own, self.smoothing)

    def _finish(self, which: Bool[np.ndarray, " b"], status: PlanStatus) -> None:
        self.active[which], self.status[which] = False, status
