"""Accelerations, contacts and solves with the Hessian against MuJoCo's own rows."""

import mujoco
import numpy as np

from truesim.physics.routines.engine import Engine
from truesim.physics.routines.from_mujoco import from_mujoco

XML = """<mujoco><option timestep='.004' cone='elliptic' tolerance='1e-15' ls_tolerance='1e-6'/><worldbody>
  <geom type='plane' size='5 5 .1'/>
  <body pos='0 0 .12'><freejoint/><geom type='box' size='.15 .1 .05' mass='2'/>
    <body pos='.15 0 0'><joint axis='0 1 0' range='-5 5'/><geom type='capsule' size='.02' fromto='0 0 0 .2 0 0'/></body>
    <body pos='-.15 0 0'><joint axis='0 1 0' frictionloss='.2'/><geom type='sphere' size='.06' pos='-.1 0 0'/></body>
  </body><body pos='0 0 .23'><freejoint/><geom type='sphere' size='.08'/></body></worldbody></mujoco>"""


def rows_of_mujoco(model, data):
    """Contacts as sorted tuples (geoms, distance, position, frame)."""
    return sorted((*c.geom.tolist(), c.dist, *c.pos, *c.frame) for c in data.contact if c.dist < c.includemargin)


def test_forward_equals_mujoco():
    """Contacts and acceleration are those of MuJoCo; `H^-1 b` is right for the Hessian made of its rows."""
    model = mujoco.MjModel.from_xml_string(XML)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    tables = from_mujoco(model)
    engine = Engine(tables, model)
    states, accelerations, contacts, hessians = [], [], [], []
    for _ in range(12):
        mujoco.mj_resetData(model, data)
        data.qvel[:] = 0.3 * rng.normal(size=model.nv)
        for _ in range(15 + rng.integers(20)):
            mujoco.mj_step(model, data)
        state = data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()
        mujoco.mj_forward(model, data)
        states.append(state)
        accelerations.append(data.qacc.copy())
        contacts.append(rows_of_mujoco(model, data))
        hessians.append(hessian(model, data))
    q, v, w = (np.array(x) for x in zip(*states, strict=True))
    b = rng.normal(size=(len(q), 2, model.nv))
    found = engine.forward(q, v, w, np.zeros((len(q), 0)), b, threads=2)
    assert max(map(len, contacts)) > 4
    for i in range(len(q)):
        np.testing.assert_allclose(found.qacc[i], accelerations[i], rtol=1e-8, atol=1e-7)
        ours = [
            (tables.structure["pair_geom1"][p], tables.structure["pair_geom2"][p], dist, *pos, *frame.ravel())
            for p, dist, pos, frame in zip(found.pair[i], found.dist[i], found.pos[i], found.frame[i], strict=True)
            if p >= 0
        ]
        np.testing.assert_allclose(sorted(ours), contacts[i], atol=1e-13)
        np.testing.assert_allclose(found.solutions[i] @ hessians[i], b[i], atol=1e-4 * np.abs(b[i]).max())


def hessian(model, data):
    """M minus the derivative of the constraint force by acceleration, by differences of `mj_constraintUpdate`."""
    M, J = np.zeros((model.nv, model.nv)), np.zeros((data.nefc, model.nv))
    mujoco.mj_fullM(model, data, M)
    J[:] = data.efc_J.reshape(-1, model.nv)
    residual = J @ data.qacc - data.efc_aref

    def force(a):
        mujoco.mj_constraintUpdate(model, data, residual + J @ a, None, 0)
        return J.T @ data.efc_force

    step = 1e-4
    columns = [(force(step * e) - force(-step * e)) / (2 * step) for e in np.eye(model.nv)]
    return M - np.array(columns).T
