"""Values and derivatives of parameter sets in NumPy against the transforms in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truesim.physics.model.paths import Path
from truesim.physics.model.targets import Target
from truesim.physics.parameters import Parameter, ParameterSet
from truesim.physics.parameters.transforms import Direction, Linear, Orientation, PhysicalInertia, Positive
from truesim.physics.parameters.value_map import ValueMap

INERTIA = np.array([0.3, 0.4, 0.5, 0.02, -0.03, 0.01])
TRANSFORMS = {
    "linear": (Linear(2.5), np.array(1.0)),
    "vector": (Linear(np.array([0.5, 2.0, 3.0]), (3,)), np.ones(3)),
    "positive": (Positive(0.7), np.array(0.7)),
    "inertia": (PhysicalInertia.at(INERTIA), INERTIA),
    "direction": (Direction(np.array([1.0, 2.0, -9.0])), np.array([1.0, 2.0, -9.0])),
    "orientation": (Orientation(np.array([0.5, -0.5, 0.5, 0.5])), np.array([0.5, -0.5, 0.5, 0.5])),
}


def parameters(*names):
    """A set of parameters with these transforms."""
    own = [TRANSFORMS[name] for name in names]
    made = [Parameter((Target(Path(str(k), "x")),), t, x, x, x, "1") for k, (t, x) in enumerate(own)]
    return ParameterSet(tuple(made))


def values_and_jacobians(f, x):
    """Values and Jacobians of a function of a vector, by JAX, for a batch."""

    def both(x):
        return f(x), jax.jacfwd(f)(x)

    with jax.enable_x64(True):
        return map(np.asarray, jax.jit(jax.vmap(both))(jnp.asarray(x)))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_linearize_agrees_with_jax(name):
    """Values and Jacobians of one transform, for single coordinates and for batches."""
    transform, _ = TRANSFORMS[name]
    sizes = np.array([0.0, 1e-5, 0.1, 3.0])[:, None, None]
    c = sizes * np.random.default_rng(0).normal(size=(4, 3, transform.size))
    value, J = transform.linearize(c)
    flat = c.reshape(12, -1)
    expected, by = values_and_jacobians(lambda x: jnp.ravel(transform.value(x)), flat)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(value.reshape(expected.shape) - expected) <= 1e-14 * scale).all()
    scale = np.abs(by).max(axis=(1, 2), keepdims=True)
    assert (np.abs(J.reshape(by.shape) - by) <= 1e-12 * scale).all()
    np.testing.assert_allclose(transform.linearize(c[0, 0])[0], value[0, 0], rtol=1e-13)


@pytest.mark.parametrize("names", [("positive", "linear", "vector"), tuple(TRANSFORMS)])
def test_map_agrees_with_the_set(names):
    """Values, Jacobian and converted derivatives of a whole set."""
    given = parameters(*names)
    found, rng = ValueMap(given), np.random.default_rng(1)
    theta = 0.3 * rng.normal(size=(4, given.size))
    expected, by = values_and_jacobians(given.flat, theta)
    np.testing.assert_allclose(found.values(theta), expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.jacobian(theta), by, rtol=1e-11, atol=1e-13)
    columns = rng.normal(size=(4, 5, 2, found.numbers + 3))
    chained = found.chain(theta, columns.copy())
    np.testing.assert_allclose(
        chained[..., : given.size], np.einsum("brsn,bnc->brsc", columns[..., : found.numbers], by), atol=1e-12
    )
    np.testing.assert_array_equal(chained[..., given.size :], columns[..., found.numbers :])


def test_infinite_coordinates_of_linear_values_stay_linear():
    """A large coordinate of a linear parameter does not overflow in the exponential of others."""
    given = parameters("linear", "positive")
    with np.errstate(all="raise"):
        values = ValueMap(given).values(np.array([1e6, 0.0]))
    np.testing.assert_array_equal(values, [2.5e6, 0.7])
