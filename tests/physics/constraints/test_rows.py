"""Rows of the constraint model against MuJoCo's, field by field."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.evaluation import compiled, evaluate
from tests.physics.constraints.scenes import dense_jacobian, mujoco_of, simulator_of, state_arrays, tied, tumbling
from truesim.physics.constraints.weights import inverse_weights

RELATIVE = 1e-11
"""Rounding of two implementations; stiffnesses range over nine decades."""


def rows_of(model, simulator, elliptic, state):
    """Reference accelerations, stiffnesses and Jacobians of all rows; those that are not active have no stiffness."""
    weights = inverse_weights(model)
    rows = simulator.joint_model.rows(model, weights.dofs, state, simulator.timestep)
    constraints, _ = simulator.contact.constraints(model, weights, state, simulator.timestep, rows)
    parts = [(constraints.rows.reference, constraints.rows.stiffness, constraints.rows.J)]
    if elliptic:
        cones = constraints.cones
        parts.append((cones.reference.ravel(), cones.stiffness.ravel(), cones.J.reshape(-1, model.nv)))
    return tuple(jnp.concatenate([part[k] for part in parts]) for k in range(3))


def compared(text, steps):
    """Check the rows at several states along MuJoCo's motion; returns the largest number of rows."""
    model, simulator = simulator_of(text)
    m, d = mujoco_of(text)
    elliptic, most = m.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC, 0
    ours = compiled(lambda *state: rows_of(model, simulator, elliptic, state), *state_arrays(d))
    for _ in range(3):
        for _ in range(steps):
            mujoco.mj_step(m, d)
        mujoco.mj_forward(m, d)
        reference, stiffness, J = map(np.asarray, ours(*state_arrays(d)))
        active = stiffness > 0
        assert np.sum(active) == d.nefc
        theirs = np.concatenate([d.efc_D[:, None], d.efc_aref[:, None], dense_jacobian(m, d)], axis=1)
        mine = np.concatenate([stiffness[:, None], reference[:, None], J], axis=1)[active]
        for row in theirs:  # in any order: each row of MuJoCo has one of ours
            scale = np.maximum(1.0, np.abs(row))
            distance = np.min(np.max(np.abs(mine - row) / scale, axis=1))
            assert distance < RELATIVE
        most = max(most, d.nefc)
    return most


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contact_rows(cone, condim):
    """Contacts, limits and joint friction of a tumbling box have MuJoCo's numbers."""
    assert compared(tumbling("box", cone, condim), 25) > 1


@pytest.mark.slow
def test_equality_and_tendon_rows():
    """Connect, weld, couplings, tendon limits and friction have MuJoCo's numbers."""
    assert compared(tied(), 40) >= 12


@pytest.mark.parametrize("text", [tumbling(), tied()])
def test_inverse_weights(text):
    """Inverse weights of joints, bodies and tendons are those of MuJoCo's compiler."""
    model, _ = simulator_of(text)
    m, _ = mujoco_of(text)
    weights = evaluate(inverse_weights, model)
    np.testing.assert_allclose(weights.dofs, m.dof_invweight0, rtol=1e-12)
    np.testing.assert_allclose(weights.bodies[:-1], m.body_invweight0[1:], rtol=1e-12)
    np.testing.assert_allclose(weights.tendons, m.tendon_invweight0, rtol=1e-12)
