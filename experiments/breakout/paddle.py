"""The paddle: a model of its motion, the fit of that model to random play, and a filter of what the screen hides.

An action moves a hidden target at a constant rate within limits; the paddle follows the target with a lag and a delay,
and stops at the walls.
"""

import dataclasses

import numpy as np
from scipy.optimize import least_squares

from truesim.core.typing import Float, Int

DELAYS = (0, 1, 2)
BOUNDS = np.array([[0, 160], [0.1, 30], [0.05, 1.5], [-300, 80], [80, 500], [-1, 80], [80, 161]], float).T
"""Lower and upper bounds of the fitted numbers, in the order of the fields."""
PARTICLES = 96
OBSERVATION_NOISE = 0.7
"""Standard deviation of a seen place around the predicted one [px]."""
TARGET_GAIN, PLACE_GAIN = 0.05, 0.5
"""Parts of a difference between seen and predicted place by which target and place are corrected."""


@dataclasses.dataclass(frozen=True)
class PaddleModel:
    """Numbers of the paddle, in pixels and frames."""

    start: float = 99.0
    rate: float = 5.0
    """Motion of the hidden target in a frame."""
    gain: float = 0.5
    """Part of the distance to the target that the paddle covers in a frame."""
    lowest: float = 0.0
    """Limits of the target."""
    highest: float = 170.0
    left: float = 8.0
    """Limits of the paddle."""
    right: float = 144.0
    delay: int = 1
    """Frames by which the paddle lags behind the target."""

    def initial(self, count: int = 1) -> "PaddleState":
        """State at the beginning of a game."""
        target = np.full((self.delay + 1, count), self.start)
        return PaddleState(target, target[0].copy(), np.zeros(count, int))

    def step(self, state: "PaddleState", action: Int[np.ndarray, "..."]) -> "PaddleState":
        """State after a frame; an action is -1, 0 or 1."""
        target = np.clip(state.target[-1] + self.rate * action, self.lowest, self.highest)
        targets = np.concatenate([state.target[1:], target[None]])
        place = state.place + self.gain * (targets[0] - state.place)
        return PaddleState(targets, place, np.broadcast_to(action, place.shape))

    def seen(self, state: "PaddleState") -> Float[np.ndarray, " n"]:
        """Places on the screen."""
        return np.clip(state.place, self.left, self.right)


@dataclasses.dataclass(frozen=True)
class PaddleState:
    """States of several paddles: hypotheses, or plans."""

    target: Float[np.ndarray, "delays n"]
    """Hidden targets of the last frames, the present one last."""
    place: Float[np.ndarray, " n"]
    action: Int[np.ndarray, " n"]
    """Last action that the game has executed."""

    def take(self, which: Int[np.ndarray, " m"]) -> "PaddleState":
        """Some of the states."""
        return PaddleState(self.target[:, which], self.place[which], self.action[which])


def constant_velocity(velocity: float, model: PaddleModel) -> PaddleModel:
    """A paddle that moves at a constant velocity at once, as the model of a player without lag and delay."""
    left, right = model.left, model.right
    return dataclasses.replace(model, rate=velocity, gain=1.0, delay=0, lowest=left, highest=right)


Segment = tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]
"""Seen places (NaN where hidden) and actions from the beginning of a game."""


def predicted(model: PaddleModel, actions: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Places before each action, from the beginning of a game."""
    state, places = model.initial(), []
    for action in actions:
        places.append(model.seen(state)[0])
        state = model.step(state, np.array([action]))
    return np.array(places)


def fit_paddle(segments: list[Segment]) -> PaddleModel:
    """Model that explains random play best, among several delays, by least squares over whole games."""
    names = ("start", "rate", "gain", "lowest", "highest", "left", "right")
    places = np.concatenate([x for x, _ in segments])
    first = PaddleModel(start=float(segments[0][0][0]), left=np.nanmin(places), right=np.nanmax(places))
    fits = []
    for delay in DELAYS:

        def residuals(values: np.ndarray, delay: int = delay) -> np.ndarray:
            model = dataclasses.replace(first, delay=delay, **dict(zip(names, values.tolist(), strict=True)))
            return np.concatenate([np.nan_to_num(predicted(model, a) - x) for x, a in segments])

        start = [getattr(first, name) for name in names]
        found = least_squares(residuals, start, bounds=BOUNDS, loss="soft_l1", x_scale=[10, 1, 0.1, 10, 10, 3, 3])
        values = dict(zip(names, found.x.tolist(), strict=True))
        fits.append((found.cost, dataclasses.replace(first, delay=delay, **values)))
    return min(fits, key=lambda fit: fit[0])[1]


def fit_constant_velocity(segments: list[Segment], model: PaddleModel) -> PaddleModel:
    """Best constant velocity: the median motion of a frame in which an action had been held for some frames."""
    moves = []
    for places, actions in segments:
        same = np.all([actions[4 - k : -k] == actions[4:] for k in (1, 2, 3)], axis=0)
        held = np.flatnonzero((actions[4:] != 0) & same) + 4
        held = held[held + 1 < len(places)]
        inside = (places[held] > model.left + 6) & (places[held] < model.right - 6)
        moves += list(((places[held + 1] - places[held]) * actions[held])[inside])
    return constant_velocity(float(np.nanmedian(moves)), model)


def open_loop_error(model: PaddleModel, segments: list[Segment], ahead: int = 60) -> float:
    """Root mean square of the error of places some frames ahead, from known targets, over all segments [px]."""
    errors = []
    for places, actions in segments:
        errors.append((predicted(model, actions) - places)[ahead:])
    return float(np.sqrt(np.nanmean(np.concatenate(errors) ** 2)))


class PaddleFilter:
    """Belief about the hidden target: particles, each with its own history of sticky actions."""

    def __init__(self, model: PaddleModel, sticky: float, rng: np.random.Generator):
        """Start at the beginning of a game.

        Args:
            model: Identified numbers.
            sticky: Probability with which the game repeats the action of the frame before.
            rng: Random numbers.
        """
        self.model, self.sticky, self.random = model, sticky, rng
        self.state = model.initial(PARTICLES if sticky else 1)

    def advance(self, action: int, frames: int, state: PaddleState | None = None) -> PaddleState:
        """States after some frames of an action, which each frame may ignore."""
        state = self.state if state is None else state
        for _ in range(frames):
            stuck = self.random.random(len(state.place)) < self.sticky
            state = self.model.step(state, np.where(stuck, state.action, action))
        return state

    def observe(self, place: float | None) -> None:
        """Weigh, draw and correct the particles by a seen place."""
        if place is None:
            return
        seen = self.model.seen(self.state)
        difference = place - seen
        if self.sticky:
            weights = np.exp(-0.5 * np.minimum((difference / OBSERVATION_NOISE) ** 2, 200.0)) + 1e-12
            chosen = self._systematic(weights / weights.sum())
            self.state, difference = self.state.take(chosen), difference[chosen]
        free = (place > self.model.left) & (place < self.model.right)
        correction = difference if free else np.zeros_like(difference)
        target = self.state.target + TARGET_GAIN * correction
        self.state = PaddleState(target, self.state.place + PLACE_GAIN * correction, self.state.action)

    def _systematic(self, weights: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Indices drawn with the least spread (systematic resampling)."""
        at = (np.arange(len(weights)) + self.random.random()) / len(weights)
        return np.minimum(np.searchsorted(np.cumsum(weights), at), len(weights) - 1)
