"""Shipped tasks: each is made by name, moves in truesim as in MuJoCo, and what it hides is hidden."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.precision import float32
from truesim.policies import PlayOptions, make_task, play
from truesim.policies.draws import make_keys
from truesim.policies.environment import Environment
from truesim.policies.episodes import begin, instant
from truesim.policies.physics import physics_of
from truesim.policies.tasks import TASKS
from truesim.policies.tasks.differential_drive import motion
from truesim.policies.tasks.reacher import REACHER_HOME, hand

FAST = ("furuta-swingup", "drive-command")
OWN = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
    for name, entry in TASKS.items()
    if entry.has_robot and name not in ("quadruped-joystick", "point-rotation")
]
"""Tasks with a robot of their own; MuJoCo does not play the hidden angle of the last one."""


class Constant:
    """A policy that always does the same."""

    def __init__(self, action):
        self.action = np.asarray(action, np.float32)

    def act(self, observation):
        """The same action for every observation."""
        return np.broadcast_to(self.action, (len(observation), len(self.action)))


@pytest.mark.parametrize("name", OWN)
def test_truesim_and_mujoco_move_alike(name):
    """The return of a constant action is the same in both simulators."""
    task = dataclasses.replace(make_task(name), seconds=0.32)
    policy = Constant(np.full(task.action_map.size, 0.2))
    played = [play(policy, task, engine=e, options=PlayOptions(episodes=2)) for e in ("truesim", "mujoco")]
    assert np.all(np.isfinite(played[0].returns))
    np.testing.assert_allclose(played[0].returns, played[1].returns, rtol=2e-3, atol=2e-3)


def played_steps(task, action, steps, fixed=None):
    """One episode under a constant action: the episode, the first and last observation, and the sum of rewards."""
    environment, total = Environment(task, 1), 0.0
    episodes, outcome = environment.reset(0, fixed=fixed)
    first = outcome.observation[0]
    for _ in range(steps):
        episodes, outcome = environment.step(episodes, np.asarray([action], np.float32))
        total += float(outcome.reward[0])
    return episodes, first, outcome.observation[0], total


def test_a_point_moves_a_tenth_of_a_meter():
    task = make_task("point-corners")
    episodes, _, last, total = played_steps(task, [1.0, -1.0], 5)
    np.testing.assert_allclose(last, [0.5, -0.5], atol=0.02)
    corner = np.asarray(episodes.command[0])
    assert np.all(np.abs(corner) == 2.0)
    near = (4.0 - 2.0 * (2.0 - 0.1 * np.arange(1, 6)) ** 2).clip(0.0).sum() if corner.tolist() == [2.0, -2.0] else 0.0
    assert total == pytest.approx(near - 20.0, abs=0.5)


def test_navigation_has_its_known_return_of_staying():
    """Goals are uniform in a square: minus the mean squared distance, 2/3, for each of 100 actions."""
    played = play(Constant([0.0, 0.0]), make_task("point-navigation"), options=PlayOptions(episodes=300))
    assert played.returns.mean() == pytest.approx(-66.7, abs=8.0)


def test_a_hidden_angle_turns_the_motors():
    task = make_task("point-rotation")
    quarter = {"bodies/table.orientation": np.array([math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)], np.float32)}
    _, before, after, _ = played_steps(task, [1.0, 0.0], 5, quarter)
    np.testing.assert_allclose(after - before, [0.0, 0.5], atol=0.02)
    assert len(before) == 2, "the policy sees its place, neither angle nor goal"


def test_the_hand_of_the_arm_is_in_front():
    task = make_task("arm-reach")

    def home(key):
        episode = begin(task, key)
        state = dataclasses.replace(episode.state, q=jnp.asarray(REACHER_HOME, jnp.float32))
        return hand(dataclasses.replace(instant(task, episode), state=state))

    with float32():
        place = np.asarray(jax.jit(home)(make_keys(0, 1)[0]))
    assert 0.3 < place[0] < 0.7
    assert abs(place[1]) < 0.05
    assert 0.2 < place[2] < 0.8


def test_the_cart_drives_straight_and_turns():
    task = make_task("drive-command")

    with float32():
        environment = Environment(task, 2, physics=physics_of(task, 2))
        episodes, _ = environment.reset(0)
        for _ in range(50):
            episodes, _ = environment.step(episodes, np.array([[0.5, 0.5], [-0.5, 0.5]], np.float32))
        speeds = np.asarray(jax.jit(jax.vmap(lambda e: motion(instant(task, e))))(episodes))
    assert speeds[0, 0] == pytest.approx(0.5 * 12 * 0.055 / 0.0121 * 0.05, rel=0.1), "back-EMF bounds the speed"
    assert abs(speeds[0, 1]) < 0.05
    assert speeds[1, 1] > 2.0
    assert abs(speeds[1, 0]) < 0.1


def test_the_biased_sensor_is_off_by_up_to_ten_degrees():
    task = make_task("cart-pole-bias")
    episodes, outcome = Environment(task, 64).reset(0)
    off = outcome.observation[:, 1] - episodes.state.q[:, 1]
    assert math.radians(8) < np.abs(off).max() <= math.radians(10) + 0.01
