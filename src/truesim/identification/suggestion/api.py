"""Suggestion of networks: for each port, the fraction of the remaining error that a network could explain."""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identification.diagnose.options import DiagnoseOptions
from truesim.identification.diagnose.score_test import Alternative
from truesim.identification.problem.problem import Problem
from truesim.identification.suggestion.candidates import Candidate, candidates
from truesim.identification.suggestion.evidence import evidence, explainable_fraction
from truesim.identification.suggestion.kinds import DisturbanceKind
from truesim.identification.suggestion.plan import rule
from truesim.identification.suggestion.probe import FORCE_PORTS, PortValues, Prober
from truesim.identification.suggestion.rank import RankedCandidate, is_as_good, is_worthwhile, rank, sort_candidates
from truesim.identification.suggestion.score import Score, score, weights
from truesim.identification.suggestion.thin import thin_logs
from truesim.identification.suggestion.track import FRICTION_BOUND_PORT, Track, Tracker
from truesim.physics.blueprint import Rule, ports

LONGEST_EVIDENCE_WINDOW = 0.25
"""Longest windows [s]."""
CROSS_VALIDATION_WINDOWS = 4
"""Minimum number of windows for cross-validation."""
LINEAR_ERROR_FACTOR = 1.3
"""The linear model holds in windows whose remaining error exceeds that of the best windows by less than this factor."""
RANKED_CANDIDATES = 5
"""Number of best candidates whose rows are selected."""
SUGGESTION_CURVE_POINTS = 400
"""Maximum number of points of a curve."""

