"""Derivatives through limits, dry friction, closed chains and the place of a geom, in both modes."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.physics.contact.scenes import rigid, scene
from truesim import native
from truesim.physics.dynamics import integrate
from truesim.physics.simulation import State

LEG = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/><body pos="0 0 .5555">
  <joint name="hip" axis="0 1 0" frictionloss=".3"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3" mass="1"
   contype="0" conaffinity="0"/>
  <body pos="0 0 -.3"><joint name="knee" axis="0 1 0" range="-60 20" limited="true"/>
   <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3" mass=".7" contype="0" conaffinity="0"/>
   <geom name="foot" size=".03" pos="0 0 -.3" mass=".1"/></body></body>
  <body pos="1 0 1"><joint name="twin" axis="0 1 0"/>
   <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".5" contype="0" conaffinity="0"/></body></worldbody>
  <equality><joint joint1="twin" joint2="hip" polycoef="0 .5 .1 0 0"/></equality>
  <actuator><motor joint="knee"/></actuator></mujoco>"""
CASES = {
    "sliding": ([0.5, -1.0], [0.5, 0.8], 2.0),
    "held": ([0.5, -1.0], [0.0, 0.0], 2.0),
    "at a limit": ([0.2, -1.0482], [0.3, -2.0], -1.0),
    "in the air": ([1.2, -1.0], [0.5, -0.4], 0.5),
}
"""Angles of hip and knee, their speeds, and the torque at the knee; the knee's limit is at -1.0472 rad."""
SIZES = {"q": 3, "v": 3, "torque": 1, "mass": 3, "loss": 1, "range": 2, "place": 3, "size": 1, "friction": 1, "law": 2}
COLUMNS = sum(SIZES.values())
EXACT = 1e-6
"""Part of the largest derivative by which forward mode, reverse mode and central differences may differ."""


def step(x, q, v, torque):
    """The next configuration and velocity, as a function of everything at once."""
    simulator = rigid(scene(LEG))
    model = simulator.model
    pieces = jnp.split(x, np.cumsum(list(SIZES.values()))[:-1])
    d = dict(zip(SIZES, pieces, strict=True))
    foot, (joints, geoms) = model.geoms.names.index("foot"), (model.joints, model.geoms)
    hip, knee = (joints.names.index(name) for name in ("hip", "knee"))
    joints = dataclasses.replace(
        joints,
        frictionloss=jnp.asarray(joints.frictionloss).at[hip].add(d["loss"][0]),
        range=jnp.asarray(joints.range).at[knee].add(d["range"]),
    )
    geoms = dataclasses.replace(
        geoms,
        position=jnp.asarray(geoms.position).at[foot].add(d["place"]),
        size=jnp.asarray(geoms.size).at[foot, 0].add(d["size"][0]),
        friction=jnp.asarray(geoms.friction).at[:, 0].add(d["friction"]),
    )
    mass = jnp.asarray(model.bodies.mass) + d["mass"]
    law = jnp.asarray(model.equalities.coefficients).at[0, 1:3].add(d["law"])
    changed = eqx.tree_at(
        lambda m: (m.joints, m.geoms, m.bodies.mass, m.equalities.coefficients), model, (joints, geoms, mass, law)
    )
    simulator = eqx.tree_at(lambda s: s.model, simulator, changed)
    state, _ = simulator.step(State(integrate(model, q, d["q"]), v + d["v"], jnp.zeros(())), torque + d["torque"])
    return jnp.concatenate([state.q, state.v])


@pytest.fixture(scope="module")
def derivatives():
    """The step with its derivative along a direction, and its derivatives from a weight of the outputs."""
    x, three, one = np.zeros(COLUMNS), np.zeros(3), np.zeros(1)

    def along(x, dx, q, v, torque):
        return jax.jvp(lambda x: step(x, q, v, torque), (x,), (dx,))

    def back(x, weights, q, v, torque):
        return jax.vjp(lambda x: step(x, q, v, torque), x)[1](weights)[0]

    return native.compile(along, x, x, three, three, one), native.compile(back, x, np.zeros(6), three, three, one)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_central_differences_in_both_modes(derivatives, case):
    """With respect to state, torque, mass, dry friction, limits, geometry, friction and the law of a coupling."""
    forward, reverse = derivatives
    (hip, knee), (hip_speed, knee_speed), torque = CASES[case]
    q = np.array([hip, knee, 0.5 * hip + 0.1 * hip**2])
    state = q, np.array([hip_speed, knee_speed, (0.5 + 0.2 * hip) * hip_speed]), np.array([torque])
    directions, h = np.eye(COLUMNS), 1e-5
    ends = [forward(k * h * directions, directions, *state)[0] for k in (1, -1, 2, -2)]
    central = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
    value, tangents = forward(np.zeros(COLUMNS), directions, *state)
    assert np.all(np.isfinite(value))
    assert np.max(np.abs(tangents - central)) <= EXACT * np.max(np.abs(central))
    weights = np.random.default_rng(0).normal(size=6)
    pulled = reverse(np.zeros(COLUMNS), weights, *state)
    assert np.max(np.abs(pulled - tangents @ weights)) <= EXACT * np.max(np.abs(pulled))
