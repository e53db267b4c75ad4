"""Rollouts under a controller: the same as with its commands, with memory, derivatives and one compilation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.robots import SMOOTH, robot
from truesim.core.errors import TruesimError
from truesim.physics.model import paths
from truesim.physics.simulation import Simulator, backend, record, rollout

STEPS = 12
TARGET = np.array([0.4, -0.1])


def gains(a, b):
    """A PD controller of both joints, and nothing on the third actuator; it counts its calls."""

    def control(state, count, time):
        force = a * (jnp.asarray(TARGET) - state.q) - b * state.v + 0.1 * jnp.sin(20 * time)
        return jnp.append(force, 0.0), count + 1

    return control


@pytest.fixture(scope="module")
def simulator():
    """An arm whose first actuator is late."""
    return Simulator.of(paths.write(robot(SMOOTH), "actuators/actuator0.delay", 0.015))


@pytest.mark.parametrize("where", ["native", "xla"])
def test_a_controller_equals_its_commands(simulator, where):
    """Recorded commands, replayed as an array, give the same motion; so does a rollout."""
    state = simulator.initial_state()
    control = gains(jnp.asarray(3.0), jnp.asarray(0.2))
    motion = record(simulator, state, control, steps=STEPS, memory=0, backend=where)
    replayed = record(simulator, state, motion.command[:-1], backend=where)
    assert int(motion.memory) == STEPS
    for a, b in zip(
        jax.tree.leaves(replayed), jax.tree.leaves(eqx.tree_at(lambda m: m.memory, motion, None)), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-13)
    (last, count), q = rollout(simulator, state, control, steps=STEPS, memory=0, keep=lambda s, _: s.q, backend=where)
    np.testing.assert_allclose(q, motion.q[1:], atol=1e-13)
    np.testing.assert_allclose(last.v, motion.end.v, atol=1e-13)
    assert int(count) == STEPS
    assert jax.tree.structure(last) == jax.tree.structure(state)


def test_gradient_by_gains(simulator):
    """Reverse mode through the closed loop equals central differences, on both backends."""
    state = simulator.initial_state()

    def cost(a, backend):
        (last, _), _ = rollout(simulator, state, gains(a, 0.2), steps=STEPS, memory=0, backend=backend)
        return jnp.sum((last.q - jnp.asarray(TARGET)) ** 2)

    x, h = jnp.asarray(3.0), 1e-4
    central = (cost(x + h, "native") - cost(x - h, "native")) / (2 * h)
    for where in ("native", "xla"):
        np.testing.assert_allclose(jax.grad(lambda a, where=where: cost(a, where))(x), central, rtol=1e-6)


def test_recurrent_memory(simulator):
    """Memory is any tree: an integral of the error acts as it does step by step, and the loop goes on from its end."""
    state = simulator.initial_state()

    def integrate(state, memory, time):
        total = memory["total"] + (jnp.asarray(TARGET) - state.q)
        return jnp.append(2.0 * total, 0.0), {"total": total, "last": state.q}

    first = {"total": jnp.zeros(2), "last": state.q}
    (_, memory), q = rollout(simulator, state, integrate, steps=STEPS, memory=first, keep=lambda s, _: s.q)
    expected = TARGET * STEPS - np.sum(np.concatenate([np.asarray(state.q)[None], q[:-1]]), axis=0)
    np.testing.assert_allclose(memory["total"], expected, atol=1e-13)
    np.testing.assert_allclose(memory["last"], q[-2], atol=0)
    half, middle = rollout(simulator, state, integrate, steps=STEPS // 2, memory=first, keep=lambda s, _: s.q)
    _, rest = rollout(simulator, half[0], integrate, steps=STEPS // 2, memory=half[1], keep=lambda s, _: s.q)
    np.testing.assert_allclose(np.concatenate([middle, rest]), q, atol=1e-13)


def test_fresh_functions_compile_once(simulator):
    """A new lambda in every call, with new gains in it, needs no new kernel; another constant does."""
    state = simulator.initial_state()

    def run(gain, offset):
        controller = lambda s, m, t: (jnp.append(-gain * s.q, offset), m)  # noqa: E731
        return rollout(simulator, state, controller, steps=4, keep=lambda s, _: s.q + offset)[1]

    first = run(jnp.asarray(1.0), 0.0)
    count = len(backend._kernels)
    assert np.abs(run(jnp.asarray(9.0), 0.0) - first).max() > 1e-6
    assert len(backend._kernels) == count
    np.testing.assert_allclose(run(jnp.asarray(1.0), 1.0)[0], first[0] + 1.0, atol=1e-2)
    assert len(backend._kernels) == count + 1
    run(jnp.asarray(2.0), 1.0)
    assert len(backend._kernels) == count + 1


def test_a_network_as_controller(simulator):
    """A module is a controller; its weights are inputs, so that training compiles once."""

    class Policy(eqx.Module):
        weights: jax.Array

        def __call__(self, state, memory, time):
            return self.weights @ jnp.concatenate([state.q, state.v]), memory

    state = simulator.initial_state()
    rollout(simulator, state, Policy(jnp.zeros((3, 4))), steps=4)
    count = len(backend._kernels)
    rollout(simulator, state, Policy(jnp.ones((3, 4))), steps=4)
    assert len(backend._kernels) == count
    gradient = jax.grad(lambda p: rollout(simulator, state, p, steps=4)[0][0].q[0])(Policy(jnp.ones((3, 4))))
    assert np.abs(gradient.weights).max() > 0


def test_wrong_arguments_are_refused(simulator):
    """Steps belong to a controller, and a controller needs them."""
    state = simulator.initial_state()
    with pytest.raises(TruesimError, match="number of time steps"):
        rollout(simulator, state, gains(1.0, 0.0))
    with pytest.raises(TruesimError, match="belong to a controller"):
        rollout(simulator, state, jnp.zeros((3, 3)), steps=3)
