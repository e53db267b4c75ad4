"""Step Jacobians of the constraint model against central differences of MuJoCo's own step."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.physics.constraints.scenes import mujoco_of, simulator_of, tied, tumbling
from truesim.physics.dynamics import integrate

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
TOLERANCE = 1e-7
"""Relative to the largest entry; central differences with the best of three steps have this error."""


def central(m, d, state, eps):
    """Central differences of the velocity after a step in configuration, velocity and control."""
    columns = []
    for i in range(2 * m.nv + m.nu):
        ends = []
        for sign in (eps, -eps):
            mujoco.mj_setState(m, d, state, STATE)
            step = np.zeros(2 * m.nv + m.nu)
            step[i] = sign
            mujoco.mj_integratePos(m, d.qpos, step[: m.nv], 1)
            d.qvel += step[m.nv : 2 * m.nv]
            d.ctrl += step[2 * m.nv :]
            mujoco.mj_step(m, d)
            ends.append(d.qvel.copy())
        columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.array(columns).T


def errors(text, steps, states):
    """Relative errors of the step Jacobian at several states along a motion, and the contacts seen."""
    model, simulator = simulator_of(text, exact=True)
    m, d = mujoco_of(text)
    m.opt.tolerance, m.opt.ls_tolerance = 0, 1e-8
    constants = jax.jit(lambda: simulator.constants())()

    @jax.jit
    def jacobian(q, v, u):
        def velocity(x):
            state = simulator.initial_state(integrate(model, q, x[: m.nv]), v + x[m.nv : 2 * m.nv])
            return simulator.step(state, u + x[2 * m.nv :], constants)[0].v

        return jax.jacfwd(velocity)(jnp.zeros(2 * m.nv + m.nu))

    found, contacts = [], 0
    for _ in range(states):
        for _ in range(steps):
            d.ctrl[:] = 0.1
            mujoco.mj_step(m, d)
        state = np.zeros(mujoco.mj_stateSize(m, STATE))
        mujoco.mj_getState(m, d, state, STATE)
        ours = np.asarray(jacobian(jnp.asarray(d.qpos), jnp.asarray(d.qvel), jnp.asarray(d.ctrl)))
        theirs = [central(m, d, state, eps) for eps in (1e-5, 1e-6, 1e-7)]
        found.append(min(np.abs(ours - x).max() for x in theirs) / np.abs(ours).max())
        mujoco.mj_setState(m, d, state, STATE)
        mujoco.mj_forward(m, d)
        contacts = max(contacts, d.ncon)
    return found, contacts


@pytest.mark.parametrize(
    ("shape", "cone", "condim", "integrator"),
    [
        ("sphere", "elliptic", 6, "Euler"),
        pytest.param("capsule", "pyramidal", 3, "implicitfast", marks=pytest.mark.slow),
        pytest.param("box", "elliptic", 4, "Euler", marks=pytest.mark.slow),
    ],
)
def test_contact(shape, cone, condim, integrator):
    """Closed-form pairs: the derivative is that of MuJoCo's step to the accuracy of differences."""
    found, contacts = errors(tumbling(shape, cone, condim, integrator), 30, 4)
    assert contacts
    assert max(found) < TOLERANCE


@pytest.mark.slow
def test_equalities_and_tendons():
    """Closed chains, couplings, tendons and a limited ball joint."""
    found, _ = errors(tied("Euler"), 25, 2)
    assert max(found) < TOLERANCE
