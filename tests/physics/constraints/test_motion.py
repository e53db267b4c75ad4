"""Motions under the file's constraint model against MuJoCo's, over 200 steps at the file's own tolerance."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.physics.constraints.scenes import mujoco_of, simulator_of, tied, tumbling
from truesim.physics.simulation import record, rollout
from truesim.physics.simulation.table_step import engine_of, reason_against

STEPS = 200
SAME = 1e-12
"""Difference in q after 200 steps that repeats of MuJoCo's iterations leave: rounding, grown by the motion."""


def motions(text, backend):
    """Configurations of both engines after each step."""
    _, simulator = simulator_of(text)
    m, d = mujoco_of(text)
    commands = 0.3 * np.sin(np.arange(STEPS)[:, None] * 0.05 * np.arange(1, m.nu + 1))
    state = simulator.initial_state(jnp.asarray(d.qpos), jnp.asarray(d.qvel))
    _, kept = rollout(simulator, state, jnp.asarray(commands), backend=backend)
    theirs = []
    for row in commands:
        d.ctrl[:] = row
        mujoco.mj_step(m, d)
        theirs.append(d.qpos.copy())
    return np.asarray(kept.q), np.array(theirs)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize(("shape", "condim"), [("sphere", 6), ("capsule", 3), ("box", 4), ("cylinder", 1)])
def test_routines(shape, condim, cone):
    """The table-driven routines move a tumbling body as MuJoCo does."""
    ours, theirs = motions(tumbling(shape, cone, condim, "implicitfast"), None)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME)


@pytest.mark.slow
def test_tied_bodies():
    """Closed chains, couplings, tendons, a weld, gravity compensation and a limited ball joint move as in MuJoCo."""
    ours, theirs = motions(tied("implicitfast"), "xla")
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME)


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_definition(integrator):
    """The definition in JAX moves as MuJoCo does, with integrators that the routines do not have too."""
    ours, theirs = motions(tumbling("box", "elliptic", 3, integrator), "xla")
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME)


def test_parameters_reach_the_routines():
    """A simulator with other numbers moves as MuJoCo with these numbers does."""
    text = tumbling("sphere", "elliptic", 3)
    _, simulator = simulator_of(text)
    simulator = simulator.replace({"geoms/foot.friction": np.array([0.9, 0.02, 0.003]), "bodies/arm.mass": 0.4})
    m, d = mujoco_of(text)
    m.geom("foot").friction[0], m.body("arm").mass[:] = 0.9, 0.4
    mujoco.mj_setConst(m, mujoco.MjData(m))
    state = simulator.initial_state(jnp.asarray(d.qpos), jnp.asarray(d.qvel))
    assert reason_against(simulator) is None
    last, _ = rollout(simulator, state, jnp.zeros((STEPS, 1)))
    for _ in range(STEPS):
        mujoco.mj_step(m, d)
    np.testing.assert_allclose(last.q, d.qpos, rtol=0, atol=SAME)


def test_record_agrees_with_rollout():
    """A recorded motion is the same motion, with forces that balance it."""
    _, simulator = simulator_of(tumbling("box"))
    assert not isinstance(engine_of(simulator), str)
    state = simulator.initial_state()
    _, kept = rollout(simulator, state, jnp.zeros((50, 1)))
    trajectory = record(simulator, state, jnp.zeros((50, 1)))
    np.testing.assert_array_equal(trajectory.q[1:], kept.q)
    np.testing.assert_allclose(trajectory.end.v, kept.v[-1])
    assert trajectory.info.constraint_force.shape == (50, simulator.model.nv)
    bare = record(simulator, state, jnp.zeros((50, 1)), diagnostics=False)
    assert bare.info is None
    for name in ("time", "q", "v", "command"):
        np.testing.assert_array_equal(getattr(bare, name), getattr(trajectory, name))


def test_parts_that_the_routines_do_not_have():
    """A file with a part that the routines lack says why it is not simulated by them."""
    _, simulator = simulator_of(
        """<mujoco><worldbody><body><joint name="hinge"/><geom size=".1"/></body></worldbody>
        <tendon><fixed name="motor" armature="0.1"><joint joint="hinge" coef="2"/></fixed></tendon></mujoco>"""
    )
    assert "tendon armature" in (reason_against(simulator) or "")
