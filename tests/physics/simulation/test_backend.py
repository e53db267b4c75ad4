"""Rollouts on both backends: the same motion and the same derivatives."""

import time
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.memory import resident_memory
from truesim.core.errors import NameUnknownError
from truesim.files.robots.load import loads
from truesim.physics.simulation import Simulator, backend, record, rollout
from truesim.physics.simulation.backend import KernelCache

ARM = """<mujoco><option timestep="0.005"/><worldbody><body name="a"><joint name="a" axis="0 1 0" damping="0.1"
frictionloss="0.3"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".05"/><body name="b" pos="0 0 -.4"><joint name="b"
axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/></body></body></worldbody><actuator>
<motor joint="a"/><motor joint="b"/></actuator><sensor><jointpos joint="b" name="b"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def problem():
    """A simulator with dry friction, a start, commands, and the sum of the last configuration as a function of mass."""
    model = loads(ARM)
    simulator = Simulator.of(model)
    start = simulator.initial_state()
    commands = jnp.asarray(np.random.default_rng(0).normal(size=(40, 2)))

    def end(mass, backend):
        changed = eqx.tree_at(lambda s: s.model.bodies.mass, simulator, mass)
        return jnp.sum(rollout(changed, start, commands, backend=backend)[0].q)

    return simulator, start, commands, end


def test_the_same_motion(problem):
    """Native kernels and XLA give the same trajectory, sensors and diagnostics."""
    simulator, start, commands, _ = problem
    native, xla = (record(simulator, start, commands, backend=b) for b in ("native", "xla"))
    np.testing.assert_allclose(native.q, xla.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(native.sensors["b"], xla.sensors["b"], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(native.info.iterations, xla.info.iterations)


def test_the_same_derivatives(problem):
    """Reverse and forward mode through the kernel equal those of plain JAX."""
    *_, end = problem
    mass = jnp.array([3.0, 2.0])
    plain = evaluate(jax.grad(lambda m: end(m, "xla")), mass)
    reverse = jax.jit(jax.grad(lambda m: end(m, None)))(mass)
    forward = jax.jacfwd(lambda m: end(m, "native"))(mass)
    np.testing.assert_allclose(reverse, plain, rtol=1e-10)
    np.testing.assert_allclose(forward, plain, rtol=1e-10)


def test_a_changed_number_needs_no_new_kernel(problem):
    """Outside of traces every number is an input: another mass gives another motion without compiling again."""
    *_, end = problem
    first = end(jnp.array([3.0, 2.0]), "native")
    count = len(backend._kernels)
    second = end(jnp.array([3.5, 2.0]), "native")
    assert len(backend._kernels) == count
    assert abs(float(first - second)) > 1e-6


def test_a_fresh_lambda_compiles_once(problem):
    """`keep=lambda ...`, written anew in every call, is one kernel; another closure is another one."""
    simulator, start, commands, _ = problem

    def kept(factor):
        return rollout(simulator, start, commands, keep=lambda state, info: factor * state.q)[1]

    single = kept(1.0)
    count = len(backend._kernels)
    np.testing.assert_array_equal(kept(1.0), single)
    assert len(backend._kernels) == count
    np.testing.assert_allclose(kept(3.0), 3.0 * single, rtol=1e-14)
    assert len(backend._kernels) == count + 1


def test_the_cache_is_bounded_and_shared_by_threads():
    """The least recently used kernel goes first, and threads that ask at once compile once."""
    cache, made = KernelCache(capacity=2), []

    def make(key):
        made.append(key)
        time.sleep(0.02)
        return key

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: cache.get("a", lambda: make("a")), range(8))) == {"a"}
    assert made == ["a"]
    for key in ("b", "a", "c"):
        cache.get(key, lambda key=key: make(key))
    assert len(cache) == 2
    cache.get("a", lambda: make("a"))
    assert made == ["a", "b", "c"]
    cache.get("b", lambda: make("b"))
    assert made == ["a", "b", "c", "b"]


def test_an_unknown_backend_is_named(problem):
    """The error lists the backends."""
    simulator, start, commands, _ = problem
    with pytest.raises(NameUnknownError, match="native, xla"):
        rollout(simulator, start, commands, backend="cuda")


def test_lengths_of_records_leave_little_behind(monkeypatch):
    """A record of a new length compiles one kernel and nothing else; kernels beyond the capacity are dropped."""
    monkeypatch.setattr(backend, "_kernels", backend.KernelCache(2))
    simulator = Simulator.of(loads(ARM))
    state = simulator.initial_state()

    def run(steps):
        assert record(simulator, state, np.zeros((steps, simulator.model.nu))).q.shape[0] == steps + 1

    for steps in range(2, 7):
        run(steps)
    before = resident_memory()
    for steps in range(7, 17):
        run(steps)
    assert resident_memory() - before < 8e6  # an XLA executable takes 1.4 MB
