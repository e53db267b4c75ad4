"""Ranking of candidates: the simplest of those that explain equally much comes first."""

import dataclasses

import numpy as np

from truesim.identification.suggestion.candidates import Candidate
from truesim.identification.suggestion.evidence import Evidence, evidence
from truesim.identification.suggestion.score import Score, score
from truesim.identification.suggestion.track import Track

EQUAL_FRACTION = 0.02
"""Two candidates are equally good if their fractions differ by less than this, or by less than one standard error."""
WORTHWHILE_FRACTION = 0.05
"""A network is worthwhile if it explains more than this fraction of the error."""
WORTHWHILE_SIGNIFICANCE = 3.0
"""A network is worthwhile if its fraction exceeds zero by this many standard errors."""


@dataclasses.dataclass(frozen=True)
class RankedCandidate:
    """A candidate with its score and relevant rows."""

    candidate: Candidate
    score: Score
    names: tuple[str, ...]
    """Relevant rows: the smallest set that explains as much as all."""
    numbers: int
    """Number of columns of these rows."""


def rank(track: Track, candidate: Candidate) -> RankedCandidate:
    """Select the relevant rows of a candidate by forward selection, and score them."""
    found = evidence(track, candidate.torques, candidate.measurements)
    own = track.problem.parameters.size
    whole = score(found, own)
    chosen: list[int] = []
    best = score(found.select(np.arange(own)), own)
    while len(chosen) < len(candidate.names):
        rest = [k for k in range(len(candidate.names)) if k not in chosen]
        tried = {k: score(_rows(found, candidate, own, [*chosen, k]), own) for k in rest}
        k = max(tried, key=lambda k: tried[k].explained)
        gained = tried[k].explained - best.explained
        if chosen and (is_as_good(whole, best) or gained < EQUAL_FRACTION):
            break
        chosen, best = [*chosen, k], tried[k]
    names = tuple(candidate.names[k] for k in sorted(chosen))
    return RankedCandidate(candidate, best, names, int(np.isin(candidate.owner, chosen).sum()))


def _rows(found: Evidence, candidate: Candidate, own: int, chosen: list[int]) -> Evidence:
    mine = np.flatnonzero(np.isin(candidate.owner, chosen))
    return found.select(np.concatenate([np.arange(own), own + mine]))


def is_as_good(best: Score, other: Score) -> bool:
    """True if another score is as good as the best."""
    return best.explained - other.explained < EQUAL_FRACTION or best.significance(other) < 1.0


def sort_candidates(found: list[RankedCandidate]) -> list[RankedCandidate]:
    """Candidates by score; the simplest of those as good as the best comes first."""
    rest = sorted(found, key=lambda r: -r.score.explained)
    if not rest:
        return []
    ties = [r for r in rest if is_as_good(rest[0].score, r.score)]
    first = min(ties, key=lambda r: (r.numbers, len(r.candidate.inputs), -r.score.explained))
    return [first, *(r for r in rest if r is not first)]


def is_worthwhile(best: RankedCandidate) -> bool:
    """True if a network for a candidate is worthwhile."""
    score = best.score
    return score.explained > WORTHWHILE_FRACTION and score.significance() > WORTHWHILE_SIGNIFICANCE
