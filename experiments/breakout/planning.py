"""Plans of the paddle: actions that meet the ball at a chosen place, by enumeration with the identified model."""

import functools
import itertools
from typing import NamedTuple

import numpy as np

from experiments.breakout.paddle import PaddleFilter, PaddleModel, PaddleState
from experiments.breakout.screen import BALL_HEIGHT, PADDLE_TOP
from truesim.core.typing import Float, Int

PADDLE_WIDTH, BALL_WIDTH = 16, 2
"""Width of the paddle at the beginning, and of the ball [px]."""
SEQUENCES = {1: 243}
"""Most sequences of actions that are enumerated, by frame skip, and otherwise:"""
MANY = 2187
SWITCHES = {243: 6, 2187: 12}
"""Decisions at which long plans may change their action."""
TIMING_WEIGHT, LIMIT = 0.1, 100.0
"""Weight of the cost for a ball that comes a frame early or late, and its largest value."""
MARGIN = 3.0
"""Distance from the ends of the paddle below which a hit counts as uncertain [px]."""
FINALISTS, SAMPLES = 24, 24
"""Plans that are tried with sticky actions, and the number of tries of each."""


def contact_frames(path: Float[np.ndarray, "frames 2"]) -> Int[np.ndarray, " n"]:
    """Frames in which the ball is at the height of the paddle, of its first way down."""
    y = path[:, 1]
    at = np.flatnonzero((y + BALL_HEIGHT >= PADDLE_TOP + 0.8) & (y <= PADDLE_TOP + 0.3))
    return at[at < at[0] + 4] if len(at) else at


@functools.cache
def sequences(decisions: int, most: int) -> Int[np.ndarray, "n decisions"]:
    """Sequences of actions -1, 0 and 1: all of them, or for long ones those with at most two changes."""
    if 3**decisions <= most:
        return np.array(list(itertools.product((0, 1, -1), repeat=decisions)), int)
    times = np.unique(np.round(np.linspace(0, decisions, SWITCHES[most])).astype(int))
    found = []
    for a, b in itertools.combinations(times, 2):
        for first, second, third in itertools.product((0, 1, -1), repeat=3):
            row = np.full(decisions, third)
            row[:a], row[a:b] = first, second
            found.append(row)
    return np.unique(np.array(found), axis=0)


class Hit(NamedTuple):
    """Where the ball shall meet the paddle."""

    wanted: float
    """Ball's column minus paddle's."""
    width: int
    """Width of the paddle."""
    weight: float = 0.5
    """Cost of a distance from the wanted place [1/px]."""


def hit_cost(
    model: PaddleModel,
    state: PaddleState,
    actions: Int[np.ndarray, "n frames"],
    ball: Float[np.ndarray, "frames 2"],
    hit: Hit,
) -> Float[np.ndarray, " n"]:
    """Cost of the place at which the ball meets the paddle, and would if it came a frame early or late."""
    at, places = contact_frames(ball), []
    for k in range(at[-1] + 2):
        state = model.step(state, actions[:, min(k, actions.shape[1] - 1)])
        places.append(model.seen(state))
    paddle = np.stack(places, axis=1)
    columns = ball[at, 0]
    cost = miss_cost(columns - paddle[:, at], hit)
    for shift in (-1, 1):
        other = miss_cost(columns - paddle[:, np.maximum(at + shift, 0)], hit)
        cost = cost + TIMING_WEIGHT * np.minimum(other, LIMIT)
    return cost


def miss_cost(offset: Float[np.ndarray, "n contacts"], hit: Hit) -> Float[np.ndarray, " n"]:
    """Cost of the place of the hit: the first frame of contact in which the ball is on the paddle decides."""
    low, high = -BALL_WIDTH + 1, hit.width - 1
    inside = (offset >= low) & (offset <= high)
    first = np.argmax(inside, axis=1)
    at = np.take_along_axis(offset, first[:, None], axis=1)[:, 0]
    nearest = np.min(np.maximum(low - offset, offset - high), axis=1)
    edge = np.maximum(0, MARGIN - np.minimum(at - low, high - at))
    met = 4.0 * edge**2 + hit.weight * np.abs(at - hit.wanted)
    return np.where(inside.any(1), met, 100.0 + 10 * np.maximum(nearest, 0.0))


def best_action(belief: PaddleFilter, ball: Float[np.ndarray, "frames 2"], hit: Hit, skip: int) -> tuple[int, float]:
    """First action of the best plan, and its cost.

    Args:
        belief: Present state of the paddle.
        ball: Predicted places of the ball.
        hit: Place on the paddle.
        skip: Frames of a decision.
    """
    at = contact_frames(ball)
    decisions = -(-(int(at[-1]) + 1) // skip)
    plans = sequences(decisions, SEQUENCES.get(skip, MANY))
    actions = np.repeat(plans, skip, axis=1)
    model, state = belief.model, belief.state
    mean = PaddleState(
        np.median(state.target, axis=1)[:, None].repeat(len(plans), 1),
        np.full(len(plans), np.median(state.place)),
        np.zeros(len(plans), int),
    )
    effort = 0.1 * np.abs(np.diff(plans, axis=1, prepend=0)).sum(1)
    cost = hit_cost(model, mean, actions, ball, hit) + effort
    if not belief.sticky:
        k = int(np.argmin(cost))
        return int(plans[k, 0]), float(cost[k])
    return _sampled(belief, ball, hit, plans, actions, cost)


def _sampled(
    belief: PaddleFilter, ball: np.ndarray, hit: Hit, plans: np.ndarray, actions: np.ndarray, cost: np.ndarray
) -> tuple[int, float]:
    """Best plan with sticky actions: the best few of each first action are tried with the same random numbers."""
    rng, frames = belief.random, int(contact_frames(ball)[-1]) + 1
    chosen = np.concatenate(
        [np.flatnonzero(plans[:, 0] == a)[np.argsort(cost[plans[:, 0] == a])[: FINALISTS // 3]] for a in (0, 1, -1)]
    )
    particles = rng.integers(len(belief.state.place), size=SAMPLES)
    stuck = rng.random((SAMPLES, frames)) < belief.sticky
    count = len(chosen)
    state = belief.state.take(np.tile(particles, count))
    executed, last = np.empty((count * SAMPLES, frames), int), state.action
    for k in range(frames):
        last = np.where(np.tile(stuck[:, k], count), last, np.repeat(actions[chosen, k], SAMPLES))
        executed[:, k] = last
    each = hit_cost(belief.model, state, executed, ball, hit).reshape(count, SAMPLES).mean(1)
    k = int(np.argmin(each))
    return int(plans[chosen[k], 0]), float(each[k])
