"""Compiled rollouts: native kernels and XLA agree, with gradients and Jacobians."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.native.conftest import _own_cache  # noqa: F401
from tests.robots import SPINNING, robot, start
from truesim.files.robots.load import loads
from truesim.physics.dynamics import difference, integrate
from truesim.physics.simulation import Simulator, State, kernels
from truesim.physics.simulation.kernels import compile_jacobian, compile_rollout, compile_value_and_gradient
from truesim.physics.simulation.rollout import rollout

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


def test_numbers_of_python_are_not_kept_from_the_first_call():
    """A number that changes from call to call changes the result, whatever its type."""
    run = compile_value_and_gradient(lambda x, a: a * jnp.sum(x**2), np.ones(3), 2.0, backend="xla")
    assert [float(run(np.ones(3), a)[0]) for a in (2.0, 5.0)] == [6.0, 15.0]
    np.testing.assert_array_equal(run(np.ones(3), 5.0)[1][1], 3.0)
    power = kernels.compile(lambda x, n: x**n, np.ones(()), 2, backend="xla")
    assert [float(power(np.asarray(3.0), n)) for n in (2, 3)] == [9.0, 27.0]
    np.testing.assert_array_equal(run(np.ones((2, 3)), 5.0)[0], [15.0, 15.0])


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_pullback(backend):
    """Gradients of weighted sums equal those of JAX; of shared arguments they are sums over the batch."""
    rng = np.random.default_rng(0)
    x, weights, counts = rng.normal(size=(7, 4)), rng.normal(size=(2, 4)), rng.normal(size=(7, 2))

    def f(x, weights):
        return jnp.tanh(jnp.asarray(weights) @ x)

    def total(x, weights):
        return jnp.sum(counts * jax.vmap(f, (0, None))(x, weights))

    by_x, by_weights = jax.grad(total, argnums=(0, 1))(jnp.asarray(x), jnp.asarray(weights))
    batch = 3 if backend == "xla" else None
    pull = kernels.compile_pullback(f, x[0], weights, by=(0, 1), backend=backend, shared=(1,), batch=batch)
    ours = pull(x, weights, counts)
    np.testing.assert_allclose(ours[0], by_x, rtol=1e-12)
    np.testing.assert_allclose(ours[1].sum(axis=0), by_weights, rtol=1e-12)
    values = kernels.compile(f, x[0], weights, backend=backend, shared=(1,), batch=batch)(x, weights)
    np.testing.assert_allclose(values, jax.vmap(f, (0, None))(x, weights), rtol=1e-12)


def test_jacobian_with_rotations():
    """Sensitivities of a free body's orientation are those of its tangent space."""
    model = robot(SPINNING)
    simulator, state = Simulator.of(model), start(model)
    commands = np.zeros((5, 0))
    values, X = evaluate(
        lambda s, u: kernels.sensitivities(lambda m: simulator.replace({"bodies/body1.mass": m}), 1.0, s, u),
        state,
        commands,
    )
    assert X.shape == (5, 12, 13)

    def end(dx):
        moved = State(integrate(model, state.q, dx[:6]), state.v + dx[6:], state.time)
        return rollout(simulator, moved, commands, backend="xla")[0]

    last, h = end(jnp.zeros(12)), 1e-6
    np.testing.assert_allclose(values[-1], np.concatenate([last.q, last.v]), atol=1e-12)
    for k in (3, 5, 10):
        high, low = end(h * jnp.eye(12)[k]), end(-h * jnp.eye(12)[k])
        column = np.concatenate([difference(model, high.q, low.q), high.v - low.v]) / (2 * h)
        np.testing.assert_allclose(X[-1, :, 1 + k], column, atol=1e-8)


def test_unknown_backend_is_refused():
    """A misspelt backend is an error."""
    with pytest.raises(ValueError, match="'native' or 'xla', not 'cuda'"):
        kernels.compile(jnp.sin, np.zeros(()), backend="cuda")
