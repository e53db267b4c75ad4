"""The ball's place and velocity from what a player sees, predicted by physics and corrected by pixels."""

import dataclasses

import numpy as np

from experiments.breakout.physics import Flights
from experiments.breakout.screen import BRICK_BOTTOM, CEILING, PADDLE_BOTTOM, Scene
from truesim.core.typing import Float

AGREES = 2.6
"""Difference of predicted and seen place up to which the prediction holds [px]."""
STRAIGHT = 8
"""Frames of straight flight after which the velocity is that of the line through the seen places."""
SPEED, MARGIN = 3.4, 8
"""Fastest flight [px a frame], and a distance below the bricks [px] from which the ball comes from the paddle."""
LOST = 90
"""Frames without a seen ball after which there is none."""


@dataclasses.dataclass
class BallTrack:
    """Belief about the ball."""

    flights: Flights
    q: Float[np.ndarray, "2"] | None = None
    v: Float[np.ndarray, "2"] | None = None
    ahead: tuple[np.ndarray, np.ndarray] | None = None
    """Places and velocities of the frames that follow."""
    unseen: int = 0
    breaks: bool = True
    """False after a brick was hit: the ball passes all others until it meets the ceiling or the paddle."""
    _straight: list[tuple[int, np.ndarray]] = dataclasses.field(default_factory=list)
    _frame: int = 0

    def update(self, scene: Scene, frames: int) -> None:
        """Take over a picture that was seen some frames after the last one."""
        before = self.q, self.v
        self._update(scene, frames)
        if (
            self.q is None
            or self.v is None
            or self.q[1] < CEILING + frames * SPEED
            or self.q[1] > BRICK_BOTTOM + frames * SPEED + MARGIN
        ):
            self.breaks = True
        elif before[1] is not None and before[1][1] * self.v[1] < 0:
            self.breaks = False

        self.ahead = None
        if self.q is not None and self.v is not None:
            bricks = scene.bricks if self.breaks else None
            path, velocity, _ = self.flights(self.q[None], self.v[None], bricks)
            self.ahead = path[0], velocity[0]

    def _update(self, scene: Scene, frames: int) -> None:
        self._frame += frames
        seen = None if scene.ball is None else np.array(scene.ball)
        predicted = None if self.ahead is None or not frames else tuple(x[frames - 1] for x in self.ahead)
        if seen is None:
            self.unseen += frames
            if predicted is not None:
                self._mind_turn(predicted[1])
                self.q, self.v = predicted
            if self.unseen > LOST or (self.q is not None and self.q[1] > PADDLE_BOTTOM):
                self.q = self.v = None
                self._straight = []
            return
        self.unseen = 0
        if predicted is not None and np.abs(predicted[0] - seen).max() <= AGREES:
            self._mind_turn(predicted[1])
            self.q, self.v = predicted[0] + 0.5 * (seen - predicted[0]), predicted[1]
        else:
            last = self._straight[-1:]
            self._straight, self.q = last, seen
            self.v = None if not last else (seen - last[0][1]) / (self._frame - last[0][0])
        self._straight.append((self._frame, seen))
        self._refine()

    def _mind_turn(self, v: np.ndarray) -> None:
        """Begin a new straight part where the velocity turns."""
        if self.v is not None and np.any(np.sign(v) != np.sign(self.v)):
            self._straight = []

    def _refine(self) -> None:
        """Velocity of the line through the straight part of the flight."""
        (begin, first), (end, last) = self._straight[0], self._straight[-1]
        if end - begin >= STRAIGHT:
            self.v = (last - first) / (end - begin)
