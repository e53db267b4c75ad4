"""Keys of the kernels of a problem: every number of the simulator is in the key, but for the free ones."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

from tests.identification.recorded import ARM_WRONG, arm_log
from tests.robots import robot
from truesim import native
from truesim.identification.problem.build import build

FREE = ("bodies/*.mass", "bodies/lower.com[2]", "joints/elbow.damping")


@pytest.fixture(scope="module")
def problem():
    """Problem of a planar arm, with a vector of which one element is free."""
    return build(robot(ARM_WRONG), [arm_log()], FREE)


def key(problem):
    """Hash of everything that the kernels of a problem are made from."""
    return native.KernelStructure("kernel", problem._parts, 0.0).digest()


def with_simulator(problem, simulator):
    """The problem with other start values."""
    return dataclasses.replace(problem, simulator=simulator)


def numbers(simulator):
    """All numbers of a simulator: index of the leaf, index in it, and the simulator with that number changed."""
    arrays, static = eqx.partition(simulator, eqx.is_inexact_array_like)
    leaves, tree = jax.tree.flatten(arrays)
    for k, leaf in enumerate(leaves):
        for at in np.ndindex(np.shape(leaf)):
            changed = np.array(leaf, float)
            changed[at] = 1.25 * changed[at] + 0.125
            yield (k, at), eqx.combine(jax.tree.unflatten(tree, [*leaves[:k], changed, *leaves[k + 1 :]]), static)


def places(problem):
    """Numbers that the free parameters replace."""
    leaves = jax.tree.leaves(eqx.filter(problem._blank, eqx.is_inexact_array_like))
    return {(k, tuple(map(int, at))) for k, leaf in enumerate(leaves) for at in np.argwhere(np.isnan(leaf))}


def test_exactly_the_free_numbers_are_not_in_the_key(problem):
    """Each number of the simulator is changed by itself."""
    usual, kept, count = key(problem), set(), 0
    for place, simulator in numbers(problem.simulator):
        count += 1
        if key(with_simulator(problem, simulator)) == usual:
            kept.add(place)
    assert usual is not None
    assert kept == places(problem)
    assert len(kept) == sum(np.size(p.start) for p in problem.parameters)
    assert count > 100


@pytest.mark.slow
def test_results_of_a_kernel_that_is_found_are_those_of_one_that_is_traced(problem, tmp_path, monkeypatch):
    """For other start values, to the bit; and no number of the start has leaked into the code."""
    theta, nodes = problem.parameters.start, problem.initial_nodes()
    low = theta - 0.3
    monkeypatch.setenv("TRUESIM_CACHE", str(tmp_path / "first"))
    with_simulator(problem, problem.simulator).kernels.derivatives(*problem._example)
    free = places(problem)
    for k, (place, simulator) in enumerate(numbers(problem.simulator)):
        if place not in free:
            continue
        found = []
        for folder in ("first", f"other{k}"):
            monkeypatch.setenv("TRUESIM_CACHE", str(tmp_path / folder))
            found.append(jax.tree.leaves(with_simulator(problem, simulator).differentiate(low, nodes)))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.isfinite(one).all()


def test_options_of_the_problem_are_in_the_key(problem):
    """Channels, free parameters and substeps decide what is computed."""
    model, log = robot(ARM_WRONG), arm_log()
    others = [
        build(model, [log], FREE[:2]),
        build(model, [log], (*FREE, "joints/shoulder.damping")),
        build(model, [log.rows(slice(None, None, 2))], FREE),
    ]
    others.append(dataclasses.replace(problem, channels=problem.channels[:1]))
    keys = [key(problem), *(key(p) for p in others)]
    assert len(set(keys)) == len(keys)
    assert key(build(model, [arm_log(seed=3, name="other")], FREE)) == keys[0]
