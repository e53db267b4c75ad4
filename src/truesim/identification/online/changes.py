"""Change detection: hypotheses of a sudden change at different times, against the hypothesis of no change.

A hypothesis starts from the filter state at its time, with an inflated covariance of the parameters that may change.
From then on it predicts the stream alongside the filter without a change. Its likelihood ratio L grows if it predicts
better. The sum of L over all hypotheses is the Shiryaev-Roberts statistic: without a change its mean grows by one for
each hypothesis that starts, so that on average at least B hypotheses start before it exceeds B. This turns an accepted
time between false alarms into a threshold.

The guarantee holds for a correct model. A wrong model prefers ever different parameters as the robot moves on. The
stream itself therefore calibrates the statistic: without a change one of n hypotheses exceeds a ratio of 20 n at most
5 % of the time; if they did so more often recently, all log ratios are scaled down until they would not have.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identification.online.filter_state import FilterState, concatenate_states

SUDDEN_CHANGE_STD = 0.5
"""Standard deviation of a sudden change, in coordinates: half of a value, or of its logarithm."""
HYPOTHESES = 7
"""Maximum number of hypotheses: with the filter without a change, two SIMD vectors of four."""
LONGEST_HYPOTHESIS = 20.0
"""Time after which a hypothesis is dropped [s]."""
HYPOTHESIS_SPACING = 0.1
"""Time between starts of hypotheses [s]."""
REMEMBERED_RATIOS = 300
"""Number of remembered best log ratios, one for each hypothesis that started."""
RATIOS_BEFORE_ALARM = 30
"""Number of log ratios that are needed before the first alarm."""
RECENT_RATIOS = 10
"""Number of last log ratios that are ignored, since they may belong to a change."""
EXCEEDANCE_RATE = 0.05
"""Fraction of log ratios that may exceed their bound."""


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """Hypothesis of a sudden change of parameters."""

    time: float
    """Time of the change [s]."""
    log_ratio: float = 0.0
    """Logarithm of the likelihood ratio to the hypothesis of no change."""


def inflate_covariance(state: FilterState, variance: Float[np.ndarray, " size"]) -> FilterState:
    """Filter state with additional variance of the parameters."""
    P = state.covariance.copy()
    at = np.arange(len(variance))
    P[:, at, at] += variance
    return state._replace(covariance=P)


class HypothesisBank:
    """All hypotheses and their filter states; state 0 is that without a change."""

    def __init__(self, variance: Float[np.ndarray, " size"], between_alarms: float):
        """Make a bank without hypotheses; call `restart` before use.

        Args:
            variance: Variance of a sudden change of each coordinate.
            between_alarms: Minimum mean time between false alarms [s].
        """
        self.states: FilterState
        self.hypotheses: list[Hypothesis] = []
        self._variance = variance
        self._threshold = np.log(max(between_alarms / HYPOTHESIS_SPACING, 2.0))
        self.best: list[float] = []
        """Recent best log ratios."""

    def begin(self, time: float) -> None:
        """Start a hypothesis if one is due, and drop another one if there are too many."""
        ages = [time - h.time for h in self.hypotheses]
        if not self._variance.any() or (ages and ages[-1] < HYPOTHESIS_SPACING * (1 - 1e-6)):
            return
        best = max((h.log_ratio for h in self.hypotheses), default=0.0)
        self.best = [*self.best, best][-REMEMBERED_RATIOS:]
        if len(ages) == HYPOTHESES:
            self._keep([k for k in range(HYPOTHESES) if k != _redundant(ages)])
        self.hypotheses.append(Hypothesis(time))
        self.states = concatenate_states([self.states, inflate_covariance(self.states.element(0), self._variance)])

    def update(self, states: FilterState, evidence: Float[np.ndarray, " batch"]) -> None:
        """Take the filter states after a chunk and the log likelihood of the chunk under each hypothesis."""
        self.states = states
        gains = evidence[1:] - evidence[0]
        pairs = zip(self.hypotheses, gains, strict=True)
        self.hypotheses = [dataclasses.replace(h, log_ratio=h.log_ratio + float(g)) for h, g in pairs]
        if not states.finite[1:].all():
            self._keep([int(k) for k in np.flatnonzero(states.finite[1:])])

    @property
    def statistic(self) -> float:
        """Logarithm of the sum of all likelihood ratios over its threshold; an alarm is due from 1 on."""
        if not self.hypotheses or len(self.best) < RATIOS_BEFORE_ALARM:
            return 0.0
        usual = float(np.quantile(self.best[:-RECENT_RATIOS], 1 - EXCEEDANCE_RATE))
        scale = min(1.0, np.log(HYPOTHESES / EXCEEDANCE_RATE) / max(usual, 1e-9))
        return float(np.logaddexp.reduce([scale * h.log_ratio for h in self.hypotheses]) / self._threshold)

    def accept(self) -> tuple[Hypothesis, FilterState]:
        """Continue from the best hypothesis; returns it and the filter state without a change."""
        best = int(np.argmax([h.log_ratio for h in self.hypotheses]))
        winner, before = self.hypotheses[best], self.states.element(0)
        self.restart(self.states.element(best + 1))
        self.best = self.best[:-RECENT_RATIOS]
        return winner, before

    def restart(self, state: FilterState) -> None:
        """Continue from one filter state without hypotheses."""
        self.states, self.hypotheses = state, []

    def _keep(self, kept: list[int]) -> None:
        self.hypotheses = [self.hypotheses[k] for k in kept]
        self.states = FilterState(*(x[[0, *(k + 1 for k in kept)]] for x in self.states))


def _redundant(ages: list[float]) -> int:
    """Hypothesis to drop: the oldest if it is too old, else the one closest to its neighbors, so that ages double."""
    if ages[0] > LONGEST_HYPOTHESIS:
        return 0
    return 1 + int(np.argmin([ages[k - 1] / max(ages[k + 1], 1e-9) for k in range(1, len(ages) - 1)]))
