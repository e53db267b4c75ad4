"""Where is a network needed? From a robot, its logs and a fit to ports, inputs and blueprints."""

import dataclasses
from collections.abc import Callable

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.identify.problem import Problem
from truesim.identify.suggest.candidates import Candidate, candidates
from truesim.identify.suggest.evidence import evidence, reach
from truesim.identify.suggest.plan import rule
from truesim.identify.suggest.probe import THROUGH, Passage, Prober
from truesim.identify.suggest.rank import Ranked, as_good, needed, ordered, ranked
from truesim.identify.suggest.score import Score, score, weights
from truesim.identify.suggest.thin import thinned
from truesim.identify.suggest.track import BOUND, Track, Tracker
from truesim.simulate import Rule
from truesim.simulate.augment import ports

WINDOW = 0.25
"""Longest windows [s]."""
FEWEST = 4
"""Windows that cross-validation needs."""
WHOLE = 1.3
"""Windows are as long as the linear model holds: until what is left is so much above what shorter ones leave."""
SHOWN = 5
"""Candidates whose rows are told apart."""
POINTS = 400
"""Of a picture."""

Watch = Callable[[str], None]
"""Called with what is being done."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """A disturbance as a function of its first input, along the logs."""

    name: str
    """Joint, body, actuator or pair of geoms."""
    input: str
    x: Float[np.ndarray, "points"]
    """[unit of the input]"""
    y: Float[np.ndarray, "points"]
    """[N m or N]"""


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """A port, and what a network there could do."""

    port: str
    inputs: tuple[str, ...]
    kind: str
    """What it would be, in words."""
    names: tuple[str, ...]
    """Joints, bodies, actuators or pairs of geoms that it would act on."""
    explained: float
    """Part of the error beyond the sensors' noise that a function of the inputs explains on windows not fitted to."""
    error: float
    """Standard error of that part."""
    reach: float | None
    """Part of the error that any disturbance there could explain; None for readings."""
    rule: Rule
    """A network to train."""
    curve: Curve | None = None


@dataclasses.dataclass(frozen=True)
class Suggestions:
    """What the logs say of every port, the best first."""

    needed: bool
    """Whether a network is worth having at all."""
    found: tuple[Suggestion, ...]
    remaining: float
    """Root mean square of the residuals, in units of the sensors' noise."""
    window: float
    """Length of the windows in which they were explained [s]."""

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if not self.needed:
            return (
                f"None needed: residuals are {self.remaining:.3g} times the noise, and no port explains much of them."
            )
        best = self.found[0]
        where = ", ".join(best.names)
        return f"{best.port} of {where}: {best.kind} explains {100 * best.explained:.0f} % of the error beyond noise."


def suggest(
    problem: Problem, theta: Float[np.ndarray, "size"] | None = None, watch: Watch | None = None
) -> Suggestions:
    """For each port, how much of the remaining error a network there would explain.

    Args:
        problem: A robot and its logs; its free parameters may readjust under every candidate.
        theta: Coordinates of the parameters; the model's own values unless given.
        watch: Called with what is being done.
    """
    say = watch or (lambda text: None)
    theta = problem.parameters.start if theta is None else theta
    problem = thinned(problem)
    say("Compiling the simulation and smoothing the logs …")
    tracker, prober = Tracker(problem, theta), Prober(problem, theta)
    looks = [_look(tracker, prober, length, say) for length in _lengths(problem)]
    at = _chosen(looks)
    say("Telling joints, bodies and contacts apart …")
    order = ordered([at.ranked(k) for k in at.best(SHOWN)])
    rest = [k for k in at.best(len(at.candidates)) if all(at.candidates[k] is not r.candidate for r in order)]
    results = [_suggestion(at, r) for r in order] + [_suggestion(at, at.whole(k)) for k in rest]
    return Suggestions(
        needed=any(_worth(look) for look in looks) and needed(order[0]),
        found=tuple(_without_repeats(results)),
        remaining=at.base.left,
        window=at.track.windows.shape[1] * problem.layout.seconds,
    )


@dataclasses.dataclass(frozen=True)
class _Look:
    """All candidates at one length of windows."""

    track: Track
    passage: Passage
    candidates: list[Candidate]
    scores: list[Score]
    base: Score
    reaches: dict[int, float] = dataclasses.field(default_factory=dict)
    """What disturbances along some axes could explain, once known."""

    def best(self, count: int) -> list[int]:
        """The candidates that explain most, and all simpler ones that explain as much."""
        order = sorted(range(len(self.scores)), key=lambda k: -self.scores[k].explained)
        ties = [k for k in order[count:] if as_good(self.scores[order[0]], self.scores[k])]
        return [*order[:count], *ties]

    def ranked(self, k: int) -> Ranked:
        """A candidate with only the rows that matter."""
        return ranked(self.track, self.candidates[k])

    def reach(self, port: str) -> float:
        """The part of the error that any disturbance at a port could explain."""
        axes = _axes(self.track, self.passage, port)
        key = hash(axes.tobytes())
        if key not in self.reaches:
            self.reaches[key] = reach(self.track, axes)
        return self.reaches[key]

    def whole(self, k: int) -> Ranked:
        """A candidate with all its rows."""
        candidate = self.candidates[k]
        return Ranked(candidate, self.scores[k], candidate.names, len(candidate.owner))


