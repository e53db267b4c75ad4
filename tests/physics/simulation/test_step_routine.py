"""Steps of the file's constraint model as one call inside `jit` and `vmap`."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.physics.constraints.scenes import mujoco_of, simulator_of, tied, tumbling
from truesim import native
from truesim.core.errors import TruesimError
from truesim.physics.dynamics import integrate
from truesim.physics.simulation import StepRoutine, linearize, record, rollout

BATCH, STEPS = 11, 25


@pytest.fixture(scope="module")
def simulator():
    return simulator_of(tumbling("sphere", "elliptic", 3))[1]


def test_batch_with_values_of_its_own(simulator):
    """Each batch element moves as a simulator with its numbers does, also in a loop over control steps."""
    rng = np.random.default_rng(0)
    mass, friction = jnp.asarray(rng.uniform(0.2, 0.6, BATCH)), jnp.asarray(rng.uniform(0.3, 1.0, BATCH))
    state = simulator.initial_state()

    def values(mass, friction):
        return {"bodies/arm.mass": mass, "geoms/foot.friction[0]": friction, "joints/*.damping": 0.1 * mass}

    @jax.jit
    def run(mass, friction):
        routines = jax.vmap(lambda m, f: StepRoutine.of(simulator.replace(values(m, f))))(mass, friction)
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (BATCH, *x.shape)), state)

        def control_step(states, _):
            states, _ = jax.vmap(lambda r, s: r.rollout(s, jnp.full((5, 1), 0.2)))(routines, states)
            return states, states.q

        return jax.lax.scan(control_step, states, length=STEPS // 5)

    with native.use_threads(2):
        last, _ = run(mass, friction)
    for b in (0, BATCH - 1):
        alone = simulator.replace(values(float(mass[b]), float(friction[b])))
        expected, _ = rollout(alone, state, jnp.full((STEPS, 1), 0.2))
        np.testing.assert_allclose(last.q[b], expected.q, rtol=0, atol=1e-13)
        np.testing.assert_allclose(last.acceleration[b], expected.acceleration, rtol=0, atol=1e-9)
    assert float(last.time[0]) == pytest.approx(STEPS * float(simulator.timestep))


def test_single_precision(simulator):
    """With 64-bit numbers off, the same motion in single precision."""
    expected, _ = rollout(simulator, simulator.initial_state(), jnp.zeros((STEPS, 1)))
    with jax.enable_x64(False):
        state = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), simulator.initial_state())
        found, _ = jax.jit(lambda s: StepRoutine.of(simulator).rollout(s, jnp.zeros((STEPS, 1))))(state)
        assert found.q.dtype == jnp.float32
    np.testing.assert_allclose(found.q, expected.q, atol=2e-5)


def test_simulators_that_the_routines_refuse(simulator):
    """The reason is given: another contact model, or a traced size of a geom."""
    with pytest.raises(TruesimError, match="the contact model is not the file's"):
        StepRoutine.of(dataclasses.replace(simulator, contact=None))

    def resized(size):
        return StepRoutine.of(simulator.replace({"geoms/foot.size": size})).timestep

    with pytest.raises(TruesimError, match=r"geoms\.size are traced"):
        jax.jit(resized)(jnp.array([0.1, 0.0, 0.0]))


@pytest.mark.parametrize(
    ("shape", "cone", "integrator"),
    [
        ("sphere", "elliptic", "implicitfast"),
        ("sphere", "elliptic", "implicit"),
        ("capsule", "pyramidal", "Euler"),
        ("sphere", "elliptic", "RK4"),
    ],
)
def test_derivatives_of_a_rollout(shape, cone, integrator):
    """Both modes agree with each other to rounding, and with central differences, in state, commands and values."""
    simulator = simulator_of(tumbling(shape, cone, 3, integrator), exact=True)[1]
    start, _ = rollout(simulator, simulator.initial_state(v=0.5 * jnp.ones(7)), jnp.zeros((15, 1)))
    rng = np.random.default_rng(0)
    at = (jnp.zeros(7), start.v, jnp.asarray(rng.normal(size=(10, 1))), jnp.array([0.3, 0.72, 0.02, 0.1]))
    to = tuple(jnp.asarray(rng.normal(size=x.shape)) for x in at)
    weights = jnp.asarray(rng.normal(size=8))

    def loss(displacement, v, commands, values):
        paths = ("bodies/arm.mass", "geoms/foot.friction[0]", "geoms/foot.solref[0]", "joints/elbow.damping")
        changed = simulator.replace(dict(zip(paths, values, strict=True)))
        state = dataclasses.replace(start, q=integrate(simulator.model, start.q, displacement), v=v)
        last, states = rollout(changed, state, commands)
        return last.q @ weights + jnp.sum(jnp.sin(states.v))

    reverse = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(*at)
    forward = jax.jit(lambda at, to: jax.jvp(loss, at, to)[1])(at, to)
    value = jax.jit(loss)
    assert sum(jnp.sum(g * t) for g, t in zip(reverse, to, strict=True)) == pytest.approx(float(forward), rel=1e-12)
    for k, (g, t) in enumerate(zip(reverse, to, strict=True)):
        ends = [value(*(x + s * 1e-6 * t if i == k else x for i, x in enumerate(at))) for s in (1, -1)]
        assert float(jnp.sum(g * t)) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, abs=2e-7 * abs(float(forward)))


def test_batched_gradient_of_shared_values(simulator):
    """The gradient by a value that a batch shares is the sum over the batch."""
    state = simulator.initial_state()

    def loss(time_constant, v):
        changed = simulator.replace({"geoms/foot.solref[0]": time_constant})
        return rollout(changed, dataclasses.replace(state, v=v), jnp.zeros((30, 1)))[0].q[0]

    v = jnp.asarray(np.random.default_rng(0).normal(size=(3, 7)))
    total = jax.jit(jax.grad(lambda f: jnp.sum(jax.vmap(lambda v: loss(f, v))(v))))(0.03)
    alone = [jax.jit(jax.grad(loss))(0.03, x) for x in v]
    assert float(total) == pytest.approx(float(sum(alone)), rel=1e-10)
    assert float(total) != 0


@pytest.mark.parametrize("scene", ["tumbling", "tied"])
def test_linearize_against_mujoco(scene):
    """A and B agree with central differences of `mj_step`, solved to rounding, for a body that touches and for ties."""
    text = tumbling("box", "elliptic", 3) if scene == "tumbling" else tied("Euler")
    simulator = simulator_of(text, exact=True)[1]
    m, d = mujoco_of(text)
    m.opt.tolerance, m.opt.ls_tolerance = 0.0, 1e-8
    for _ in range(20):
        mujoco.mj_step(m, d)
    assert d.ncon or d.ne
    A, B = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))
    mujoco.mjd_transitionFD(m, d, 1e-6 if scene == "tumbling" else 1e-7, True, A, B, None, None)
    state = simulator.initial_state(jnp.asarray(d.qpos), jnp.asarray(d.qvel))
    ours = jax.jit(lambda s: linearize(simulator, s, jnp.zeros(m.nu)))(state)
    for found, expected in zip(ours, (A, B), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_closed_loop(simulator):
    """A controller's motion is that of its commands; derivatives pass through it; nothing is solved in XLA."""
    state = simulator.initial_state()

    def loop(gain):
        def control(state, count, time):
            return -gain * state.q[7:] + jnp.sin(9 * time), count + 1

        return rollout(simulator, state, control, steps=STEPS, memory=0, keep=lambda state, _: state.q)

    (last, count), q = loop(2.0)
    commands = -2.0 * jnp.concatenate([state.q[None], q[:-1]])[:, 7:]
    commands += jnp.sin(9 * simulator.timestep * jnp.arange(float(STEPS)))[:, None]
    _, replayed = rollout(simulator, state, commands, keep=lambda state, _: state.q)
    np.testing.assert_allclose(q, replayed, atol=1e-14)
    assert int(count) == STEPS
    np.testing.assert_array_equal(last.q, q[-1])
    slope = jax.grad(lambda gain: loop(gain)[0][0].q[7])(2.0)
    ends = [loop(2.0 + s)[0][0].q[7] for s in (1e-5, -1e-5)]
    assert float(slope) == pytest.approx(float(ends[0] - ends[1]) / 2e-5, rel=1e-4)
    motion = record(simulator, state, lambda s, m, t: (-2.0 * s.q[7:] + jnp.sin(9 * t), m), steps=STEPS)
    np.testing.assert_allclose(motion.q[1:], q, atol=1e-14)


def test_diagnostics_come_from_the_definition(simulator):
    """What reads the diagnostics of a step is given those of the definition."""
    state, commands = simulator.initial_state(), jnp.zeros((2, 1))
    _, force = rollout(simulator, state, commands, keep=lambda _, info: info.constraint_force)
    assert force.shape == (2, 7)


def test_linearize_from_several_threads(simulator):
    """Calls for one instance keep arrays, which those of other threads at the same time leave alone."""
    state = simulator.initial_state()
    velocities = list(np.random.default_rng(1).normal(size=(40, state.v.size)))
    run = jax.jit(lambda v: linearize(simulator, dataclasses.replace(state, v=v), jnp.zeros(1)))
    alone = [jax.tree.map(np.asarray, run(v)) for v in velocities]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda v: jax.tree.map(np.asarray, run(v)), velocities))
    for found, expected in zip(together, alone, strict=True):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    assert len({A.tobytes() for A, _ in alone}) == len(alone)
