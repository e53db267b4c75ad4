"""Energy drift of a frictionless three-link pendulum over ten seconds, for every integrator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.robots import PENDULUM, robot
from truesim.physics.dynamics import kinetic_energy, potential_energy
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.integrators import INTEGRATORS

SECONDS = 10.0
BOUNDS = {"Euler": 0.15, "RK4": 1e-8, "implicit": 0.15, "implicitfast": 0.15, "discrete": 0.15}
"""Largest drift allowed at 2 ms, in parts of the energy that swings: methods of first order feed some in."""


def drift(simulator: Simulator, state: State):
    """Largest and last deviation of the energy from its start [J], and the largest kinetic energy [J]."""
    model = simulator.model

    def energy(state):
        return kinetic_energy(model, state.q, state.v), potential_energy(model, state.q)

    def advance(state, _):
        state, _ = simulator.step(state, jnp.zeros(0))
        return state, jnp.stack(energy(state))

    steps = round(SECONDS / model.defaults.timestep)
    _, energies = jax.lax.scan(advance, state, None, length=steps)
    deviation = energies.sum(axis=1) - sum(energy(state))
    return jnp.max(jnp.abs(deviation)), deviation[-1], jnp.max(energies[:, 0])


def test_the_bounds_cover_every_integrator():
    """A new integrator needs a bound."""
    assert set(BOUNDS) == set(INTEGRATORS)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_energy_drift(name, record_property):
    """The energy of a pendulum let go from 60 degrees stays within the integrator's bound (`pytest -s` prints it)."""
    model = robot(PENDULUM)
    simulator = Simulator.of(model, integrator=INTEGRATORS[name])
    state = simulator.initial_state(np.array([np.pi / 3, 0.0, 0.0]))
    largest, last, swing = (float(x) for x in evaluate(drift, simulator, state))
    record_property("energy drift", float(largest / swing))
    print(f"\n{name:14s} largest {largest:.2e} J, last {last:+.2e} J, {largest / swing:.1e} of the energy that swings")
    assert largest / swing < BOUNDS[name]