def _lengths(problem: Problem) -> list[int]:
    """Lengths of windows to look at, in stretches: doubling up to the longest that leaves enough windows."""
    longest = max(1, round(WINDOW / problem.layout.seconds))
    lengths = [1]
    while 2 * lengths[-1] <= longest:
        lengths.append(2 * lengths[-1])
    enough = [n for n in lengths if problem.layout.windows(n).shape[0] >= FEWEST]
    if not enough:
        raise TruesimError(f"The logs are too short: {problem.layout.size} stretches, {FEWEST} are needed.")
    return enough


def _look(tracker: Tracker, prober: Prober, length: int, say: Watch) -> _Look:
    say(f"Explaining windows of {length * tracker.problem.layout.seconds:.2g} s …")
    track = tracker.track(length)
    passage = prober.passages(track)
    own, found = tracker.problem.parameters.size, candidates(track, passage)
    scores = [score(evidence(track, c.torques, c.readings), own) for c in found]
    return _Look(track, passage, found, scores, score(evidence(track, None), own))


def _worth(look: _Look) -> bool:
    return needed(look.whole(look.best(1)[0]))


def _chosen(looks: list[_Look]) -> _Look:
    """The longest windows in which the linear model holds, of those in which anything is explained at all."""
    usable = [look for look in looks if _worth(look)] or looks
    left = [look.scores[look.best(1)[0]].left for look in usable]
    return [look for look, x in zip(usable, left, strict=True) if x <= WHOLE * min(left)][-1]


def _suggestion(at: _Look, found: Ranked) -> Suggestion:
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
) -> Float[np.ndarray, "stretches intervals rows"]:
    """The disturbance that explains all windows best."""
    given = candidate.torques if candidate.torques is not None else candidate.readings
    assert given is not None, "a candidate disturbs torques or readings"
    own = track.problem.parameters.size
    found = evidence(track, candidate.torques, candidate.readings)
    found = found.of(np.concatenate([np.arange(own), own + np.flatnonzero(chosen)]))
    return given[..., chosen] @ weights(found)[own:]


def _axes(track: Track, passage: Passage, port: str) -> Float[np.ndarray, "stretches disturbances axes"]:
    """Axes of torque along which a port acts, in the middle of every stretch."""
    stretches, intervals = track.linear.q.shape[:2]
    nv, every = track.linear.v.shape[-1], track.disturbances
    if port in THROUGH:
        axes = np.zeros((stretches, every, nv))
        J = passage.torque[port][:, intervals // 2].reshape(stretches, nv, -1)
        U, s, _ = np.linalg.svd(J, full_matrices=False)
        U = U * (s > 1e-9 * (s.max() + 1e-300))[:, None]
        axes[:, :nv, : U.shape[-1]] = U[..., :nv]
    else:
        places = track.places(port)
        axes = np.zeros((stretches, every, len(places)))
        axes[:, places, np.arange(len(places))] = 1.0
    return axes


def _curve(at: _Look, found: Ranked, disturbance: np.ndarray) -> Curve | None:
    """The disturbance over the first input of its first row, if it is one number over one number."""
    candidate, track, simulator = found.candidate, at.track, at.track.problem.simulator
    port = ports.port(candidate.port)
    if not candidate.inputs or port.of not in ("dofs", "actuators") or candidate.torques is None:
        return None
    row = ports.names(simulator, port).index(found.names[0])
    x = at.passage.values[candidate.inputs[0]][..., row].ravel()
    J = at.passage.torque.get(candidate.port)
    place = row if J is None else int(np.abs(J[..., row]).sum(axis=(0, 1)).argmax())
    if candidate.port == BOUND:
        place = int(track.places(BOUND)[track.rough.index(row)])
    y = disturbance[..., place].ravel()
    kept = np.argsort(x)[:: max(1, x.size // POINTS)]
    return Curve(found.names[0], candidate.inputs[0], x[kept], y[kept])


def _without_repeats(found: list[Suggestion]) -> list[Suggestion]:
    """Of candidates at one port with the same inputs, only the first."""
    seen: dict[tuple[str, tuple[str, ...]], Suggestion] = {}
    for suggestion in found:
        seen.setdefault((suggestion.port, suggestion.inputs), suggestion)
    return list(seen.values())
