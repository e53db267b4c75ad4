"""Friction of the joints in the problem of rigid contact: Coulomb friction with stiction."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import compiled
from tests.physics.contact.scenes import changed, rigid, scene
from truesim.physics.simulation import State

CART = """<mujoco><option gravity="0 0 0" timestep="0.001"/><worldbody><body name="cart">
  <joint name="rail" type="slide" axis="1 0 0" frictionloss="2"/><geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor joint="rail"/></actuator></mujoco>"""
STICTION, WIDTH = 1.0, 0.1


@pytest.fixture(scope="module")
def step():
    """Velocity of a cart of 1 kg after a step of 1 ms, from a velocity and a force."""
    values = {"joints/rail.stiction": STICTION, "joints/rail.stribeck_velocity": WIDTH}
    model = changed(scene(CART), values)

    def after(simulator, v, force):
        state = State(jnp.zeros(1), v, jnp.zeros(()))
        return simulator.step(state, force)[0].v

    simulator = rigid(model)
    run = compiled(after, simulator, np.zeros(1), np.zeros(1))
    return lambda v, force: float(run(simulator, np.array([v]), np.array([force]))[0])


def test_stiction_holds_at_rest(step):
    """At rest the joint holds up to frictionloss + stiction, and moves beyond."""
    assert abs(step(0.0, 2.9)) < 1e-6
    np.testing.assert_allclose(step(0.0, 3.5), 0.5e-3, rtol=1e-3)


@pytest.mark.parametrize("v", [0.05, 0.1, 0.3, -0.15])
def test_stiction_decays_with_speed(step, v):
    """A joint that slides is slowed by frictionloss + stiction exp(-(v / stribeck_velocity)^2)."""
    bound = 2 + STICTION * np.exp(-((v / WIDTH) ** 2))
    np.testing.assert_allclose(step(v, 0.0), v - np.sign(v) * bound * 1e-3, rtol=1e-6)


def test_stiction_alone_is_friction():
    """A joint with stiction but without frictionloss has friction."""
    model = changed(scene(CART), {"joints/rail.frictionloss": 0.0, "joints/rail.stiction": STICTION})
    contact = rigid(model).contact
    assert contact.friction == (0,)
    assert contact.has_stiction
    assert not rigid(scene(CART)).contact.has_stiction
