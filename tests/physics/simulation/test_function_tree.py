"""Functions as trees: equal code with equal contents is one function, everything else is not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from truesim.physics.simulation.function_tree import FunctionTree

GAIN, SCALE = jnp.asarray(2.0), 3.0


def structure(f):
    return jax.tree.structure(FunctionTree(f))


def affine(a, b):
    """A new function object in every call."""
    return lambda x: a * x + b


def test_fresh_lambdas_are_one_function():
    """Equal closures have equal structures; arrays of JAX are leaves."""
    assert structure(affine(2.0, 1)) == structure(affine(2.0, 1))
    assert hash(structure(affine(2.0, 1))) == hash(structure(affine(2.0, 1)))
    first, second = affine(jnp.asarray(2.0), 1.0), affine(jnp.asarray(5.0), 1.0)
    assert structure(first) == structure(second)
    assert jax.tree.leaves(FunctionTree(second)) == [5.0]
    rebuilt = jax.tree.unflatten(structure(first), jax.tree.leaves(FunctionTree(second)))
    assert float(rebuilt(jnp.asarray(10.0))) == 51.0


def test_different_contents_do_not_collide():
    """Numbers, types, signs of zero, NumPy arrays, defaults and code tell functions apart."""
    pairs = [
        (affine(2.0, 1), affine(3.0, 1)),
        (affine(2.0, 1), affine(2.0, 1.0)),
        (affine(2.0, True), affine(2.0, 1)),
        (affine(0.0, 1), affine(-0.0, 1)),
        (affine(np.ones(2), 1), affine(2 * np.ones(2), 1)),
        (affine(np.ones(2), 1), affine(np.ones(2, np.float32), 1)),
        (lambda x, k=1: x + k, lambda x, k=2: x + k),
        (lambda x: x + 1, lambda x: x - 1),
        (affine(affine(1.0, 1), 1), affine(affine(2.0, 1), 1)),
    ]
    for first, second in pairs:
        assert structure(first) != structure(second)


def test_globals_count():
    """A function that reads a global name knows its value: numbers are part of the structure, arrays are leaves."""
    f = lambda x: SCALE * GAIN * x  # noqa: E731
    assert jax.tree.leaves(FunctionTree(f)) == [2.0]
    before = structure(f)
    try:
        globals()["SCALE"] = 4.0
        assert structure(f) != before
    finally:
        globals()["SCALE"] = 3.0
    assert structure(f) == before


def test_partials_methods_and_defaults():
    """What is called is the function that was given."""

    class Thing:
        def times(self, x):
            return 3 * x

    thing, double = Thing(), functools.partial(lambda a, x, b=0.0: a * x + b, 2.0, b=jnp.asarray(1.0))
    assert float(FunctionTree(double)(5.0)) == 11.0
    assert structure(double) == structure(functools.partial(double.func, 2.0, b=jnp.asarray(7.0)))
    assert FunctionTree(thing.times)(2) == 6
    assert structure(thing.times) == structure(thing.times)
    assert structure(thing.times) != structure(Thing().times)


def test_derivatives_flow_through_closures():
    """A traced array in a closure is an input of the function."""
    slope = jax.grad(lambda a: FunctionTree(affine(a, 1.0))(jnp.asarray(3.0)))
    assert float(slope(2.0)) == 3.0
