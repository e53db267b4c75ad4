"""Derivatives of one step on the tangent space: against MuJoCo's and against central differences."""

import dataclasses

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.evaluation import compiled, evaluate
from tests.robots import CONSTRAINED, ROTATING, SMOOTH, robot, start
from truesim.files.robots.compiled import from_compiled
from truesim.physics.blueprint import GRU, Blueprint, Rule
from truesim.physics.dynamics import difference, integrate
from truesim.physics.simulation import Simulator, linearize
from truesim.physics.simulation.linearize import displacement, perturb

BALL_AND_FREE = """
<mujoco><compiler angle="radian"/><option timestep="0.005" integrator="{}"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1" quat="1 .2 -.1 .3"><joint name="ball" type="ball" pos="0 .1 .1" damping=".05"/>
    <inertial pos=".1 -.1 .2" mass="1" fullinertia=".06 .07 .08 .004 -.003 .002"/></body>
  <body pos="1 0 0" quat="1 0 0 .4"><freejoint name="free"/>
    <inertial pos=".05 .02 0" mass="1" diaginertia=".04 .06 .05"/>
    <body pos=".2 0 0"><joint name="hinge" axis="0 1 1" damping=".1"/><inertial pos="0 .1 0" mass=".3"
      diaginertia=".02 .03 .04"/></body></body>
</worldbody><actuator><motor joint="ball" gear="1 2 3 0 0 0"/><position joint="hinge" kp="5"/></actuator></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_the_same_as_mujoco(integrator):
    """A and B equal those of mjd_transitionFD for a ball joint and a free body that carries a hinge."""
    m = mujoco.MjModel.from_xml_string(BALL_AND_FREE.format(integrator))
    model = from_compiled(m, None)
    state, command = start(model), np.array([0.3, -0.2])
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.ctrl = state.q, state.v, command
    A, B = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))
    mujoco.mjd_transitionFD(m, d, 1e-6, True, A, B, None, None)
    ours = evaluate(linearize, Simulator.of(model), state, command)
    np.testing.assert_allclose(ours[0], A, atol=2e-8)
    np.testing.assert_allclose(ours[1], B, atol=2e-8)


@pytest.mark.parametrize("text", [SMOOTH, CONSTRAINED, ROTATING], ids=["servos", "friction", "rotations"])
def test_central_differences_on_the_manifold(text):
    """Columns of A and B equal differences of steps from states moved along the tangent space."""
    model = robot(text)
    simulator, state = Simulator.of(model), start(model)
    command = jnp.asarray(np.random.default_rng(1).normal(size=model.nu))
    nv, h = model.nv, 1e-6

    def step(dx, du):
        before = dataclasses.replace(state, q=integrate(model, state.q, dx[:nv]), v=state.v + dx[nv:])
        return simulator.step(before, command + du)[0]

    def difference_of_steps(dx, du):
        high, low = step(h * dx, h * du), step(-h * dx, -h * du)
        return jnp.concatenate([difference(model, high.q, low.q), high.v - low.v]) / (2 * h)

    column = compiled(difference_of_steps, jnp.zeros(2 * nv), jnp.zeros(model.nu))
    A, B = evaluate(linearize, simulator, state, command)
    assert A.shape == (2 * nv, 2 * nv)
    assert B.shape == (2 * nv, model.nu)
    for k in range(2 * nv):
        np.testing.assert_allclose(A[:, k], column(jnp.eye(2 * nv)[k], jnp.zeros(model.nu)), atol=1e-7)
    for k in range(model.nu):
        np.testing.assert_allclose(B[:, k], column(jnp.zeros(2 * nv), jnp.eye(model.nu)[k]), atol=1e-7)


def test_perturbation_and_displacement_are_inverse():
    """For configurations with rotations, and for what networks remember."""
    model = robot(ROTATING)
    rule = Rule("joint.torque", ("joint.velocity",), GRU(2))
    simulator = Simulator.of(model, blueprint=Blueprint((rule,)))
    state = evaluate(lambda simulator, state: simulator.started(state, jnp.zeros(0)), simulator, start(model))
    size = 2 * model.nv + 2 * model.nv
    dx = 0.1 * jnp.asarray(np.random.default_rng(0).normal(size=size))
    back = evaluate(lambda state, dx: displacement(model, perturb(model, state, dx), state), state, dx)
    np.testing.assert_allclose(back, dx, atol=1e-13)
    A, B = evaluate(linearize, simulator, state, jnp.zeros(0))
    assert A.shape == (2 * model.nv, 2 * model.nv)
    assert B.shape == (2 * model.nv, 0)
