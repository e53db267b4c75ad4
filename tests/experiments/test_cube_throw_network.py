"""A network in the place of the friction of compliant contact, and friction that is free in every step."""

import jax
import numpy as np
import pytest

from experiments.cube_throw import network
from experiments.cube_throw.floor import FreeSteps
from experiments.cube_throw.models import IsotropicFriction, analytic, as_network, learned
from experiments.cube_throw.scene import scene
from experiments.cube_throw.windows import Follower, Shooting
from truesim.physics.blueprint import MLP
from truesim.physics.contact import BrownFriction

SMALL = network.ComparisonOptions(trained=2, length=8, begins=range(24, 72, 8))
"""The first 0.7 s of throws, in which they hit the floor."""


@pytest.fixture(scope="module")
def cubes():
    """A law, a network and windows."""
    with jax.enable_x64(True):
        model = scene()
        (training, _), (held, _) = network.referred(model, SMALL)
        return model, analytic(model, BrownFriction()), learned(model), training, held


def test_a_network_opposes_slip_whatever_its_weights_are():
    """Power is never positive, and turning the slip turns the force."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for seed in range(20):
            friction = IsotropicFriction(MLP([4], seed=seed).make(3, 2, silent=False))
            slip, rest = rng.normal(size=2), rng.uniform(0, 1, 2) * [500, 0.02]
            force = np.asarray(friction(np.concatenate([slip, rest])))
            assert force @ slip < 0
            turned = np.asarray(friction(np.concatenate([[-slip[1], slip[0]], rest])))
            np.testing.assert_allclose(turned, [-force[1], force[0]], rtol=1e-12)


def test_the_network_begins_as_the_law(cubes):
    """Without breakaway Brown's law is a hyperbolic tangent, which the untrained network says too."""
    model, law, net, training, _ = cubes
    numbers = law.start.copy()
    numbers[list(law.names).index("breakaway")] = 0.0
    with jax.enable_x64(True):
        of_law = Follower(law, SMALL.length)(numbers, training)
        of_net = Follower(net, SMALL.length)(as_network(model, numbers, 0), training)
    np.testing.assert_allclose(of_net, of_law, atol=1e-9)


def test_equations_of_a_network_are_derivatives_of_its_cost(cubes):
    """Gradient against central differences along a random direction."""
    _, _, net, training, _ = cubes
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        objective = Shooting(net, training)
        theta = net.start + 0.1 * rng.normal(size=len(net.start))
        way = rng.normal(size=len(theta))
        slope = objective.equations(theta[None]).gradient[0] @ way
        ahead, behind = objective.costs(np.stack([theta + 1e-6 * way, theta - 1e-6 * way]))
    assert slope == pytest.approx((ahead - behind) / 2e-6, rel=1e-4)


def test_free_friction_repairs_whatever_friction_can(cubes):
    """Motion under another coefficient is found again; of a rigid cube's, most of the error in height stays."""
    _, law, _, _, held = cubes
    slippery = law.start.copy()
    slippery[list(law.names).index("friction")] -= np.log(2)
    with jax.enable_x64(True):
        follow, free = Follower(law, SMALL.length), FreeSteps(law)
        planted = held._replace(motion=follow(law.start, held))
        before, after = follow(slippery, held), free.floor(slippery, planted, 12)
        rigid = free.floor(law.start, held, 12)
    assert network.distances(after, planted).mean() < 0.05 * network.distances(before, planted).mean()
    height, before = (np.abs(motion - held.motion)[:, :, 2].mean() for motion in (rigid, planted.motion))
    assert 0.5 * before < height < before
