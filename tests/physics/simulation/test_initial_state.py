"""Initial states: one tree structure per simulator, stable under `vmap`, `where` and rollouts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.physics.contact.scenes import CUBE, scene
from tests.robots import SMOOTH, robot
from truesim.core.errors import TruesimError
from truesim.physics.blueprint import GRU, Blueprint, Rule
from truesim.physics.contact import RigidContact
from truesim.physics.model import paths
from truesim.physics.simulation import Simulator, State, rollout


def late(model):
    """The robot with a delay of two and a half steps in its first actuator."""
    return paths.write(model, "actuators/actuator0.delay", 0.025)


SIMULATORS = {
    "plain": lambda: Simulator.of(robot(SMOOTH)),
    "delayed": lambda: Simulator.of(late(robot(SMOOTH))),
    "rigid": lambda: Simulator.of(scene(CUBE), contact=RigidContact.of(scene(CUBE))),
    "network": lambda: Simulator.of(
        robot(SMOOTH),
        blueprint=Blueprint((Rule("joint.torque", ("joint.velocity", "previous joint.torque"), GRU(3)),)),
    ),
}


@pytest.mark.parametrize("name", SIMULATORS)
def test_one_structure(name):
    """Initial state, later states and a batch of them have one tree of the same shapes and types."""
    simulator = SIMULATORS[name]()
    first = simulator.initial_state()
    last, _ = rollout(simulator, first, jnp.ones((3, simulator.model.nu)))
    assert jax.tree.structure(last) == jax.tree.structure(first)
    assert jax.tree.map(jnp.shape, last) == jax.tree.map(jnp.shape, first)
    assert jax.tree.map(jnp.result_type, last) == jax.tree.map(jnp.result_type, first)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(first))
    moved = simulator.initial_state(v=jnp.ones(simulator.model.nv), time=2.0)
    assert jax.tree.structure(moved) == jax.tree.structure(first)


@pytest.mark.parametrize("name", SIMULATORS)
def test_resets_in_a_batch(name):
    """`where` between stepped and fresh states, under `vmap`, resets those that are done."""
    simulator = SIMULATORS[name]()
    command = jnp.ones(simulator.model.nu)

    def advance(state, done):
        after, _ = simulator.step(state, command)
        return jax.tree.map(lambda a, b: jnp.where(done, a, b), simulator.initial_state(), after)

    states = jax.vmap(lambda speed: simulator.initial_state(v=jnp.full(simulator.model.nv, speed)))(jnp.ones(2))
    after = jax.jit(jax.vmap(advance))(states, jnp.array([True, False]))
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[0], y), after, simulator.initial_state())
    assert float(after.time[1]) > 0


def test_past_commands():
    """Before the start the given command was held, zero if none was given."""
    simulator = SIMULATORS["delayed"]()
    np.testing.assert_array_equal(simulator.initial_state().history.values, np.zeros((simulator.history, 3)))
    held = simulator.initial_state(command=np.array([1.0, 2.0, 3.0]), time=4.0)
    np.testing.assert_array_equal(held.history.values, np.tile([1.0, 2.0, 3.0], (simulator.history, 1)))
    bare = State(held.q, held.v, held.time)
    u = jnp.tile(jnp.array([1.0, 2.0, 3.0]), (6, 1))
    ends = [rollout(simulator, state, u)[0] for state in (held, bare)]
    jax.tree.map(np.testing.assert_array_equal, *ends)


def test_wrong_sizes_are_refused():
    """A configuration of another robot is named."""
    with pytest.raises(TruesimError, match=r"q has shape \(3,\); this robot's has shape \(2,\)"):
        SIMULATORS["plain"]().initial_state(q=np.zeros(3))
