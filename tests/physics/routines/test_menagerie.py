"""Robots of MuJoCo Menagerie: forces at rest, and the iterations of the solver."""

import mujoco
import numpy as np
import pytest

from tests.physics.routines.parity import compare
from truesim.physics.routines.engine import Engine
from truesim.physics.routines.from_mujoco import from_mujoco

STANDING = ("unitree_go1/scene.xml", "anybotics_anymal_c/scene.xml", "booster_t1/scene.xml")
TEN = (
    *STANDING,
    *("unitree_go2/scene.xml", "google_barkour_vb/scene.xml", "unitree_h1/scene.xml", "unitree_g1/scene.xml"),
    *("wonik_allegro/scene_right.xml", "franka_emika_panda/scene.xml", "pal_tiago/scene_position.xml"),
)


@pytest.mark.parametrize("scene", STANDING)
def test_forces_at_rest(menagerie, scene):
    """Constraint forces of a standing robot are MuJoCo's to 1e-9 of its weight."""
    m = mujoco.MjModel.from_xml_path(str(menagerie / scene))
    d = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, d, 0)
    mujoco.mj_step(m, d, 400)
    start = np.array(d.qacc_warmstart)
    mujoco.mj_forward(m, d)
    assert d.ncon > 0
    found = Engine(from_mujoco(m), m).forward(d.qpos[None], d.qvel[None], start[None], d.ctrl[None])
    inertial = np.zeros(m.nv)
    mujoco.mj_mulM(m, d, inertial, found.qacc[0])
    force = inertial - found.qfrc_smooth[0]
    weight = m.body_mass.sum() * np.linalg.norm(m.opt.gravity)
    assert np.abs(d.qfrc_constraint).max() > 0.1 * weight
    np.testing.assert_allclose(force, d.qfrc_constraint, rtol=0, atol=1e-9 * weight)


@pytest.mark.parametrize("scene", TEN)
def test_iterations(menagerie, scene):
    """As many iterations of the solver as MuJoCo's in every step, under random controls."""
    found = compare(mujoco.MjModel.from_xml_path(str(menagerie / scene)), batch=2, steps=60, amplitude=0.1)
    assert found.iterations == 1.0
    assert np.max(found.qpos) < 1e-9
