"""Has the robot changed? Hypotheses that it did, each begun at another time, against the one that it did not.

A hypothesis takes over the belief at the time it begins, with parameters that may have changed set loose. From then on
it predicts the stream beside the belief that nothing changed. Its likelihood ratio L grows if it predicts better. The
sum of L over all hypotheses is the statistic of Shiryaev and Roberts: if nothing changes, its mean grows by one for
each hypothesis that begins, so that on average at least B hypotheses begin before it exceeds B. This turns the time
between false alarms that one accepts into a threshold.

This holds for a model that is right. A wrong one favours ever other parameters as the robot moves on. So the stream
itself is the measure: if nothing changes, one of n hypotheses exceeds a ratio of 20 n at one time in 20 at most; if
they did so more often of late, all log ratios are scaled down until they would not have.
"""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identify.online.belief import Beliefs, joined

JUMP = 0.5
"""Standard deviation of a change, in coordinates: half of a value, or of its logarithm."""
HYPOTHESES = 7
"""Hypotheses at a time: with the belief that nothing changed, two vectors of four lanes."""
LONGEST = 20.0
"""A hypothesis that has not prevailed after this time is given up [s]."""
SPACING = 0.1
"""A new hypothesis begins this often [s]."""
REMEMBERED, FEWEST, RECENT = 300, 30, 10
"""Best log ratios that are remembered, one for each hypothesis that begins; how many are needed before any alarm; and
how many of the last ones do not count, since they may belong to a change."""
RARE = 0.05
"""The share of them that may exceed their bound."""


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """That parameters changed at some time."""

    time: float
    """When [s]."""
    log_ratio: float = 0.0
    """Logarithm of how much better it has predicted since."""


def loosened(belief: Beliefs, variance: Float[np.ndarray, "size"]) -> Beliefs:
    """The belief with more variance of its parameters."""
    P = belief.covariance.copy()
    at = np.arange(len(variance))
    P[:, at, at] += variance
    return belief._replace(covariance=P)


class Bank:
    """All hypotheses, and the beliefs that go with them; the first belief is that nothing changed."""

    def __init__(self, variance: Float[np.ndarray, "size"], between_alarms: float):
        """Ready to be started from a belief.

        Args:
            variance: How far each coordinate may change suddenly.
            between_alarms: Mean time between false alarms, at least [s].
        """
        self.beliefs: Beliefs
        self.hypotheses: list[Hypothesis] = []
        self._variance = variance
        self._threshold = np.log(max(between_alarms / SPACING, 2.0))
        self.best: list[float] = []
        """Best log ratios of late."""

    def begin(self, time: float) -> None:
        """One more hypothesis, if it is time for one; another one gives way if there are too many."""
        ages = [time - h.time for h in self.hypotheses]
        if not self._variance.any() or (ages and ages[-1] < SPACING * (1 - 1e-6)):
            return
        self.best = [*self.best, max((h.log_ratio for h in self.hypotheses), default=0.0)][-REMEMBERED:]
        if len(ages) == HYPOTHESES:
            self._keep([k for k in range(HYPOTHESES) if k != _superfluous(ages)])
        self.hypotheses.append(Hypothesis(time))
        self.beliefs = joined([self.beliefs, loosened(self.beliefs.lane(0), self._variance)])

    def weigh(self, beliefs: Beliefs, evidence: Float[np.ndarray, "lanes"]) -> None:
        """The beliefs after a chunk, and how well each had predicted it."""
        self.beliefs = beliefs
        gains = evidence[1:] - evidence[0]
        pairs = zip(self.hypotheses, gains, strict=True)
        self.hypotheses = [dataclasses.replace(h, log_ratio=h.log_ratio + float(g)) for h, g in pairs]
        if not beliefs.finite[1:].all():
            self._keep(list(np.flatnonzero(beliefs.finite[1:])))

    @property
    def statistic(self) -> float:
        """Logarithm of the sum of all ratios, over its threshold: a change is certain enough from 1 on."""
        if not self.hypotheses or len(self.best) < FEWEST:
            return 0.0
        usual = float(np.quantile(self.best[:-RECENT], 1 - RARE))
        scale = min(1.0, np.log(HYPOTHESES / RARE) / max(usual, 1e-9))
        return float(np.logaddexp.reduce([scale * h.log_ratio for h in self.hypotheses]) / self._threshold)

    def accept(self) -> tuple[Hypothesis, Beliefs]:
        """The hypothesis that predicts best becomes the belief; it, and the belief before."""
        best = int(np.argmax([h.log_ratio for h in self.hypotheses]))
        winner, before = self.hypotheses[best], self.beliefs.lane(0)
        self.restart(self.beliefs.lane(best + 1))
        self.best = self.best[:-RECENT]
        return winner, before

    def restart(self, belief: Beliefs) -> None:
        """Goes on from one belief, without any hypothesis."""
        self.beliefs, self.hypotheses = belief, []

    def _keep(self, kept: list[int]) -> None:
        self.hypotheses = [self.hypotheses[k] for k in kept]
        self.beliefs = Beliefs(*(x[[0, *(k + 1 for k in kept)]] for x in self.beliefs))


def _superfluous(ages: list[float]) -> int:
    """Which hypothesis to give up: the oldest in the end, else the one nearest to its neighbours, so ages double."""
    if ages[0] > LONGEST:
        return 0
    return 1 + int(np.argmin([ages[k - 1] / max(ages[k + 1], 1e-9) for k in range(1, len(ages) - 1)]))
