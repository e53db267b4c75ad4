"""Compiled rollouts: native kernels and XLA agree, with gradients and Jacobians."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.native.conftest import _own_cache  # noqa: F401
from truesim.formats.load import loads
from truesim.simulate import Simulator, State
from truesim.simulate.compiled import compile_jacobian, compile_rollout, compile_value_and_gradient, compiled
from truesim.simulate.rollout import rollout

XML = """
<mujoco><worldbody>
  <body name="a"><joint name="a" axis="0 1 0" damping="0.1"/>
    <inertial pos="0 0.01 -0.2" mass="1" diaginertia="0.01 0.02 0.01"/>
    <body name="b" pos="0 0 -0.4"><joint name="b" axis="0 1 0" damping="0.05"/>
      <inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.01"/></body></body>
</worldbody><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>
"""
STEPS, BATCH = 40, 5


@pytest.fixture(scope="module")
def case():
    """A double pendulum, states and commands of a batch."""
    simulator = jax.tree.map(lambda x: np.asarray(x) if eqx.is_array(x) else x, Simulator.of(loads(XML)))
    rng = np.random.default_rng(0)
    states = State(rng.normal(size=(BATCH, 2)), rng.normal(size=(BATCH, 2)), np.zeros(BATCH))
    return simulator, states, rng.normal(size=(BATCH, STEPS, 2))


def _one(tree):
    return jax.tree.map(lambda x: x[0], tree)


def _assert_close(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10), a, b)


def test_rollout(case):
    """A batch of rollouts is the same from both backends, and as one instance at a time."""
    simulator, states, commands = case
    native, xla = (
        compile_rollout(simulator, _one(states), commands[0], backend=b)(simulator, states, commands)
        for b in ("native", "xla")
    )
    _assert_close(native, xla)
    _assert_close(_one(native[1]), rollout(simulator, _one(states), commands[0])[1])


def test_value_and_gradient(case):
    """A loss and its gradient by masses, initial state and commands agree."""
    simulator, states, commands = case
    mass = simulator.model.bodies.mass

    def loss(mass, q, commands):
        changed = eqx.tree_at(lambda s: s.model.bodies.mass, simulator, mass)
        start = State(q, jnp.zeros(2), jnp.zeros(()))
        return jnp.mean(rollout(changed, start, commands, keep=lambda s, _: s.q)[1] ** 2)

    native, xla = (
        compile_value_and_gradient(loss, mass, states.q[0], commands[0], backend=b)(mass, states.q, commands)
        for b in ("native", "xla")
    )
    _assert_close(native, xla)


def test_jacobian(case):
    """The sensitivities of a rollout agree between backends and with forward mode through the whole rollout."""
    simulator, states, commands = case

    def simulator_of(mass):
        return eqx.tree_at(lambda s: s.model.bodies.mass, simulator, mass)

    mass = simulator.model.bodies.mass
    native, xla = (
        compile_jacobian(simulator_of, mass, _one(states), commands[0], backend=b)(mass, states, commands)
        for b in ("native", "xla")
    )
    _assert_close(native, xla)

    def positions(mass, q):
        start = State(q, states.v[0], states.time[0])
        return rollout(simulator_of(mass), start, commands[0], keep=lambda s, _: s.q)[1]

    by_mass, by_q = jax.jacfwd(positions, argnums=(0, 1))(mass, states.q[0])
    _assert_close(native[1][0, :, :2, : mass.size], by_mass)
    _assert_close(native[1][0, :, :2, mass.size : mass.size + 2], by_q)


def test_unknown_backend_is_refused():
    """A misspelt backend is an error."""
    with pytest.raises(ValueError, match="'native' or 'xla', not 'cuda'"):
        compiled(jnp.sin, np.zeros(()), backend="cuda")
