"""Dynamics at the edges: welded robots, batches, 32-bit numbers, zero mass."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.comparison import relative_error
from tests.evaluation import evaluate
from tests.random_trees import Skeleton, random_configuration, tree
from tests.robots import CONSTRAINED, ROTATING, robot, start
from truesim.files.robots.compiled import from_compiled
from truesim.physics.dynamics import (
    bias_forces,
    body_poses,
    forward_dynamics,
    integrate,
    inverse_dynamics,
    mass_matrix,
    reference_configuration,
    regressor,
    regressors,
)
from truesim.physics.dynamics.regressor import INERTIAL_PARAMETERS, base_parameters, inertial_parameters

BRANCHED = Skeleton((-1, 0, 0, -1), (("free",), ("ball",), ("slide", "hinge"), ()))


def test_reference_configuration_is_mujocos():
    """The robot stands as its file draws it: MuJoCo's qpos0."""
    m, model = tree(BRANCHED, 0)
    np.testing.assert_allclose(reference_configuration(model), m.qpos0, atol=1e-15)


def test_integrate_is_mujocos():
    """Configurations move along velocities as in MuJoCo."""
    m, model = tree(BRANCHED, 0)
    rng = np.random.default_rng(0)
    q, v = random_configuration(m, rng), rng.normal(size=m.nv)
    theirs = q.copy()
    mujoco.mj_integratePos(m, theirs, v, 0.3)
    np.testing.assert_allclose(evaluate(integrate, model, q, 0.3 * v), theirs, atol=1e-14)


def test_batches():
    """A batch of states, and a batch of robots, give what each gives alone."""
    robots = [tree(BRANCHED, seed)[1] for seed in range(3)]
    m, _ = tree(BRANCHED, 0)
    rng = np.random.default_rng(0)
    q = np.stack([random_configuration(m, rng) for _ in robots])
    v, tau = rng.normal(size=(2, len(robots), m.nv))
    stacked = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *robots)

    def both(stacked, q, v, tau):
        batched = jax.vmap(forward_dynamics)(stacked, q, v, tau)
        single = [forward_dynamics(jax.tree.map(lambda x, i=i: x[i], stacked), q[i], v[i], tau[i]) for i in range(3)]
        return batched, jnp.stack(single)

    assert relative_error(*evaluate(both, stacked, q, v, tau)) < 1e-12


def test_a_welded_robot():
    """Bodies without any joint have poses, and no degrees of freedom."""
    text = '<mujoco><worldbody><body pos="1 0 0"><geom size=".1"/><body pos="0 2 0"><geom size=".1"/></body></body>'
    model = from_compiled(mujoco.MjModel.from_xml_string(text + "</worldbody></mujoco>"), None)
    empty = np.zeros(0)
    np.testing.assert_allclose(body_poses(model, empty).translation, [[1, 0, 0], [1, 2, 0]])
    assert mass_matrix(model, empty).shape == (0, 0)
    assert bias_forces(model, empty, empty).shape == forward_dynamics(model, empty, empty, empty).shape == (0,)


def test_inertial_parameters_are_linear_in_mass():
    """Ten numbers a body: mass, first moments, inertia about the origin of its frame."""
    _, model = tree(Skeleton((-1,), (("hinge",),)), 0)
    (ten,) = np.asarray(inertial_parameters(model))
    assert len(INERTIAL_PARAMETERS) == ten.size == 10
    mass, com = float(model.bodies.mass[0]), np.asarray(model.bodies.com[0])
    np.testing.assert_allclose(ten[:4], [mass, *(mass * com)], rtol=1e-14)
    np.testing.assert_allclose(ten[4:7].sum(), model.bodies.inertia[0, :3].sum() + 2 * mass * com @ com, rtol=1e-13)


def test_base_parameters_of_a_known_pendulum():
    """One hinge about z, gravity along y: only the inertia about z and two first moments can be seen."""
    text = """<mujoco><option gravity="0 -9.81 0"/><worldbody><body><joint axis="0 0 1"/>
      <inertial pos=".1 .2 .3" mass="2" diaginertia="1 1 1"/></body></worldbody></mujoco>"""
    model = from_compiled(mujoco.MjModel.from_xml_string(text), None)
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(3, 30, 1))
    Y = evaluate(lambda model, q, v, a: jax.vmap(lambda q, v, a: regressor(model, q, v, a))(q, v, a), model, *samples)
    base = base_parameters(np.concatenate(Y))
    assert [INERTIAL_PARAMETERS[i] for i in base.independent] == ["mx", "my", "Izz"]
    assert base.describe(list(INERTIAL_PARAMETERS)) == ["mx", "my", "Izz"]
    tau = evaluate(inverse_dynamics, model, *(s[0] for s in samples))
    reduced = np.asarray(Y)[0][:, list(base.independent)] @ (base.combination @ np.ravel(inertial_parameters(model)))
    np.testing.assert_allclose(reduced, tau, rtol=1e-9)


@pytest.mark.parametrize("function", [mass_matrix, body_poses])
def test_32_bit_numbers_stay_32_bit(function):
    """With 64-bit mode off, everything is computed in 32 bits."""
    with jax.enable_x64(False):
        _, model = tree(Skeleton((-1,), (("hinge",),)), 0)
        leaves = jax.tree.leaves(function(model, np.zeros(1, dtype=np.float32)))
    assert all(leaf.dtype == np.float32 for leaf in leaves)


@pytest.mark.parametrize("text", [CONSTRAINED, ROTATING], ids=["two links", "ball and free joints"])
def test_regressors_of_many_samples(text):
    """They are those of single samples."""
    model, rng = robot(text), np.random.default_rng(0)
    states = [start(model, seed) for seed in range(3)]
    q, v = (np.stack([np.asarray(getattr(state, x)) for state in states]) for x in "qv")
    a = rng.normal(size=v.shape)
    single = [regressor(model, *(jnp.asarray(x) for x in sample)) for sample in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(regressors(model, q, v, a), np.stack(single), atol=1e-12)
