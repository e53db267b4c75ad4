"""Breakout: objects from pixels, the paddle's hidden target, flights and plans; a game only where ale-py is there."""

import dataclasses

import numpy as np
import pytest

from experiments.breakout import screen
from experiments.breakout.aiming import side_values
from experiments.breakout.paddle import PaddleFilter, PaddleModel, fit_paddle, open_loop_error, predicted
from experiments.breakout.physics import BallModel, Flights, brick_boxes
from experiments.breakout.planning import Hit, best_action, contact_frames, miss_cost

TRUTH = PaddleModel(99.0, 5.7, 0.52, 4.0, 194.0, 8.0, 144.0, 1)
BALL = BallModel(left=7.0, right=152.0, restitution=1.0, centre=6.5)


@pytest.fixture(scope="module")
def flights():
    """Compiled flights."""
    return Flights(BALL)


def picture(ball=None, paddle=60, colour=(200, 72, 72)):
    """A screen with all bricks, a paddle and perhaps a ball."""
    frame = np.zeros((210, 160, 3), np.uint8)
    frame[17:32], frame[32:195, :8], frame[32:195, 152:] = 142, 142, 142
    frame[57:93, 8:152] = (66, 72, 200)
    frame[189:193, paddle : paddle + 16] = (200, 72, 72)
    if ball is not None:
        frame[ball[1] : ball[1] + 4, ball[0] : ball[0] + 2] = colour
    return frame


@pytest.mark.parametrize(
    ("ball", "colour"), [((40, 120), (200, 72, 72)), ((100, 40), (142, 142, 142)), ((17, 71), (66, 72, 200))]
)
def test_objects_are_found_by_colour(ball, colour):
    """Above the bricks the ball is grey, in a gap between them it has their colour."""
    frame = picture()
    frame[57:93, 16:24] = 0  # the second column is gone
    frame[ball[1] : ball[1] + 4, ball[0] : ball[0] + 2] = colour
    scene = screen.read_scene(frame)
    assert (scene.paddle, scene.width) == (60.0, 16)
    assert scene.ball == ball
    assert scene.bricks.sum() == 17 * 6
    assert not scene.bricks[:, 1].any()


def test_a_hidden_ball_is_none():
    """Without a ball, and without a paddle."""
    frame = picture()
    frame[189:193] = 0
    scene = screen.read_scene(frame)
    assert scene.ball is None
    assert scene.paddle is None


def test_the_paddle_is_learned_from_rounded_places():
    """Rate, gain, delay and limits of the hidden target from 1,000 frames of whole pixels."""
    rng = np.random.default_rng(0)
    actions = np.repeat(rng.integers(-1, 2, 100), rng.integers(1, 25, 100))
    train, test = actions[:1000], actions[200:]
    found = fit_paddle([(np.floor(predicted(TRUTH, train)), train)])
    assert found.delay == TRUTH.delay
    assert found.rate == pytest.approx(TRUTH.rate, abs=0.05)
    assert open_loop_error(found, [(predicted(TRUTH, test), test)]) < 1.0
    slow = dataclasses.replace(TRUTH, rate=5.0)
    assert open_loop_error(slow, [(predicted(TRUTH, test), test)]) > 3.0


def test_the_filter_finds_the_target_under_sticky_actions():
    """The hidden target is known to a few pixels though a quarter of the actions is ignored."""
    rng, sticky = np.random.default_rng(3), 0.25
    belief, truth = PaddleFilter(TRUTH, sticky, np.random.default_rng(4)), TRUTH.initial()
    errors = []
    for _ in range(200):
        action = int(rng.integers(-1, 2))
        for _ in range(4):
            executed = truth.action[0] if rng.random() < sticky else action
            truth = TRUTH.step(truth, np.array([executed]))
        belief.state = belief.advance(action, 4)
        place = float(np.floor(TRUTH.seen(truth)[0]))
        belief.observe(place)
        if TRUTH.left + 10 < place < TRUTH.right - 10:
            errors.append(np.median(belief.state.target[-1]) - truth.target[-1, 0])
    assert len(errors) > 50
    assert np.sqrt(np.mean(np.square(errors))) < 3.0


