"""Contract of joint models, checked on every member of the family."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import compiled
from tests.robots import CONSTRAINED, robot
from truesim.physics.dynamics.joint_friction import gravity_load
from truesim.physics.model import paths
from truesim.physics.simulation import MujocoJointModel, Simulator, SmoothJointModel
from truesim.physics.simulation.joint_models import AbstractJointModel

MEMBERS = {MujocoJointModel: MujocoJointModel.of, SmoothJointModel: SmoothJointModel.of}


def test_every_member_is_tested():
    """A new joint model is to be added above."""
    assert set(MEMBERS) == set(AbstractJointModel.__subclasses__())


@pytest.fixture(scope="module", params=MEMBERS, ids=lambda kind: kind.__name__)
def force(request):
    """Total force of a joint model's friction and limits at a state, and whether it converged."""
    model = robot(CONSTRAINED)
    simulator = Simulator.of(model, joint_model=MEMBERS[request.param](model))

    def evaluated(simulator, q, v, loss, stiction):
        joints = dataclasses.replace(simulator.model.joints, frictionloss=loss, stiction=stiction)
        simulator = dataclasses.replace(simulator, model=dataclasses.replace(simulator.model, joints=joints))
        equation = simulator.equation(jnp.zeros(2))
        constraint = equation.forces(q, v).constraint
        return constraint.force + simulator.joint_model.force(simulator.model, q, v), constraint.converged

    run = compiled(evaluated, simulator, *np.zeros((4, 2)))
    return lambda q, v, loss, stiction=(0.0, 0.0): run(simulator, *map(np.array, (q, v, loss, stiction)))


INSIDE, LOSS = (-0.1, 0.0), (0.3, 0.05)


def test_friction_opposes_motion_with_the_given_force(force):
    """Fast motion meets the full friction, against its direction, and no more."""
    for v in ([20.0, -30.0], [-20.0, 30.0]):
        found, converged = force(INSIDE, v, LOSS)
        np.testing.assert_allclose(found, -np.sign(v) * LOSS, rtol=1e-9)
        assert converged


def test_friction_never_exceeds_its_bound_and_never_drives(force):
    """Friction stays within its bound at any speed and takes energy out."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        v = rng.normal(size=2) * 10.0 ** rng.uniform(-4, 1)
        found, converged = force(INSIDE, v, LOSS)
        assert np.all(np.abs(found) <= np.array(LOSS) * (1 + 1e-9))
        assert converged


def test_stiction_fades_with_speed(force):
    """Slow sliding meets frictionloss + stiction exp(-(v / stribeck_velocity)^2)."""
    for v in ([0.1, -0.15], [0.3, -5.0]):
        found, _ = force(INSIDE, v, (0.03, 0.005), (0.01, 0.002))
        level = np.array((0.03, 0.005)) + np.array((0.01, 0.002)) * np.exp(-((np.array(v) / 0.1) ** 2))
        np.testing.assert_allclose(found, -np.sign(v) * level, rtol=1e-6)


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_friction_grows_with_the_load_of_gravity(kind):
    """Fast motion meets frictionloss + load_friction |gravity torque|."""
    model = robot(CONSTRAINED)
    for name, share in zip(model.joints.names, (0.1, 0.3), strict=True):
        model = paths.write(model, f"joints/{name}.load_friction", np.asarray(share))
    simulator = Simulator.of(model, joint_model=MEMBERS[kind](model))
    q, v = np.array(INSIDE), np.array([20.0, -30.0])

    def evaluated(simulator, q, v):
        constraint = simulator.equation(jnp.zeros(2)).forces(q, v).constraint
        return constraint.force + simulator.joint_model.force(simulator.model, q, v), gravity_load(simulator.model, q)

    found, load = compiled(evaluated, simulator, q, v)(simulator, q, v)
    assert np.abs(load).max() > 0
    level = np.asarray(model.joints.frictionloss) + np.array((0.1, 0.3)) * np.abs(load)
    np.testing.assert_allclose(found, -np.sign(v) * level, rtol=1e-6)


def test_limits_push_back(force):
    """Beyond a limit the force points back inside; well inside there is none."""
    below, _ = force((-0.6, 0.0), (0.0, 0.0), (0.0, 0.0))
    above, _ = force((0.5, 0.0), (0.0, 0.0), (0.0, 0.0))
    inside, _ = force(INSIDE, (0.5, 0.5), (0.0, 0.0))
    assert below[0] > 0.1
    assert above[0] < -0.1
    np.testing.assert_allclose(inside, 0, atol=1e-9)
