"""Transforms: coordinates stand for exactly one valid value, and every value has coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation import evaluate
from truesim.math.spatial.inertia import unphysical
from truesim.physics.parameters.transforms import Direction, Linear, Orientation, PhysicalInertia, Positive

SLENDER = np.array([0.02, 0.0203, 0.0004, 1e-5, -2e-5, 3e-5])
TRANSFORMS = {
    "linear": Linear(0.05),
    "vector": Linear(2.0, (3,)),
    "positive": Positive(0.7),
    "inertia": PhysicalInertia.at(SLENDER),
    "direction": Direction(np.array([0.0, 0.6, -9.7])),
    "orientation": Orientation(np.array([0.5, -0.5, 0.5, 0.5])),
}
everything = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


def coordinates(size: int, reach: float = 1.5):
    """Vectors of coordinates, a few times larger than what a fit moves by."""
    return st.lists(st.floats(-reach, reach), min_size=size, max_size=size).map(np.array)


@everything
@given(st.data())
def test_coordinates_come_back(transform, data):
    """From coordinates to a value and back."""
    z = data.draw(coordinates(transform.size))
    np.testing.assert_allclose(transform.coordinates(np.asarray(transform.value(z))), z, rtol=1e-7, atol=1e-9)


@everything
def test_jacobians_are_finite_and_of_full_rank(transform):
    """At the reference, and away from it: no coordinate is idle."""
    points = np.stack([np.zeros(transform.size), np.linspace(-1.0, 1.0, transform.size)])
    for J in evaluate(jax.vmap(jax.jacfwd(lambda z: jnp.ravel(transform.value(z)))), points):
        assert np.all(np.isfinite(J))
        assert np.linalg.matrix_rank(J) == transform.size


def test_reference_is_at_zero():
    """Transforms around a reference begin there."""
    np.testing.assert_allclose(Positive(0.7).value(np.zeros(1)), 0.7)
    np.testing.assert_allclose(PhysicalInertia.at(SLENDER).value(np.zeros(6)), SLENDER, rtol=1e-12)
    np.testing.assert_allclose(TRANSFORMS["direction"].value(np.zeros(2)), TRANSFORMS["direction"].reference)
    np.testing.assert_allclose(TRANSFORMS["orientation"].value(np.zeros(3)), TRANSFORMS["orientation"].reference)


@given(coordinates(6, reach=6.0))
def test_every_inertia_is_physical(z):
    """Any six numbers are the inertia of some rigid body, even where moments span five orders of magnitude."""
    assert unphysical(1.0, np.asarray(PhysicalInertia.at(SLENDER).value(z))) is None


@pytest.mark.parametrize(
    "inertia",
    [np.zeros(6), np.array([0.1, 0.1, 0, 0, 0, 0]), np.array([0.1, 0.1, 0.3, 0, 0, 0])],
    ids=["point mass", "thin rod", "impossible"],
)
def test_degenerate_inertias_can_be_freed(inertia):
    """A point mass, a rod without width and a body that cannot be start at a physical neighbor."""
    transform = PhysicalInertia.at(inertia)
    start = np.asarray(transform.value(transform.coordinates(inertia)))
    assert unphysical(1.0, start) is None
    assert np.abs(start - inertia).max() <= max(0.6 * np.abs(inertia).max(), 5e-6)


@given(coordinates(2), coordinates(3))
def test_lengths_are_kept(tilt, turn):
    """Gravity keeps its strength and a quaternion its unit length."""
    direction = TRANSFORMS["direction"]
    np.testing.assert_allclose(np.linalg.norm(direction.value(tilt)), np.linalg.norm(direction.reference), rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(TRANSFORMS["orientation"].value(turn)), 1.0, rtol=1e-12)


@given(coordinates(1, reach=30.0))
def test_positive_values_stay_positive(z):
    """However far a step goes."""
    assert TRANSFORMS["positive"].value(z) > 0
