"""Poses and the transforms of motions, forces and inertias that follow from them."""

import jax.numpy as jnp
import numpy as np
import pytest

from truesim.math.spatial.inertia import principal_moments, six_of, spatial_inertia, symmetric, unphysical
from truesim.math.spatial.transform import Pose, cross_force, cross_motion

ROUNDING = 1e-13


@pytest.fixture(params=range(3))
def rng(request):
    """A generator with a fixed seed."""
    return np.random.default_rng(request.param)


def pose(rng) -> Pose:
    """A random pose."""
    q = rng.normal(size=4)
    return Pose.from_quaternion(rng.normal(size=3), q / np.linalg.norm(q))


def test_poses_form_a_group(rng):
    """Composition is associative, the inverse undoes, and matrices of motions compose the other way round."""
    A, B, C = pose(rng), pose(rng), pose(rng)
    left, right = (A @ B) @ C, A @ (B @ C)
    np.testing.assert_allclose(left.rotation, right.rotation, atol=ROUNDING)
    np.testing.assert_allclose(left.translation, right.translation, atol=ROUNDING)
    np.testing.assert_allclose((A @ A.inverse()).matrix(), np.eye(6), atol=ROUNDING)
    np.testing.assert_allclose((A @ B).matrix(), B.matrix() @ A.matrix(), atol=ROUNDING)


def test_motion_and_force_are_dual(rng):
    """Power is the same in every frame, and `matrix` says what `motion` and `force` do."""
    X, V, F = pose(rng), rng.normal(size=6), rng.normal(size=6)
    np.testing.assert_allclose(X.motion(V) @ F, V @ X.force(F), atol=ROUNDING)
    np.testing.assert_allclose(X.motion(V), X.matrix() @ V, atol=ROUNDING)
    np.testing.assert_allclose(X.force(F), X.matrix().T @ F, atol=ROUNDING)


def test_cross_products_are_dual_and_antisymmetric(rng):
    """`V x V = 0`, and the rate of a force does the work that the rate of a motion does not."""
    V, W, F = rng.normal(size=6), rng.normal(size=6), rng.normal(size=6)
    np.testing.assert_allclose(cross_motion(V, V), 0, atol=ROUNDING)
    np.testing.assert_allclose(cross_motion(V, W) @ F, -W @ cross_force(V, F), atol=ROUNDING)


def test_spatial_inertia_is_that_of_its_particles(rng):
    """The inertia of point masses is the sum of theirs; kinetic energy is that of the points."""
    points, mass = rng.normal(size=(5, 3)), rng.uniform(1, 2, 5)
    com = mass @ points / mass.sum()
    about = sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(mass, points - com, strict=True))
    I = spatial_inertia(jnp.asarray(mass.sum()), com, six_of(jnp.asarray(about)))
    V = rng.normal(size=6)
    speeds = V[3:] + np.cross(V[:3], points)
    np.testing.assert_allclose(V @ I @ V, mass @ np.sum(speeds**2, axis=1), rtol=ROUNDING)
    np.testing.assert_allclose(symmetric(six_of(jnp.asarray(about))), about, atol=0)
    np.testing.assert_allclose(principal_moments(six_of(jnp.asarray(about))), np.linalg.eigvalsh(about), rtol=1e-12)
    assert unphysical(mass.sum(), six_of(jnp.asarray(about))) is None


@pytest.mark.parametrize(
    ("mass", "inertia", "reason"),
    [
        (1.0, [1, 1, 1, 0, 0, 0], None),
        (1.0, [1, 1, 2, 0, 0, 0], None),  # a flat plate: the limit of the triangle inequality
        (0.0, [0, 0, 0, 0, 0, 0], None),
        (-1.0, [1, 1, 1, 0, 0, 0], "mass -1 kg is negative"),
        (1.0, [1, 1, 3, 0, 0, 0], "triangle"),
        (1.0, [1, 1, -1, 0, 0, 0], "negative principal moment"),
        (1.0, [1, 1, 1, 2, 0, 0], "negative principal moment"),
        (np.nan, [1, 1, 1, 0, 0, 0], "not a finite"),
        (1.0, [1, 1, np.inf, 0, 0, 0], "not a finite"),
    ],
)
def test_unphysical_bodies_are_named(mass, inertia, reason):
    """A body that cannot exist is told why."""
    found = unphysical(mass, np.array(inertia, dtype=float))
    assert (found is None) if reason is None else (reason in found)
