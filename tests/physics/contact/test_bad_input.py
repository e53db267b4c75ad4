"""Wrong or extreme input gives a sentence or the right limit, never NaN."""

import numpy as np
import pytest

from tests.physics.contact.scenes import BALL, CUBE, Runner, changed, rigid, scene
from truesim.core.errors import TruesimError
from truesim.physics.contact import Detector, PolyhedralCone, RigidContact
from truesim.physics.contact.geometry.hull import hull
from truesim.physics.model.model import Mesh

SIDEWAYS = np.array([3.0, 0, -9.81])
"""Gravity on a slope of 17 degrees [m/s^2]."""


@pytest.fixture(scope="module")
def crowded():
    """A cube with room for two of its four contact points."""
    return Runner(rigid(scene(CUBE), capacity=2), 100)


@pytest.fixture(scope="module")
def cube():
    return Runner(rigid(scene(CUBE)), 100)


def test_a_geom_without_size_is_named():
    """A size of zero is refused with the geom's name."""
    with pytest.raises(TruesimError, match=r"'ball'.*must be positive"):
        Detector.of(changed(scene(BALL), {"geoms/ball.size": [0, 0, 0]}))


def test_a_flat_mesh_is_named():
    """A mesh that encloses nothing is refused; one with holes counts as its hull."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]])
    with pytest.raises(TruesimError, match="encloses no volume"):
        hull(Mesh("sheet", corners, np.array([[0, 1, 2]])))
    with_hole = hull(Mesh("cup", np.vstack([corners, corners + np.array([0, 0, 1.0])]), np.array([[0, 1, 2]])))
    assert len(with_hole.corners) == 8


def test_friction_must_be_a_number_that_is_not_negative():
    """A negative friction, a capacity of zero and torsional friction in a polygon are refused."""
    with pytest.raises(TruesimError, match="negative"):
        RigidContact.of(changed(scene(CUBE), {"geoms/cube.friction": [-0.1, 0, 0]}))
    with pytest.raises(TruesimError, match="at least 1"):
        Detector.of(scene(CUBE), capacity=0)
    with pytest.raises(TruesimError, match="EllipticCone"):
        RigidContact.of(scene(CUBE.replace('mass="1"', 'mass="1" condim="6"')), cone=PolyhedralCone(4))


def test_without_friction_it_slides_freely_and_with_infinite_friction_it_sticks(cube):
    """The limits of friction."""
    for friction, speed in ((0.0, 3.0 * 0.2), (np.inf, 0.0)):
        values = {"gravity": SIDEWAYS, "geoms/cube.friction": [friction, 0, 0], "geoms/floor.friction": [0, 0, 0]}
        _, v, report = cube(values)
        np.testing.assert_allclose(v[-1, :3], [speed, 0, 0], atol=1e-6)
        assert np.all(report.converged)


def test_overlapping_bodies_separate_without_being_thrown(cube):
    """A cube that starts 5 cm deep in the floor comes up and rests."""
    q, v, _ = cube(q=[0, 0, 0.05, 1, 0, 0, 0])
    np.testing.assert_allclose(q[-1, 2], 0.1, atol=1e-6)
    assert np.max(v[:, 2]) < 1e-6


def test_more_contacts_than_capacity_are_reported(crowded):
    """The step says how many points had no room, and gives numbers all the same."""
    q, _, report = crowded(q=[0, 0, 0.0999, 1, 0, 0, 0])
    assert report.overflow[0] == 2
    assert np.all(np.isfinite(q))
