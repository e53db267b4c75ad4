"""Rollouts on both backends: the same motion and the same derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.core.errors import NameUnknownError
from truesim.formats.load import loads
from truesim.simulate import Simulator, State, record, rollout

ARM = """<mujoco><option timestep="0.005"/><worldbody><body name="a"><joint name="a" axis="0 1 0" damping="0.1"
frictionloss="0.3"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".05"/><body name="b" pos="0 0 -.4"><joint name="b"
axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/></body></body></worldbody><actuator>
<motor joint="a"/><motor joint="b"/></actuator><sensor><jointpos joint="b" name="b"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def problem():
    """A simulator with dry friction, a start, commands, and the sum of the last configuration as a function of mass."""
    model = loads(ARM)
    simulator, start = Simulator.of(model), State.at_rest(model)
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
    plain = jax.jit(jax.grad(lambda m: end(m, "xla")))(mass)
    reverse = jax.jit(jax.grad(lambda m: end(m, None)))(mass)
    forward = jax.jacfwd(lambda m: end(m, "native"))(mass)
    np.testing.assert_allclose(reverse, plain, rtol=1e-10)
    np.testing.assert_allclose(forward, plain, rtol=1e-10)


def test_a_changed_number_needs_no_new_kernel(problem):
    """Outside of traces every number is an input: another mass gives another motion without compiling again."""
    from truesim.simulate import backend

    *_, end = problem
    first = end(jnp.array([3.0, 2.0]), "native")
    count = len(backend._kernels)
    second = end(jnp.array([3.5, 2.0]), "native")
    assert len(backend._kernels) == count
    assert abs(float(first - second)) > 1e-6


def test_an_unknown_backend_is_named(problem):
    """The error lists the backends."""
    simulator, start, commands, _ = problem
    with pytest.raises(NameUnknownError, match="native, xla"):
        rollout(simulator, start, commands, backend="cuda")
