"""What random play teaches: the paddle's motion, the ball's bounces at walls and bricks, and those at the paddle."""

import numpy as np

from experiments.breakout.game import FIRE, LEFT, RIGHT, STILL, Game, Setting
from experiments.breakout.paddle import Segment, fit_constant_velocity, fit_paddle
from experiments.breakout.physics import BallModel
from experiments.breakout.planning import PADDLE_WIDTH
from experiments.breakout.players import Learned
from experiments.breakout.screen import BALL_HEIGHT, LEFT_WALL, PADDLE_TOP, RIGHT_WALL, Scene, read_scene

FRAMES = 1000
DIRECTIONS = {STILL: 0, FIRE: 0, RIGHT: 1, LEFT: -1}
WINDOW = 7
"""Frames before and after a bounce from which its lines are taken."""
LONGEST_HOLD = 24
"""Most frames for which random play holds an action."""


def random_play(seed: int, frames: int = FRAMES) -> list[list[tuple[Scene, int]]]:
    """Pictures and actions of random play, every frame, one list for each game."""
    rng, setting = np.random.default_rng(seed), Setting("random", 1, 0.0)
    games: list[list[tuple[Scene, int]]] = []
    game, action, left = None, STILL, 0
    for frame in range(frames):
        if game is None or game.over:
            game = Game(setting, 10_000 * seed + frame)
            games.append([])
        scene = read_scene(game.frame)
        if not left:
            action, left = int(rng.choice([STILL, RIGHT, LEFT])), int(rng.integers(1, LONGEST_HOLD + 1))
        left -= 1
        served = FIRE if scene.ball is None and rng.random() < 0.2 else action
        games[-1].append((scene, served))
        game.act(served)
    return games


def segments(games: list[list[tuple[Scene, int]]]) -> list[Segment]:
    """Places of the paddle, and directions of actions."""
    return [
        (
            np.array([np.nan if scene.paddle is None else scene.paddle for scene, _ in game]),
            np.array([DIRECTIONS[action] for _, action in game]),
        )
        for game in games
    ]


def learn(games: list[list[tuple[Scene, int]]]) -> Learned:
    """Models of paddle and ball."""
    parts = segments(games)
    paddle = fit_paddle(parts)
    return Learned(paddle, fit_constant_velocity(parts, paddle), fit_ball(games))


def fit_ball(games: list[list[tuple[Scene, int]]]) -> BallModel:
    """Walls and restitution from the lines on which the ball comes and goes, and its returns from the paddle."""
    turns, ratios, hits = [], [], []
    for game in games:
        balls = [scene.ball for scene, _ in game]
        for k in range(WINDOW, len(balls) - WINDOW):
            window = [*balls[k - WINDOW : k - 2], *balls[k + 3 : k + WINDOW + 1]]
            if any(ball is None for ball in window):
                continue
            come, go = np.array(window, float).reshape(2, -1, 2)
            (vx, vy), (wx, wy) = ((line[-1] - line[0]) / (len(line) - 1) for line in (come, go))
            columns = np.concatenate([come[:, 0], go[:, 0]])
            whole = (columns > LEFT_WALL) & (columns < RIGHT_WALL - 1)
            if vx * wx < 0 < vy * wy and whole.all():  # a wall: the column in which both lines meet
                time = (go[0, 0] - come[-1, 0] - 6 * wx) / (vx - wx)
                turns.append(come[-1, 0] + time * vx)
            if vy < 0 < wy:
                ratios.append(-wy / vy)
            hit = _paddle_hit(game, k)
            if hit is not None and vy > 0.5 and wy < -0.5:
                hits.append((hit, wx))
    x = np.array(turns)
    middle = (LEFT_WALL + RIGHT_WALL) / 2
    left, right = (
        float(np.median(x[side])) if side.any() else edge
        for side, edge in ((x < middle, float(LEFT_WALL)), (x > middle, float(RIGHT_WALL)))
    )
    return BallModel(left, right, float(np.median(ratios)) if ratios else 1.0, _centre(hits))


def _paddle_hit(game: list[tuple[Scene, int]], k: int) -> float | None:
    """Place on the paddle at which the ball turns in a frame; None if it does not."""
    paddle, rows = game[k][0].paddle, [scene.ball and scene.ball[1] for scene, _ in game[k - 1 : k + 2]]
    ball = game[k][0].ball
    if paddle is None or ball is None or any(row is None for row in rows):
        return None
    before, now, after = (float(row or 0) for row in rows)
    return ball[0] - paddle if before < now > after and now > PADDLE_TOP - 2 * BALL_HEIGHT else None


def _centre(hits: list[tuple[float, float]]) -> float:
    """Place on the paddle that separates returns to the left from those to the right, as far as hits tell."""
    places = np.arange(1.5, PADDLE_WIDTH - 2)
    if not hits:
        return float((PADDLE_WIDTH - 2) / 2)
    at, motion = np.array(hits).T
    wrong = [np.sum((at > c) != (motion > 0)) for c in places]
    best = places[np.array(wrong) == min(wrong)]
    return float(best[np.argmin(np.abs(best - (PADDLE_WIDTH - 2) / 2))])
