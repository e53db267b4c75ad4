"""Which candidate explains most, and which is simplest of those that explain as much."""

import dataclasses

import numpy as np

from truesim.identify.suggest.candidates import Candidate
from truesim.identify.suggest.evidence import Evidence, evidence
from truesim.identify.suggest.score import Score, score
from truesim.identify.suggest.track import Track

AS_GOOD = 0.02
"""Two candidates explain equally much if the parts differ by less than this, or by less than one standard error."""
SMALL, SURE = 0.05, 3.0
"""A candidate is worth a network if it explains more than this part of the error, by so many standard errors."""


@dataclasses.dataclass(frozen=True)
class Ranked:
    """A candidate with its score."""

    candidate: Candidate
    score: Score
    names: tuple[str, ...]
    """Rows that matter: the fewest that explain as much as all."""
    numbers: int
    """Columns of these rows."""


def ranked(track: Track, candidate: Candidate) -> Ranked:
    """The score of a candidate, with only the rows that matter."""
    found = evidence(track, candidate.torques, candidate.readings)
    own = track.problem.parameters.size
    whole = score(found, own)
    chosen: list[int] = []
    best = score(found.of(np.arange(own)), own)
    while len(chosen) < len(candidate.names):
        rest = [k for k in range(len(candidate.names)) if k not in chosen]
        tried = {k: score(_rows(found, candidate, own, [*chosen, k]), own) for k in rest}
        k = max(tried, key=lambda k: tried[k].explained)
        gained = tried[k].explained - best.explained
        if chosen and (as_good(whole, best) or gained < AS_GOOD):
            break
        chosen, best = [*chosen, k], tried[k]
    names = tuple(candidate.names[k] for k in sorted(chosen))
    return Ranked(candidate, best, names, int(np.isin(candidate.owner, chosen).sum()))


def _rows(found: Evidence, candidate: Candidate, own: int, chosen: list[int]) -> Evidence:
    mine = np.flatnonzero(np.isin(candidate.owner, chosen))
    return found.of(np.concatenate([np.arange(own), own + mine]))


def as_good(best: Score, other: Score) -> bool:
    """Whether another score is as good as the best."""
    return best.explained - other.explained < AS_GOOD or best.beyond(other) < 1.0


def ordered(found: list[Ranked]) -> list[Ranked]:
    """From the best down; of those as good as the best, the simplest first."""
    rest = sorted(found, key=lambda r: -r.score.explained)
    if not rest:
        return []
    ties = [r for r in rest if as_good(rest[0].score, r.score)]
    first = min(ties, key=lambda r: (r.numbers, len(r.candidate.inputs), -r.score.explained))
    return [first, *(r for r in rest if r is not first)]


def needed(best: Ranked) -> bool:
    """Whether the best candidate is worth a network."""
    return best.score.explained > SMALL and best.score.beyond() > SURE
