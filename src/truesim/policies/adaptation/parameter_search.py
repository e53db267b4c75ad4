"""Search of a few parameters by returns of real episodes.

The parameters may be a latent that was trained with the policy, the simulator parameters that a universal policy is
told (strategy optimization), a projection of them, or offsets of weights: whatever a policy takes as a vector.

A single return is luck as much as merit. Hence a candidate becomes the incumbent only by returns that did not select
it: it is played again, and the mean of those episodes must exceed the incumbent's mean, which was measured in the
same way.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Float
from truesim.policies.adaptation.searches import make_search

BOX_TOLERANCE = 1e-9
"""Part of the box by which a start may lie outside of it."""


@dataclasses.dataclass(frozen=True)
class AdaptOptions:
    """Choices of an adaptation."""

    method: str = "bayesian"
    """`awr`, `cma-es`, `bayesian`, `hill-climbing`, or `random`, the control."""
    episodes: int = 50
    """Largest number of real episodes: of the start, of candidates and of those that are played again."""
    repeats: int = 2
    """Episodes by which a candidate is confirmed; more for noisier returns, 1 for repeatable ones."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise TruesimError(f"A candidate is played again at least once; repeats is {self.repeats}.")
        if self.episodes < self.repeats + 1:
            raise TruesimError(
                f"{self.episodes} episodes are too few: the start takes {self.repeats}, a candidate at least one."
            )


class PlayedEpisode(NamedTuple):
    """One real episode of an adaptation."""

    parameters: Float[np.ndarray, " size"]
    value: float
    """Return."""
    role: str
    """`start`, `candidate` or `confirmation`."""


class Adapted(NamedTuple):
    """Result of an adaptation."""

    parameters: Float[np.ndarray, " size"]
    """The incumbent, confirmed by episodes that did not select it."""
    value: float
    """Mean return of those episodes."""
    started: float
    """Mean return of the start."""
    played: tuple[PlayedEpisode, ...]
    """All episodes, in order."""
    incumbents: Float[np.ndarray, "episodes size"]
    """The incumbent after each episode."""


class _Bench:
    """Counts real episodes, and remembers the incumbent."""

    def __init__(self, play: Callable[[np.ndarray], float], options: AdaptOptions, start: np.ndarray):
        self.play, self.options = play, options
        self.played: list[PlayedEpisode] = []
        self.incumbents: list[np.ndarray] = []
        self.incumbent, self.value = start, -np.inf

    @property
    def left(self) -> int:
        return self.options.episodes - len(self.played)

    def run(self, parameters: np.ndarray, role: str) -> float:
        value = _return_of(self.play(parameters))
        self.played.append(PlayedEpisode(parameters, value, role))
        self.incumbents.append(self.incumbent)
        return value

    def confirm(self, parameters: np.ndarray, role: str = "confirmation") -> None:
        """Play parameters again; they become the incumbent if their mean exceeds its mean."""
        values: list[float] = []
        for _ in range(self.options.repeats):
            if self.left == 0:
                return
            values.append(self.run(parameters, role))
            if values[0] <= self.value:
                return
        if np.mean(values) > self.value:
            self.incumbent, self.value = parameters, float(np.mean(values))
            self.incumbents[-1] = parameters


def _return_of(played: Any) -> float:
    """Return of an episode as a number."""
    try:
        value = float(played)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise TruesimError(f"An episode returned {played!r}; a search needs its return, a finite number.")
    return value


def search_parameters(
    play: Callable[[Float[np.ndarray, " size"]], float],
    start: Any,
    low: Any,
    high: Any,
    options: AdaptOptions | None = None,
) -> Adapted:
    """Search parameters by real episodes.

    Args:
        play: Plays one real episode with the given parameters, and returns its return.
        start: Parameters to start from, such as the latent of the nominal robot.
        low: Smallest value of each parameter.
        high: Largest value.
        options: Method and number of episodes.
    """
    options = options or AdaptOptions()
    start, low, high = (np.atleast_1d(np.asarray(x, float)) for x in (start, low, high))
    if not start.shape == low.shape == high.shape:
        raise TruesimError(
            f"Start, low and high have shapes {start.shape}, {low.shape} and {high.shape}; each needs one number for "
            "every parameter."
        )
    width = high - low
    if not np.all(width > 0):
        raise TruesimError(f"The range of parameter {int(np.argmin(width))} is empty.")
    unit = (start - low) / width
    outside = np.flatnonzero((unit < -BOX_TOLERANCE) | (unit > 1 + BOX_TOLERANCE))
    if outside.size:
        k = int(outside[0])
        raise TruesimError(f"The start of parameter {k} is {start[k]:g}, outside of [{low[k]:g}, {high[k]:g}].")
    search, bench = make_search(options.method, np.clip(unit, 0.0, 1.0), options.seed), _Bench(play, options, start)
    bench.confirm(start, "start")
    started = bench.value
    search.tell(unit, started)
    while bench.left >= options.repeats:  # fewer could not confirm anything
        candidate = search.ask()
        if bench.left == options.repeats:  # the last episodes confirm what the search would end with
            bench.confirm(low + width * search.suggest())
            continue
        value = bench.run(low + width * candidate, "candidate")
        search.tell(candidate, value)
        if value > bench.value and bench.left >= options.repeats:
            bench.confirm(low + width * candidate)
    return Adapted(bench.incumbent, bench.value, started, tuple(bench.played), np.array(bench.incumbents))
