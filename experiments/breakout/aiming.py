"""Where to hit: the side of the paddle whose returns bring most, some bounces ahead."""

import numpy as np

from experiments.breakout.physics import Flights
from experiments.breakout.planning import contact_frames
from truesim.core.typing import Bool, Float

POINTS = np.array([7, 7, 4, 4, 1, 1])
"""Value of a brick by row, as the screen's counter shows it."""
BOUNCES = 5
"""Bounces at the paddle that are looked ahead."""
DISCOUNT = 0.7
"""Weight of points relative to points one bounce earlier."""
ABOVE = 2.0
"""Value of a flight to the ceiling, above which the ball breaks bricks without the paddle."""
SIDES = np.array([-1.0, 1.0])


def side_values(
    flights: Flights,
    landing: Float[np.ndarray, "2"],
    speed: Float[np.ndarray, "2"],
    bricks: Bool[np.ndarray, "rows columns"],
) -> Float[np.ndarray, "2"]:
    """Values of a return to the left and of one to the right.

    Args:
        flights: Simulated flights.
        landing: Place of the ball on the paddle.
        speed: Its speed in both directions, which it keeps.
        bricks: Bricks that are left.
    """
    starts, first, weight = landing[None], None, 1.0
    values = np.zeros((2, BOUNCES))
    for bounce in range(BOUNCES):
        q = np.repeat(starts, 2, axis=0)
        side = np.tile(SIDES, len(starts))
        first = np.arange(2) if first is None else np.repeat(first, 2)
        path, _, rows = flights(q, np.stack([side * speed[0], np.full(len(q), -speed[1])], axis=1), bricks)
        reached = np.where(rows >= 0, POINTS[rows.astype(int)], 0.0) + ABOVE * (path[..., 1].min(1) < 50) * (rows < 0)
        for k in range(2):
            values[k, bounce] = weight * np.max(reached[first == k], initial=0.0)
        weight *= DISCOUNT
        landed = [contact_frames(p) for p in path]
        on = [k for k, at in enumerate(landed) if rows[k] < 0 and len(at)]
        if not on:
            break
        starts, first = np.stack([path[k, landed[k][0]] for k in on]), first[on]
    return values.max(axis=1)
