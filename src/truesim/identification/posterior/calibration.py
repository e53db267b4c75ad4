"""Calibration: coverage of posteriors in repeated simulate-and-fit runs.

True parameters are drawn, their logs are simulated with noise and fitted like real ones. For a calibrated posterior,
regions of probability p contain the truth in a fraction p of all repeats, and the rank of the truth among samples is
uniform.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from truesim.core import libraries
from truesim.core.errors import unknown_name
from truesim.core.persistence.journal import Journal
from truesim.core.typing import Float
from truesim.identification.diagnose.identifiability import coordinate_names
from truesim.identification.posterior.gaussians import Posterior
from truesim.identification.posterior.laplace import laplace
from truesim.identification.posterior.synthetic import replace_measurements, simulate_logs
from truesim.identification.posterior.variational import MixtureOptions, mixture
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem

CALIBRATION_MIXTURE = MixtureOptions(epochs=40)
"""Options of the mixtures that are fitted in every repeat; the seed is that of the calibration."""
CALIBRATED_KINDS: Mapping[str, Callable[[Solution, int], Posterior]] = {
    "laplace": lambda solution, seed: laplace(solution),
    "mixture": lambda solution, seed: mixture(solution, dataclasses.replace(CALIBRATION_MIXTURE, seed=seed))[0],
}
"""Posteriors that can be calibrated, by name: functions of a solution and a seed."""
CALIBRATION_SCHEMA = "truesim.calibration/1"
"""Schema of calibration journals."""


@dataclasses.dataclass(frozen=True)
class Repeat:
    """Rank of the truth in the posterior of one repeat."""

    rank: Float[np.ndarray, " size"]
    """Posterior probability of values below the truth, for each coordinate."""
    credibility: float
    """Probability of the smallest region that contains the truth."""

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Repeat":
        """Repeat from a journal record."""
        return cls(np.array(record["rank"]), record["credibility"])

    @property
    def record(self) -> dict[str, Any]:
        """Journal record of the repeat."""
        return {"rank": self.rank.tolist(), "credibility": self.credibility}


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Statistics of all repeats of one kind of posterior."""

    names: tuple[str, ...]
    """Name of each coordinate."""
    ranks: Float[np.ndarray, "repeats size"]
    credibilities: Float[np.ndarray, " repeats"]

    @classmethod
    def of(cls, names: Sequence[str], repeats: Sequence[Repeat]) -> "Calibration":
        """Statistics of repeats."""
        ranks = np.array([r.rank for r in repeats]).reshape(len(repeats), len(names))
        return cls(tuple(names), ranks, np.array([r.credibility for r in repeats]))

    def coverage(self, level: float = 0.95) -> float:
        """Fraction of repeats in which the joint region of this probability contains the truth."""
        return float(np.mean(self.credibilities <= level))

    def interval_coverage(self, level: float = 0.95) -> Float[np.ndarray, " size"]:
        """Fraction of repeats in which the interval of each coordinate contains the truth."""
        return np.mean(np.abs(2 * self.ranks - 1) <= level, axis=0)

    def chance(self, level: float = 0.95, within: float = 0.95) -> tuple[float, float]:
        """Range of coverages that chance allows a calibrated posterior of this level (Clopper-Pearson)."""
        n = len(self.ranks)
        beta = libraries.scipy.stats.beta
        low = beta.ppf((1 - within) / 2, n * level, n * (1 - level) + 1)
        return float(low), float(beta.ppf((1 + within) / 2, n * level + 1, max(n * (1 - level), 1e-9)))

    def uniformity(self) -> Float[np.ndarray, " size"]:
        """p-value of the Kolmogorov-Smirnov test that the ranks of each coordinate are uniform."""
        return np.array([libraries.scipy.stats.kstest(ranks, "uniform").pvalue for ranks in self.ranks.T])


def calibrate(
    solution: Solution,
    kinds: Sequence[str],
    truths: Float[np.ndarray, "repeats size"],
    *,
    options: SolveOptions | None = None,
    seed: int = 0,
    journal: Journal | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> dict[str, Calibration]:
    """Calibrate posteriors by repeated simulation and fitting.

    Args:
        solution: A solved problem; its commands, stamps, initial states and noise are used.
        kinds: Kinds of posteriors, `laplace` or `mixture`.
        truths: Coordinates of the true parameters of every repeat.
        options: Options of each solve.
        seed: Seed of the noise and of the samples of posteriors.
        journal: Journal of finished repeats; repeats that it holds are not repeated.
        callback: Called after every repeat with the number of finished repeats and of all repeats.
    """
    records = [] if journal is None else journal.records[: len(truths)]
    found = [{kind: Repeat.read(record[kind]) for kind in kinds} for record in records]
    for repeat in repeat_fits(solution, kinds, truths, options=options, seed=seed, skip=len(found)):
        found.append(repeat)
        if journal is not None:
            journal.append([{kind: r.record for kind, r in repeat.items()}])
        if callback is not None:
            callback(len(found), len(truths))
    names = coordinate_names(solution)
    return {kind: Calibration.of(names, [repeat[kind] for repeat in found]) for kind in kinds}


def repeat_fits(
    solution: Solution,
    kinds: Sequence[str],
    truths: Float[np.ndarray, "repeats size"],
    *,
    options: SolveOptions | None = None,
    seed: int = 0,
    skip: int = 0,
) -> Iterator[dict[str, Repeat]]:
    """Simulate and fit repeatedly; yields the rank of each truth in the posteriors.

    Args:
        solution: A solved problem; its commands, stamps, initial states and noise are used.
        kinds: Kinds of posteriors, `laplace` or `mixture`.
        truths: Coordinates of the true parameters of every repeat.
        options: Options of each solve.
        seed: Seed; every repeat draws its own noise from it, so that repeats can be resumed.
        skip: Number of finished repeats.
    """
    for kind in kinds:
        if kind not in CALIBRATED_KINDS:
            raise unknown_name("posterior", kind, CALIBRATED_KINDS)
    deviations = simulate_logs(solution, truths[skip:]) if skip < len(truths) else []
    for k, truth in enumerate(truths[skip:]):
        rng = np.random.default_rng([seed, skip + k])
        again = solve_problem(replace_measurements(solution, [x[k] for x in deviations], rng), options)
        yield {kind: locate_truth(CALIBRATED_KINDS[kind](again, seed), truth, seed) for kind in kinds}


def locate_truth(posterior: Posterior, truth: Float[np.ndarray, " size"], seed: int = 0) -> Repeat:
    """Rank and credibility of a truth in a posterior; the seed is that of the samples for the credibility."""
    return Repeat(posterior.cdf(truth), posterior.credibility(truth, seed=seed))
