"""Calibration: whether posteriors hold the truth as often as they say.

Parameters are drawn, their logs simulated with noise and fitted as real ones would be. In a calibrated posterior the
truth lies within regions of probability p in a part p of all repeats, and its rank among samples is uniform.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta, kstest

from truesim.core.errors import unknown_name
from truesim.core.typing import Float
from truesim.identify.fit import Settings, Solution, solve_problem
from truesim.identify.journal import Journal
from truesim.identify.posterior.gaussians import Posterior
from truesim.identify.posterior.laplace import laplace
from truesim.identify.posterior.synthetic import repeated, simulated
from truesim.identify.posterior.variational import MixtureSettings, mixture
from truesim.identify.uncertainty import coordinate_names

QUICK = MixtureSettings(epochs=40)
"""How mixtures are fitted, many times over."""
KINDS: Mapping[str, Callable[[Solution], Posterior]] = {
    "laplace": laplace,
    "mixture": lambda solution: mixture(solution, QUICK)[0],
}
"""Posteriors that can be calibrated, by name."""
SCHEMA = "truesim.calibration/1"
"""Of journals of calibrations."""


@dataclasses.dataclass(frozen=True)
class Repeat:
    """One repeat: where the truth lay in the posterior."""

    rank: Float[np.ndarray, "size"]
    """Of each coordinate: the probability of less."""
    credibility: float
    """Probability of the smallest region that holds the truth."""

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Repeat":
        """From a record of a journal."""
        return cls(np.array(record["rank"]), record["credibility"])

    @property
    def record(self) -> dict[str, Any]:
        """For a journal."""
        return {"rank": self.rank.tolist(), "credibility": self.credibility}


@dataclasses.dataclass(frozen=True)
class Calibration:
    """All repeats of one kind of posterior."""

    names: tuple[str, ...]
    """Name of each coordinate."""
    ranks: Float[np.ndarray, "repeats size"]
    credibilities: Float[np.ndarray, "repeats"]

    @classmethod
    def of(cls, names: Sequence[str], repeats: Sequence[Repeat]) -> "Calibration":
        """The statistics of repeats."""
        ranks = np.array([r.rank for r in repeats]).reshape(len(repeats), len(names))
        return cls(tuple(names), ranks, np.array([r.credibility for r in repeats]))

    def coverage(self, level: float = 0.95) -> float:
        """Part of all repeats in which the joint region of this probability held the truth."""
        return float(np.mean(self.credibilities <= level))

    def interval_coverage(self, level: float = 0.95) -> Float[np.ndarray, "size"]:
        """The same for the interval of each coordinate by itself."""
        return np.mean(np.abs(2 * self.ranks - 1) <= level, axis=0)

    def chance(self, level: float = 0.95, within: float = 0.95) -> tuple[float, float]:
        """Between which coverages chance would leave a calibrated posterior of this level."""
        n = len(self.ranks)
        low = beta.ppf((1 - within) / 2, n * level, n * (1 - level) + 1)
        return float(low), float(beta.ppf((1 + within) / 2, n * level + 1, max(n * (1 - level), 1e-9)))

    def uniformity(self) -> Float[np.ndarray, "size"]:
        """The p-value of each coordinate's ranks being uniform (Kolmogorov and Smirnov)."""
        return np.array([kstest(ranks, "uniform").pvalue for ranks in self.ranks.T])


def calibrated(
    solution: Solution,
    kinds: Sequence[str],
    truths: Float[np.ndarray, "repeats size"],
    *,
    settings: Settings | None = None,
    seed: int = 0,
    journal: Journal | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> dict[str, Calibration]:
    """Simulates and fits again and again; the statistics of each kind of posterior.

    Args:
        solution: A solved problem: its commands, stamps, first states and noise are used.
        kinds: Of posteriors, `laplace` or `mixture`.
        truths: Coordinates of the true parameters of every repeat.
        settings: How each repeat is solved.
        seed: Of the noise.
        journal: Keeps every repeat as it ends; those that it holds are not done again.
        watch: Called after every repeat with their number so far and in all.
    """
    records = [] if journal is None else journal.records[: len(truths)]
    found = [{kind: Repeat.read(record[kind]) for kind in kinds} for record in records]
    for repeat in repeats(solution, kinds, truths, settings=settings, seed=seed, skip=len(found)):
        found.append(repeat)
        if journal is not None:
            journal.append([{kind: r.record for kind, r in repeat.items()}])
        if watch is not None:
            watch(len(found), len(truths))
    names = coordinate_names(solution)
    return {kind: Calibration.of(names, [repeat[kind] for repeat in found]) for kind in kinds}


def repeats(
    solution: Solution,
    kinds: Sequence[str],
    truths: Float[np.ndarray, "repeats size"],
    *,
    settings: Settings | None = None,
    seed: int = 0,
    skip: int = 0,
) -> Iterator[dict[str, Repeat]]:
    """Simulates and fits again and again, and says where each truth lay in the posteriors.

    Args:
        solution: A solved problem: its commands, stamps, first states and noise are used.
        kinds: Of posteriors, `laplace` or `mixture`.
        truths: Coordinates of the true parameters of every repeat.
        settings: How each repeat is solved.
        seed: Of the noise; every repeat has its own, so that they can be taken up again.
        skip: Number of repeats that are known already.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_name("posterior", kind, KINDS)
    departures = simulated(solution, truths[skip:]) if skip < len(truths) else []
    for k, truth in enumerate(truths[skip:]):
        rng = np.random.default_rng([seed, skip + k])
        again = solve_problem(repeated(solution, [x[k] for x in departures], rng), settings)
        yield {kind: located(KINDS[kind](again), truth) for kind in kinds}


def located(posterior: Posterior, truth: Float[np.ndarray, "size"]) -> Repeat:
    """Where a truth lies in a posterior."""
    return Repeat(posterior.cdf(truth), posterior.credibility(truth))