def test_flights_are_mirrored_at_walls_ceiling_and_bricks(flights):
    """The ball goes up, is returned by the lowest row, and lands where mirrored lines do."""
    q, v = np.array([[120.0, 180.0]]), np.array([[2.0, -3.0]])
    path, velocity, rows = flights(q, v, np.ones((6, 18), bool))
    assert rows[0] == 5
    assert abs(path[0, :, 1].min() - 92) < 3
    assert velocity[0, -1, 1] == pytest.approx(3.0, abs=1e-4)
    unfolded = 120 + 2 * np.arange(1, len(path[0]) + 1)
    expected = np.where(unfolded > BALL.right, 2 * BALL.right - unfolded, unfolded)
    before = np.abs(unfolded - BALL.right) > 4
    steps = slice(0, 60)
    np.testing.assert_allclose(path[0, steps, 0][before[steps]], expected[steps][before[steps]], atol=2.1)
    high, speed, none = flights(q, v, np.zeros((6, 18), bool))
    assert none[0] == -1
    assert abs(high[0, :, 1].min() - screen.CEILING) < 4
    np.testing.assert_allclose(np.abs(speed[0]), np.abs(np.broadcast_to(v, speed[0].shape)), atol=1e-3)


def test_runs_of_bricks_are_single_boxes():
    """Touching bricks of a row are one box, gaps separate them."""
    bricks = np.zeros((6, 18), bool)
    bricks[5, :4], bricks[5, 6], bricks[0, 17] = True, True, True
    centres, sizes = brick_boxes(bricks)
    assert (centres[:, 0] > 0).sum() == 3
    assert sizes[0, 0] == 16
    assert centres[2, 1] < centres[0, 1]


@pytest.mark.parametrize("skip", [1, 4])
@pytest.mark.parametrize("column", [20.0, 75.0, 130.0])
def test_plans_meet_the_ball(skip, column):
    """Planned again at every decision, the paddle is below the ball when it arrives, in motion if it has to be."""
    belief, hit = PaddleFilter(TRUTH, 0.0, np.random.default_rng(0)), Hit(6.5, 16)
    ball = np.stack([np.full(60, column), 60 + 3.4 * np.arange(60)], axis=1)
    at = contact_frames(ball)
    offsets = []
    for frame in range(0, at[-1] + 1, skip):
        action, _ = best_action(belief, ball[frame:], hit, skip)
        for k in range(frame, frame + skip):
            belief.state = belief.advance(action, 1)
            if k in at:
                offsets.append(ball[k, 0] - TRUTH.seen(belief.state)[0])
    assert miss_cost(np.array([offsets]), hit)[0] < 20
    assert any(-1 <= x <= 15 for x in offsets)


def test_the_side_with_the_brick_is_preferred(flights):
    """A single brick to the upper left is worth a return to the left."""
    bricks = np.zeros((6, 18), bool)
    bricks[3, 3:6] = True
    left, right = side_values(flights, np.array([90.0, 186.0]), np.array([2.0, 3.4]), bricks)
    assert left > right
    assert left == pytest.approx(4.0)


@pytest.mark.slow
def test_a_game_is_played_above_human_level():
    """Half a game in the hardest setting, from pixels alone, with numbers of random play."""
    pytest.importorskip("ale_py")
    from experiments.breakout.game import SETTINGS
    from experiments.breakout.learning import learn, random_play
    from experiments.breakout.players import PlanningPlayer, play

    learned = learn(random_play(0))
    game = play(
        PlanningPlayer(learned.paddle, learned.ball, Flights(learned.ball), SETTINGS[2], 0), SETTINGS[2], 5, 6000
    )
    assert game.score > 32
