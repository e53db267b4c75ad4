"""Objects of Breakout from pixels, by colour: paddle, ball and bricks, in pixels of the 210 x 160 screen."""

from typing import NamedTuple

import numpy as np

from truesim.core.typing import Bool

RED = (200, 72)
"""Red and green of the ball below the bricks, and of the paddle."""
LEFT_WALL, RIGHT_WALL, CEILING = 8, 152, 32
"""First and last column between the walls, and the first row below the ceiling."""
BRICK_TOP, BRICK_ROWS, BRICK_HEIGHT, BRICK_WIDTH, BRICK_COLUMNS = 57, 6, 6, 8, 18
BRICK_BOTTOM = BRICK_TOP + BRICK_ROWS * BRICK_HEIGHT
PADDLE_TOP, PADDLE_BOTTOM = 189, 193
BALL_HEIGHT = 4


class Scene(NamedTuple):
    """What one picture shows."""

    paddle: float | None
    """Leftmost column of the paddle; None if it is hidden."""
    width: int
    """Width of the paddle."""
    ball: tuple[float, float] | None
    """Leftmost column and uppermost row of the ball; None if it is hidden."""
    bricks: Bool[np.ndarray, "rows columns"]


def read_scene(frame: np.ndarray) -> Scene:
    """Objects of a picture."""
    field = frame[:PADDLE_BOTTOM, LEFT_WALL:RIGHT_WALL]
    lit = field[CEILING:BRICK_BOTTOM].any(axis=2)
    red = (field[BRICK_BOTTOM:, :, 0] == RED[0]) & (field[BRICK_BOTTOM:, :, 1] == RED[1])
    paddle, width = _paddle(red[PADDLE_TOP - BRICK_BOTTOM :])
    cells = lit[BRICK_TOP - CEILING :].reshape(BRICK_ROWS, BRICK_HEIGHT, BRICK_COLUMNS, BRICK_WIDTH)
    bricks = cells.sum((1, 3)) > BRICK_HEIGHT * BRICK_WIDTH // 2
    cells[:] &= ~bricks[:, None, :, None]
    moving = np.concatenate([lit, red[: PADDLE_TOP - BRICK_BOTTOM]])
    return Scene(paddle, width, _ball(moving), bricks)


def _paddle(red: np.ndarray) -> tuple[float | None, int]:
    """Left edge and width: the longest run of red in the paddle's rows."""
    row = red[1] & red[-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(int)))
    if not len(edges):
        return None, 0
    begins, ends = edges[::2], edges[1::2]
    k = int(np.argmax(ends - begins))
    return float(begins[k] + LEFT_WALL), int(ends[k] - begins[k])


def _ball(moving: np.ndarray) -> tuple[float, float] | None:
    """Corner of the ball: what is lit between ceiling and paddle and is no brick.

    Above the bricks the ball has the colour of the walls, between them that of their row.
    """
    rows = np.flatnonzero(moving.any(1))
    if not len(rows) or rows[-1] - rows[0] >= 2 * BALL_HEIGHT:
        return None
    columns = np.flatnonzero(moving[rows[0] : rows[-1] + 1].any(0))
    hidden_above = len(rows) < BALL_HEIGHT and (rows[0] + CEILING - BRICK_TOP) % BRICK_HEIGHT == 0
    top = rows[-1] - BALL_HEIGHT + 1 if hidden_above and rows[-1] + CEILING < PADDLE_TOP - 1 else rows[0]
    return float(columns[0] + LEFT_WALL), float(top + CEILING)