SuggestionCallback = Callable[[str], None]
"""Called with a description of the current step."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """A disturbance as a function of its first input, along the logs."""

    name: str
    """Name of the joint, body, actuator or pair of geoms."""
    input: str
    x: Float[np.ndarray, " points"]
    """[unit of the input]"""
    y: Float[np.ndarray, " points"]
    """[N m or N]"""


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """A port, and the expected benefit of a network there."""

    port: str
    inputs: tuple[str, ...]
    kind: DisturbanceKind
    names: tuple[str, ...]
    """Joints, bodies, actuators or pairs of geoms on which it acts."""
    explained: float
    """Fraction of the error beyond sensor noise that a function of the inputs explains on held-out windows."""
    error: float
    """Standard error of the explained fraction."""
    reach: float | None
    """Fraction of the error that any disturbance at the port could explain; None for sensors."""
    rule: Rule
    """A network to train."""
    curve: Curve | None = None


@dataclasses.dataclass(frozen=True)
class Suggestions:
    """Suggestions for all ports, best first."""

    needed: bool
    """True if a network is worthwhile at all."""
    found: tuple[Suggestion, ...]
    remaining: float
    """Root mean square of the residuals in units of the sensor noise."""
    window: float
    """Length of the windows [s]."""
    alternatives: tuple[Alternative, ...] = ()
    """Fixed parameters of the model that explain the residual: to be freed before any network."""

    @property
    def sentence(self) -> str:
        """Summary in a sentence."""
        if self.alternatives and self.alternatives[0].explained >= DiagnoseOptions.explained:
            first = self.alternatives[0]
            return (
                f"No network yet: free {first.pattern} first, which explains {100 * first.explained:.0f} % of the "
                "remaining residual."
            )
        if not self.needed:
            return (
                f"None needed: residuals are {self.remaining:.3g} times the noise, and no port explains much of them."
            )
        best = self.found[0]
        where = ", ".join(best.names)
        return f"{best.port} of {where}: {best.kind} explains {100 * best.explained:.0f} % of the error beyond noise."


def suggest(
    problem: Problem, theta: Float[np.ndarray, " size"] | None = None, callback: SuggestionCallback | None = None
) -> Suggestions:
    """Suggest networks: for each port, the fraction of the remaining error that a network could explain.

    Args:
        problem: A robot and its logs; its free parameters may readjust under every candidate.
        theta: Coordinates of the parameters; the values of the model by default.
        callback: Called with a description of the current step.
    """
    say = callback or (lambda text: None)
    theta = problem.parameters.start if theta is None else theta
    problem = thin_logs(problem)
    say("Compiling the simulation and smoothing the logs …")
    tracker, prober = Tracker(problem, theta), Prober(problem, theta)
    studies = [_study(tracker, prober, length, say) for length in _lengths(problem)]
    at = _choose(studies)
    say("Selecting joints, bodies and contacts …")
    order = sort_candidates([at.rank(k) for k in at.best(RANKED_CANDIDATES)])
    rest = [k for k in at.best(len(at.candidates)) if all(at.candidates[k] is not r.candidate for r in order)]
    results = [_suggestion(at, r) for r in order] + [_suggestion(at, at.whole(k)) for k in rest]
    return Suggestions(
        needed=any(_has_worthwhile(study) for study in studies) and is_worthwhile(order[0]),
        found=tuple(_drop_repeats(results)),
        remaining=at.base.left,
        window=at.track.windows.shape[1] * problem.layout.seconds,
    )


@dataclasses.dataclass(frozen=True)
class _Study:
    """Scores of all candidates at one window length."""

    track: Track
    passage: PortValues
    candidates: list[Candidate]
    scores: list[Score]
    base: Score
    reaches: dict[int, float] = dataclasses.field(default_factory=dict)
    """Cache of explainable fractions."""

    def best(self, count: int) -> list[int]:
        """Indices of the best candidates, and of all others that are as good as the best."""
        order = sorted(range(len(self.scores)), key=lambda k: -self.scores[k].explained)
        ties = [k for k in order[count:] if is_as_good(self.scores[order[0]], self.scores[k])]
        return [*order[:count], *ties]

    def rank(self, k: int) -> RankedCandidate:
        """A candidate with its relevant rows only."""
        return rank(self.track, self.candidates[k])

    def reach(self, port: str) -> float:
        """Fraction of the error that any disturbance at a port could explain."""
        axes = _axes(self.track, self.passage, port)
        key = hash(axes.tobytes())
        if key not in self.reaches:
            self.reaches[key] = explainable_fraction(self.track, axes)
        return self.reaches[key]

    def whole(self, k: int) -> RankedCandidate:
        """A candidate with all its rows."""
        candidate = self.candidates[k]
        return RankedCandidate(candidate, self.scores[k], candidate.names, len(candidate.owner))


def _lengths(problem: Problem) -> list[int]:
    """Window lengths in segments: powers of two up to the longest with enough windows."""
    longest = max(1, round(LONGEST_EVIDENCE_WINDOW / problem.layout.seconds))
    lengths = [1]
    while 2 * lengths[-1] <= longest:
        lengths.append(2 * lengths[-1])
    enough = [n for n in lengths if problem.layout.windows(n).shape[0] >= CROSS_VALIDATION_WINDOWS]
    if not enough:
        raise TruesimError(
            f"The logs are too short: {problem.layout.size} segments, {CROSS_VALIDATION_WINDOWS} are needed."
        )
    return enough


def _study(tracker: Tracker, prober: Prober, length: int, say: SuggestionCallback) -> _Study:
    say(f"Scoring windows of {length * tracker.problem.layout.seconds:.2g} s …")
    track = tracker.track(length)
    passage = prober.port_values(track)
    own, found = tracker.problem.parameters.size, candidates(track, passage)
    scores = [score(evidence(track, c.torques, c.measurements), own) for c in found]
    return _Study(track, passage, found, scores, score(evidence(track, None), own))


def _has_worthwhile(study: _Study) -> bool:
    return is_worthwhile(study.whole(study.best(1)[0]))


def _choose(studies: list[_Study]) -> _Study:
    """Study with the longest windows in which the linear model holds, among those that explain anything."""
    usable = [study for study in studies if _has_worthwhile(study)] or studies
    left = [study.scores[study.best(1)[0]].left for study in usable]
    return [study for study, x in zip(usable, left, strict=True) if x <= LINEAR_ERROR_FACTOR * min(left)][-1]


def _suggestion(at: _Study, found: RankedCandidate) -> Suggestion:
    candidate, track = found.candidate, at.track
    chosen = np.isin(candidate.owner, [candidate.names.index(name) for name in found.names])
    disturbance = _disturbance(track, candidate, chosen)
    size = float(np.sqrt(np.mean(disturbance**2, axis=(0, 1)).max()))
    return Suggestion(
        port=candidate.port,
        inputs=candidate.inputs,
        kind=candidate.kind,
        names=found.names,
        explained=found.score.explained,
        error=found.score.error,
        reach=None if candidate.torques is None else max(at.reach(candidate.port), found.score.explained),
        rule=rule(track, at.passage, found, size),
        curve=_curve(at, found, disturbance),
    )


def _disturbance(
    track: Track, candidate: Candidate, chosen: np.ndarray
) -> Float[np.ndarray, "segments intervals rows"]:
    """Disturbance that explains all windows best."""
    given = candidate.torques if candidate.torques is not None else candidate.measurements
    assert given is not None, "a candidate disturbs torques or measurements"
    own = track.problem.parameters.size
    found = evidence(track, candidate.torques, candidate.measurements)
    found = found.select(np.concatenate([np.arange(own), own + np.flatnonzero(chosen)]))
    return given[..., chosen] @ weights(found)[own:]


def _axes(track: Track, passage: PortValues, port: str) -> Float[np.ndarray, "segments disturbances axes"]:
    """Axes along which a port acts, in the middle of every segment."""
    segments, intervals = track.linear.q.shape[:2]
    nv, every = track.linear.v.shape[-1], track.disturbances
    if port in FORCE_PORTS:
        axes = np.zeros((segments, every, nv))
        J = passage.torque[port][:, intervals // 2].reshape(segments, nv, -1)
        U, s, _ = np.linalg.svd(J, full_matrices=False)
        U = U * (s > 1e-9 * (s.max() + 1e-300))[:, None]
        axes[:, :nv, : U.shape[-1]] = U[..., :nv]
    else:
        places = track.places(port)
        axes = np.zeros((segments, every, len(places)))
        axes[:, places, np.arange(len(places))] = 1.0
    return axes


def _curve(at: _Study, found: RankedCandidate, disturbance: np.ndarray) -> Curve | None:
    """Disturbance over the first input of its first row, if both are scalars."""
    candidate, track, simulator = found.candidate, at.track, at.track.problem.simulator
    port = ports.port(candidate.port)
    if not candidate.inputs or port.of not in ("dofs", "actuators") or candidate.torques is None:
        return None
    row = ports.names(simulator, port).index(found.names[0])
    x = at.passage.values[candidate.inputs[0]][..., row].ravel()
    J = at.passage.torque.get(candidate.port)
    place = row if J is None else int(np.abs(J[..., row]).sum(axis=(0, 1)).argmax())
    if candidate.port == FRICTION_BOUND_PORT:
        place = int(track.places(FRICTION_BOUND_PORT)[track.friction_dofs.index(row)])
    y = disturbance[..., place].ravel()
    kept = np.argsort(x)[:: max(1, x.size // SUGGESTION_CURVE_POINTS)]
    return Curve(found.names[0], candidate.inputs[0], x[kept], y[kept])


def _drop_repeats(found: list[Suggestion]) -> list[Suggestion]:
    """First suggestion for each port and set of inputs."""
    seen: dict[tuple[str, tuple[str, ...]], Suggestion] = {}
    for suggestion in found:
        seen.setdefault((suggestion.port, suggestion.inputs), suggestion)
    return list(seen.values())
