"""Flights of the ball: a rigid sphere between walls, ceiling and bricks in truesim.

A unit of length is a pixel, a unit of time a frame; y points down, as on the screen. The game's ball is 2 x 4 px, its
place the upper left corner. Bricks of a row that touch each other are one box; a brick that was hit is gone, and the
ball passes all others until it meets the ceiling or the paddle.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import truesim as ts
from experiments.breakout.screen import (
    BALL_HEIGHT,
    BRICK_BOTTOM,
    BRICK_HEIGHT,
    BRICK_TOP,
    BRICK_WIDTH,
    CEILING,
    LEFT_WALL,
)
from truesim import native
from truesim.core.typing import Array, Bool, Float
from truesim.files.robots import loads

BOXES = 16
"""Runs of bricks that a simulation knows; the lowest ones if there are more."""
FRAMES = 100
"""Frames of one simulation."""
RADIUS = 1.0
DEPTH = 1.25
"""Mean overlap of ball and brick in the frame in which the game notices it [px]."""
AWAY = (-1000.0, -1000.0)
SCENE = """<mujoco><option timestep="1" gravity="0 0 0"/><worldbody>
  <geom name="left" type="plane" size="1 1 1" zaxis="1 0 0" condim="1"/>
  <geom name="right" type="plane" size="1 1 1" zaxis="-1 0 0" condim="1"/>
  <geom name="ceiling" type="plane" size="1 1 1" zaxis="0 1 0" condim="1"/>{bricks}
  <body name="ball"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <geom name="ball" type="sphere" size="{radius}" mass="1" condim="1"/></body></worldbody></mujoco>"""
BRICK = '<geom name="brick{k}" type="box" size="4 3 9" pos="-1000 -1000 0" condim="1"/>'


@dataclasses.dataclass(frozen=True)
class BallModel:
    """Numbers of the ball's bounces, learned from play."""

    left: float
    """Least and largest column of the ball, where the walls return it."""
    right: float
    restitution: float
    """Speed after a bounce relative to that before."""
    centre: float
    """Place on the paddle (ball's column minus paddle's) left of which the ball returns to the left."""


class Flights:
    """Simulated flights, compiled once."""

    def __init__(self, ball: BallModel):
        self._ball = ball

        def flight(q: Array, v: Array, *boxes: Array) -> tuple[Array, Array]:
            sim = simulator
            if boxes:
                centres, sizes = boxes
                places = {f"geoms/brick{k}.position": jnp.append(centres[k], 0.0) for k in range(BOXES)}
                shapes = {f"geoms/brick{k}.size": jnp.append(sizes[k], 9.0) for k in range(BOXES)}
                sim = simulator.replace(places | shapes)
            start = sim.initial_state(q=q, v=v)
            return ts.rollout(sim, start, jnp.zeros((FRAMES, 0)), keep=lambda s, _: (s.q, s.v), backend="xla")[1]

        boxes = np.zeros((BOXES, 2)), np.ones((BOXES, 2))
        with jax.enable_x64(True):
            simulator = self._simulator(BOXES)
            self._among_bricks = native.compile(flight, np.zeros(2), np.zeros(2), *boxes)
            simulator = self._simulator(0)
            self._below = native.compile(flight, np.zeros(2), np.zeros(2))

    def _simulator(self, boxes: int) -> ts.Simulator:
        """Walls and ceiling at the learned places, and some boxes."""
        bricks = "".join(BRICK.format(k=k) for k in range(boxes))
        model = loads(SCENE.format(bricks=bricks, radius=RADIUS))
        walls = {
            "geoms/left.position": np.array([self._ball.left - RADIUS, 0.0, 0.0]),
            "geoms/right.position": np.array([self._ball.right + RADIUS, 0.0, 0.0]),
            "geoms/ceiling.position": np.array([0.0, CEILING - RADIUS, 0.0]),
            "geoms/*.restitution": self._ball.restitution,
        }
        return ts.Simulator.of(model, contact=ts.RigidContact.of(model, bounces=True)).replace(walls)

    def __call__(
        self, q: Float[np.ndarray, "b 2"], v: Float[np.ndarray, "b 2"], bricks: Bool[np.ndarray, "rows columns"] | None
    ) -> tuple[Float[np.ndarray, "b frames 2"], Float[np.ndarray, "b frames 2"], Float[np.ndarray, " b"]]:
        """Places and velocities of the frames that follow, and the rows of the first bricks that are hit.

        The row is -1 if there is none. The ball passes all bricks if there are none (`bricks` is None).
        """
        q, v = (np.ascontiguousarray(x, float) for x in (q, v))
        rows, falling = np.full(len(q), -1.0), bool(np.all((v[:, 1] > 0) & (q[:, 1] > BRICK_BOTTOM)))
        if bricks is None or falling or not bricks.any():
            path, velocity = self._below(q, v)
            return np.asarray(path), np.asarray(velocity), rows
        boxes = (np.repeat(x[None], len(q), axis=0) for x in brick_boxes(bricks))
        path, velocity = (np.array(x) for x in self._among_bricks(q, v, *boxes))
        before = np.concatenate([v[:, None], velocity[:, :-1]], axis=1)
        turned = ~(np.abs(velocity - before).max(2) < 1e-3)  # true for what is not finite
        inside = (path[..., 1] > CEILING + BALL_HEIGHT) & (path[..., 1] < BRICK_BOTTOM + BALL_HEIGHT)
        at_wall = (path[..., 0] < self._ball.left + 3) | (path[..., 0] > self._ball.right - 3)
        inside |= ~np.isfinite(path).all(2)
        at_brick = turned & inside & ~(at_wall & (np.abs(velocity[..., 1] - before[..., 1]) < 1e-3))
        for k in np.flatnonzero(at_brick.any(1)):
            hit = int(np.argmax(at_brick[k]))
            place = path[k, hit - 1] if hit else q[k]
            returned = before[k, hit] * np.array([1.0, -self._ball.restitution])
            rows[k] = np.clip((place[1] - BRICK_TOP) // BRICK_HEIGHT, 0, 5)
            rest, speed = self._below(place[None], returned[None])
            path[k, hit:], velocity[k, hit:] = rest[0, : FRAMES - hit], speed[0, : FRAMES - hit]
        return path, velocity, rows


def brick_boxes(bricks: Bool[np.ndarray, "rows columns"]) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, "n 2"]]:
    """Centres and half sizes of the runs of bricks, in coordinates of the ball's corner; from the lowest row up."""
    centres, sizes = np.tile(AWAY, (BOXES, 1)), np.ones((BOXES, 2))
    filled = 0
    for row in reversed(range(len(bricks))):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], bricks[row], [False]]).astype(int)))
        for begin, end in edges.reshape(-1, 2):
            if filled == BOXES:
                return centres, sizes
            left, right = LEFT_WALL + BRICK_WIDTH * begin, LEFT_WALL + BRICK_WIDTH * end
            top = BRICK_TOP + BRICK_HEIGHT * row
            centres[filled] = (left + right) / 2 - 1, top + BRICK_HEIGHT / 2 - BALL_HEIGHT / 2
            sizes[filled] = (right - left) / 2, BRICK_HEIGHT / 2 + BALL_HEIGHT / 2 - RADIUS - DEPTH
            filled += 1
    return centres, sizes
