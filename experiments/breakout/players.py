"""Players: random, following the ball, plain interception, and planning with identified physics."""

import abc
from typing import NamedTuple

import numpy as np

from experiments.breakout.aiming import side_values
from experiments.breakout.game import FIRE, LEFT, RIGHT, STILL, Game, Setting
from experiments.breakout.paddle import PaddleFilter, PaddleModel
from experiments.breakout.physics import BallModel, Flights
from experiments.breakout.planning import PADDLE_WIDTH, Hit, best_action, contact_frames
from experiments.breakout.screen import RIGHT_WALL, Scene, read_scene
from experiments.breakout.tracking import BallTrack
from truesim.core.typing import Float

BUTTONS = {0: STILL, 1: RIGHT, -1: LEFT}
DEADBAND = 4.0
"""Distance at which simple players stop [px]."""
AIM_WEIGHT, MOST_WEIGHT = 0.5, 8.0
"""Cost of a distance from the wanted place, which grows with bounces that bring nothing, and its largest value."""
PATIENCE = 6
"""Bounces without a brick after which the side is sometimes chosen at random."""
CLOSE, COARSE = 32, 4
"""Frames to the landing below which every frame is planned; before, one decision holds for some frames."""
HORIZON = 64
"""Frames to the landing from which on actions are planned."""


class Learned(NamedTuple):
    """What random play has taught."""

    paddle: PaddleModel
    constant: PaddleModel
    """The best constant velocity."""
    ball: BallModel


class AbstractPlayer(abc.ABC):
    """From pictures to actions."""

    @abc.abstractmethod
    def __call__(self, scene: Scene, frames: int) -> int:
        """Action for a picture that is seen some frames after the last one."""


class RandomPlayer(AbstractPlayer):
    """Uniformly random actions."""

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)

    def __call__(self, scene: Scene, frames: int) -> int:
        """A random action."""
        return int(self._rng.integers(4))


class SimplePlayer(AbstractPlayer):
    """Moves towards the ball's column, or towards where straight lines and walls let it land."""

    def __init__(self, flights: Flights | None = None):
        """Follow the ball, or intercept it if there are flights."""
        self._flights = flights
        self._last: np.ndarray | None = None

    def __call__(self, scene: Scene, frames: int) -> int:
        """Step towards the ball or its landing."""
        if scene.ball is None or scene.paddle is None:
            self._last = None
            return FIRE
        ball, last = np.array(scene.ball), self._last
        self._last = ball
        goal = ball[0]
        if self._flights is not None and last is not None and ball[1] > last[1]:
            v = (ball - last) / frames
            path, _, _ = self._flights(ball[None], v[None], None)
            at = contact_frames(path[0])
            goal = path[0, at[0], 0] if len(at) else goal
        distance = goal - scene.paddle - PADDLE_WIDTH / 2
        return BUTTONS[0 if abs(distance) < DEADBAND else int(np.sign(distance))]


class PlanningPlayer(AbstractPlayer):
    """Tracks ball and paddle, chooses where to hit, and plans actions that do."""

    def __init__(self, paddle: PaddleModel, ball: BallModel, flights: Flights, setting: Setting, seed: int):
        """Start a game.

        Args:
            paddle: Model of the paddle.
            ball: Model of the bounces.
            flights: Simulated flights.
            setting: The game's frame skip and sticky actions.
            seed: Seed of hypotheses and ties.
        """
        self._rng = np.random.default_rng(seed)
        self._filter = PaddleFilter(paddle, setting.sticky, self._rng)
        self._track, self._flights, self._ball, self._setting = BallTrack(flights), flights, ball, setting
        self._action, self._wanted, self._descending = 0, PADDLE_WIDTH / 2, False
        self._width, self._left, self._fruitless, self._waited = PADDLE_WIDTH, 0, 0, 0

    @property
    def flight(self) -> Float[np.ndarray, "frames 2"] | None:
        """Predicted places of the ball; None while it is out of sight."""
        return None if self._track.ahead is None else self._track.ahead[0]

    def __call__(self, scene: Scene, frames: int) -> int:
        """Action of the best plan."""
        if frames:
            self._filter.state = self._filter.advance(self._action, frames)
        self._filter.observe(scene.paddle)
        self._track.update(scene, frames)
        if scene.paddle is not None and scene.paddle + scene.width < RIGHT_WALL:
            self._width = min(scene.width, PADDLE_WIDTH)
        track = self._track
        if track.ahead is None:
            self._action = 0
            return FIRE if track.q is None else STILL
        path, velocity = track.ahead
        at = contact_frames(path)
        if not len(at) or at[0] > HORIZON:
            self._action = self._towards(path[at[0] if len(at) else -1, 0])
            return BUTTONS[self._action]
        descending = bool(velocity[0, 1] > 0)
        if descending and not self._descending:
            self._wanted = self._aim(path[at[0]], velocity[at[0]], scene)
        self._descending = descending
        weight = min(AIM_WEIGHT * (1 + self._fruitless), MOST_WEIGHT)
        hit = Hit(self._wanted, self._width, weight)
        skip = self._setting.skip if at[0] < CLOSE else max(self._setting.skip, COARSE)
        self._waited += frames
        if skip > self._setting.skip and self._waited < skip:
            return BUTTONS[self._action]
        self._waited = 0
        self._action, _ = best_action(self._filter, path, hit, skip)
        return BUTTONS[self._action]

    def _towards(self, column: float) -> int:
        """Action while the landing is not in sight yet."""
        place = float(np.median(self._filter.state.target[-1]))
        distance = column - place - PADDLE_WIDTH / 2
        return 0 if abs(distance) < 30 else int(np.sign(distance))

    def _aim(self, landing: Float[np.ndarray, "2"], velocity: Float[np.ndarray, "2"], scene: Scene) -> float:
        """Place on the paddle from which the ball brings most."""
        left = int(scene.bricks.sum())
        self._fruitless = self._fruitless + 1 if left == self._left else 0
        self._left = left
        value = side_values(self._flights, landing, np.abs(velocity), scene.bricks) + 0.5 * self._rng.random(2)
        if self._fruitless > PATIENCE and self._rng.random() < 0.5:  # predictions do not hold: leave the loop
            value = self._rng.random(2)
        side = -1 if value[0] > value[1] else 1
        return (self._ball.centre + side * PADDLE_WIDTH / 4) * self._width / PADDLE_WIDTH


def play(player: AbstractPlayer, setting: Setting, seed: int, most_frames: int | None = None) -> Game:
    """Play one game."""
    game, before = Game(setting, seed), 0
    while not game.over and (most_frames is None or game.frames < most_frames):
        action = player(read_scene(game.frame), game.frames - before)
        before = game.frames
        game.act(action)
    return game
