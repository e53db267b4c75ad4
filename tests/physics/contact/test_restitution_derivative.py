"""Derivatives of a bounce by restitution alone, which no other quantity of the motion depends on at first."""

import jax
import jax.numpy as jnp
import numpy as np

import truesim as ts
from truesim import native
from truesim.files.robots import loads

WALL = """<mujoco><option timestep="0.5" gravity="0 0 0"/><worldbody>
  <geom name="wall" type="plane" size="1 1 1" pos="64 0 0" zaxis="-1 0 0" condim="1"/>
  <body name="ball"><joint name="x" type="slide" axis="1 0 0"/>
    <geom name="ball" type="sphere" size="5" mass="1" condim="1"/></body></worldbody></mujoco>"""


def test_restitution_alone_has_a_derivative():
    """A ball at 3 m/s hits a wall 19 m away and returns at `3 e`: after 10 s, `dx/de = -3 (10 - 19 / 3)`."""
    with jax.enable_x64(True):
        model = loads(WALL)
        simulator = ts.Simulator.of(model, contact=ts.RigidContact.of(model, bounces=True))

        def place_after(restitution):
            sim = simulator.replace({"geoms/*.restitution": restitution})
            start = sim.initial_state(q=jnp.array([40.0]), v=jnp.array([3.0]))
            _, path = ts.rollout(sim, start, jnp.zeros((20, 0)), keep=lambda state, info: state.q[0], backend="xla")
            return path[-1]

        layer = native.compile(place_after, np.float64(1))
        value, gradient = jax.jit(jax.value_and_grad(layer))(0.8)
    np.testing.assert_allclose(value, 59 - 0.8 * 3 * (10 - 19 / 3), rtol=1e-6)
    np.testing.assert_allclose(gradient, -3 * (10 - 19 / 3), rtol=1e-6)
