"""Rehearsal: training begins in cheaper physics, goes on in the task's own, and can be interrupted in between."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.policies.test_quadruped import ROBOT
from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.physics.contact.models.implicit_compliant import ImplicitCompliantContact
from truesim.policies import Environment, PpoOptions, Randomization, TrainOptions, make_task, train
from truesim.policies.learners.base import carry_over
from truesim.policies.physics import physics_of
from truesim.policies.tasks.legged_robot import geom_positions
from truesim.policies.tasks.quadruped import go2_joystick

SMALL = PpoOptions(episodes=32, horizon=8, minibatches=2, hidden=(8,))
STEPS = SMALL.episodes * SMALL.horizon


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A quadruped in its cheaper physics, which is not pushed."""
    path = tmp_path_factory.mktemp("robot") / "dog.xml"
    path.write_text(ROBOT)
    task = dataclasses.replace(go2_joystick(path), randomization=Randomization(), pushes=None)
    return dataclasses.replace(task, simulator=task.rehearsal)


def test_only_feet_touch_the_floor(standing):
    contact = standing.simulator.contact
    assert isinstance(contact, ImplicitCompliantContact)
    names = standing.simulator.model.geoms.names
    assert [{names[g] for g in pair.geoms} for pair in contact.detector.pairs] == [
        {"floor", foot} for foot in ("FL", "FR", "RL", "RR")
    ]
    assert physics_of(standing, 2) is None  # the whole control step is one kernel


@pytest.mark.slow
def test_feet_stick_and_sink_little(standing):
    """At 5 ms the standing robot comes to rest, its feet a few millimetres deep, and creeps less than 1 mm/s."""
    simulator = standing.simulator
    feet = [simulator.model.geoms.names.index(name) for name in ("FL", "FR", "RL", "RR")]
    home = jnp.asarray([0, 0, 0.27, 1, 0, 0, 0, *[0, 0.9, -1.8] * 4], jnp.float32)
    with float32():
        state, command = simulator.initial_state(q=home), home[7:]
        step = native.compile(lambda state, command: simulator.step(state, command)[0], state, command)
        place = jax.jit(lambda q: geom_positions(simulator.model, q, tuple(feet)))
        state, places = jax.tree.map(lambda x: np.asarray(x)[None], state), []
        for k in range(400):
            state = step(state, np.asarray(command)[None])
            if k in (199, 399):
                places.append(np.asarray(place(state.q[0])))
    assert np.abs(np.asarray(state.v)).max() < 0.02
    depth = 0.022 - places[-1][:, 2]
    assert depth.min() > 0.0
    assert depth.max() < 0.015
    assert np.abs(places[1] - places[0])[:, :2].max() < 1e-3


@pytest.fixture(scope="module")
def task():
    """A balance that is rehearsed with half the gravity."""
    own = make_task("cart-pole-balance")
    light = own.simulator.replace({"gravity": np.array([0.0, 0.0, -4.9])})
    return dataclasses.replace(own, rehearsal=light)


OPTIONS = TrainOptions(steps=8 * STEPS, evaluate_every=0)


@pytest.fixture(scope="module")
def rehearsed(task, tmp_path_factory):
    """Policy after half of the iterations in each simulator."""
    return train(task, tmp_path_factory.mktemp("whole"), learner=SMALL, options=OPTIONS).policy


def test_training_begins_in_the_rehearsal(task, rehearsed, tmp_path):
    """The same training without it ends with other weights."""
    alone = train(dataclasses.replace(task, rehearsal=None), tmp_path, learner=SMALL, options=OPTIONS).policy
    assert not np.allclose(rehearsed.layers[0][0], alone.layers[0][0])


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "stage"), [(2, 0), (6, 1)])
def test_an_interrupted_training_ends_as_if_it_had_not_been(stop, stage, task, rehearsed, tmp_path, monkeypatch):
    """In the rehearsal and after it."""

    def kill(now):
        if now.steps == stop * STEPS:
            raise KeyboardInterrupt

    monkeypatch.setattr("truesim.policies.training.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train(task, tmp_path, learner=SMALL, options=OPTIONS, callback=kill)
    with np.load(tmp_path / "checkpoint.npz") as file:
        assert int(file["stage"]) == stage
    again = train(task, tmp_path, learner=SMALL, options=OPTIONS).policy
    for a, b in zip(jax.tree.leaves(rehearsed.weights), jax.tree.leaves(again.weights), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_was_learned_is_carried_over(task):
    """Weights and steps are those of the rehearsal, episodes those of the task."""
    with float32():
        ppo, other = (SMALL.make(Environment(each, SMALL.episodes)) for each in (task, task))
        learned, _ = ppo.iterate(ppo.start(0))
        fresh = other.start(1)
        state = carry_over(learned, fresh)
    assert int(state.steps) == STEPS
    assert state.weights is learned.weights
    assert state.episodes is fresh.episodes
    assert state.outcome is fresh.outcome


def test_a_part_beyond_the_whole_is_refused():
    with pytest.raises(TruesimError, match=r"must be in \[0, 1\]"):
        TrainOptions(rehearsal=1.5)
