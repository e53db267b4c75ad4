"""Real tosses of a cube: initial states, and numbers of contact that predict them."""

import numpy as np
import pytest

from experiments.cube_toss.fit import fit_ours
from experiments.cube_toss.ours import Ours
from experiments.cube_toss.tosses import FIRST, GRAVITY, RATE, exponential, initial_state, read_tosses


@pytest.fixture(scope="module")
def folder(sysid_cases):
    """Where the tosses are."""
    return sysid_cases.parent / "cube_toss"


def test_initial_states_are_those_of_a_flight():
    """A cube that falls and turns steadily is recognized from its first frames."""
    t = np.arange(FIRST) / RATE
    v, w = np.array([1.0, -0.5, 0.3]), np.array([3.0, -8.0, 5.0])
    place = np.array([0.1, 0.2, 0.3]) + np.outer(t, v) - np.outer(t**2 / 2, [0, 0, GRAVITY])
    frames = np.concatenate([place, np.stack([exponential(x * w) for x in t])], axis=1)
    q, found = initial_state(frames)
    np.testing.assert_allclose(q, [0.1, 0.2, 0.3, 1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(found, [*v, *w], atol=1e-9)


@pytest.mark.slow
def test_a_few_tosses_tell_friction_and_predict_others(folder):
    """Friction in the known range; held-out tosses are predicted to 20 mm on average."""
    tosses = read_tosses(folder)[slice(0, 18)]
    simulator = Ours(folder / "rig.xml", tosses.frames.shape[1])
    numbers = fit_ours(simulator, tosses[slice(0, 12)], 60)
    assert 0.10 < numbers["friction"] < 0.25
    held = tosses[slice(12, None)]
    apart, turned = held.errors(simulator([numbers], held)[0])
    assert apart.mean() < 0.02
    assert turned.mean() < 0.6
