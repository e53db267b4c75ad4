"""DROPO on a mass with a spring: means, deviations, and what the log does not determine."""

import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.policies.adaptation import DropoOptions, dropo

STEP = 0.1
RNG = np.random.default_rng(0)
STATES, FORCES = RNG.standard_normal((40, 2)), RNG.standard_normal(40)


def simulate(parameters):
    """Next positions and velocities of a mass with stiffness, damping, and a parameter without effect."""
    stiffness, damping = parameters[:, 0, None], parameters[:, 1, None]
    x, v = STATES[:, 0], STATES[:, 1]
    after = v + STEP * (FORCES - stiffness * x - damping * v)
    return np.stack([x + STEP * after, after], axis=-1)


LOW, HIGH = np.array([0.0, 0.0, 0.0]), np.array([10.0, 2.0, 1.0])
OPTIONS = DropoOptions(samples=60, evaluations=1500)


def test_parameters_of_one_system_are_found():
    """The means are those of the system, with small deviations."""
    real = simulate(np.array([[6.0, 0.5, 0.0]]))[0]
    found = dropo(simulate, real, LOW, HIGH, OPTIONS)
    assert found.mean[:2] == pytest.approx([6.0, 0.5], rel=0.05)
    assert found.std[0] < 0.3


def test_deviations_cover_systems_that_vary():
    """When stiffness varies from transition to transition, its standard deviation is found."""
    stiffness = 6.0 + 1.0 * np.random.default_rng(1).standard_normal(40)
    rows = simulate(np.stack([stiffness, np.full(40, 0.5), np.zeros(40)], axis=1))
    real = rows[np.arange(40), np.arange(40)]
    found = dropo(simulate, real, LOW, HIGH, OPTIONS)
    assert found.mean[0] == pytest.approx(6.0, abs=0.7)
    assert 0.5 < found.std[0] < 2.0


def test_empty_ranges_are_refused():
    """The message names the parameter."""
    with pytest.raises(TruesimError, match="parameter 1"):
        dropo(simulate, np.zeros((40, 2)), np.array([0.0, 1.0]), np.array([1.0, 1.0]))
