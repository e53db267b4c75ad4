"""Batches, threads, precision and parameters of the engine."""

import mujoco
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.physics.routines.engine import Engine
from truesim.physics.routines.from_mujoco import from_mujoco

XML = """<mujoco><option timestep='.004' cone='elliptic'/><worldbody><geom type='plane' size='5 5 .1'/>
  <body pos='0 0 .2'><freejoint/><geom type='box' size='.15 .1 .05' mass='2'/>
    <body pos='.15 0 0'><joint name='a' axis='0 1 0' damping='.05'/>
      <geom type='capsule' size='.02' fromto='0 0 0 .2 0 0'/></body>
  </body></worldbody><actuator><position joint='a' kp='3' kv='.1'/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(XML)


def states(model, batch, steps):
    rng = np.random.default_rng(0)
    qpos = np.tile(model.qpos0, (batch, 1))
    qvel = 0.5 * rng.normal(size=(batch, model.nv))
    return qpos, qvel, np.zeros((batch, model.nv)), rng.normal(size=(batch, steps, model.nu))


def test_instances_do_not_depend_on_their_neighbours(model):
    """Any subset of a batch, in any order and any number of threads, gives the same numbers to the bit."""
    engine = Engine(from_mujoco(model), model)
    q, v, w, u = states(model, 21, 40)
    together = engine.rollout(q, v, w, u, threads=3)
    order = np.random.default_rng(1).permutation(21)[:10]
    some = engine.rollout(q[order], v[order], w[order], u[order])
    np.testing.assert_array_equal(together.qpos[order], some.qpos)
    np.testing.assert_array_equal(together.warmstart[order], some.warmstart)
    alone = engine.rollout(q[:1], v[:1], w[:1], u[:1])
    np.testing.assert_array_equal(together.qpos[:1], alone.qpos)


def test_steps_continue(model):
    """Two rollouts of 20 steps are one of 40."""
    engine = Engine(from_mujoco(model), model)
    q, v, w, u = states(model, 5, 40)
    whole = engine.rollout(q, v, w, u)
    first = engine.rollout(q, v, w, u[:, :20])
    second = engine.rollout(first.qpos[:, -1], first.qvel[:, -1], first.warmstart[:, -1], u[:, 20:])
    np.testing.assert_array_equal(whole.qpos[:, 20:], second.qpos)


def test_single_precision(model):
    """Single precision stays within 1e-5 over 50 steps."""
    q, v, w, u = states(model, 16, 50)
    double = Engine(from_mujoco(model), model).rollout(q, v, w, u)
    single = Engine(from_mujoco(model), model, np.float32).rollout(q, v, w, u)
    assert single.qpos.dtype == np.float32
    assert np.median(np.abs(single.qpos - double.qpos).max(axis=(1, 2))) < 1e-5


def test_parameters_by_instance(model):
    """Masses, friction and damping of each instance are those of a model compiled with them."""
    batch, steps = 6, 40
    rng = np.random.default_rng(2)
    tables = from_mujoco(model)
    q, v, w, u = states(model, batch, steps)
    mass = tables.parameters["body_mass"] * rng.uniform(0.5, 2, (batch, 1))
    inertia = tables.parameters["body_inertia"] * (mass / tables.parameters["body_mass"].clip(1e-9))[:, :, None]
    friction = rng.uniform(0.2, 1, (batch, 1, 1)) * np.ones((1, model.ngeom, 3)) * [1, 0.01, 0.001]
    pairs = [tables.structure["pair_geom1"], tables.structure["pair_geom2"]]
    pair_friction = friction[:, pairs[0]].clip(1e-5)[..., [0, 0, 1, 2, 2]]
    changes = {"body_mass": mass, "body_inertia": inertia, "pair_friction": pair_friction}
    found = Engine(tables, model).rollout(q, v, w, u, parameters=changes)
    for b in range(batch):
        other = mujoco.MjModel.from_xml_string(XML)
        other.body_inertia[:] *= (mass[b] / model.body_mass.clip(1e-9))[:, None]
        other.body_mass[:], other.geom_friction[:] = mass[b], friction[b]
        alone = Engine(from_mujoco(other), other).rollout(q[b : b + 1], v[b : b + 1], w[b : b + 1], u[b : b + 1])
        np.testing.assert_allclose(found.qpos[b], alone.qpos[0], atol=1e-12)
    assert np.ptp(found.qpos[:, -1], axis=0).max() > 1e-3


def test_errors_name_what_is_wrong(model):
    engine = Engine(from_mujoco(model), model)
    q, v, w, u = states(model, 2, 3)
    with pytest.raises(TruesimError, match=r"qvel has shape \(2, 3\)"):
        engine.rollout(q, v[:, :3], w, u)
    with pytest.raises(TruesimError, match="no parameter named 'body_weight'"):
        engine.rollout(q, v, w, u, parameters={"body_weight": np.zeros(3)})
    unsupported = mujoco.MjModel.from_xml_string(XML.replace("<option", "<option density='1.2'"))
    with pytest.raises(TruesimError, match="fluid forces"):
        from_mujoco(unsupported)


def test_foreign_pairs_need_the_model(model):
    with pytest.raises(TruesimError, match="compiled MuJoCo model"):
        Engine(
            from_mujoco(
                mujoco.MjModel.from_xml_string(
                    XML.replace("type='capsule'", "type='ellipsoid'").replace(
                        "size='.02' fromto='0 0 0 .2 0 0'", "size='.1 .02 .03'"
                    )
                )
            )
        )


@pytest.mark.parametrize("geom", ["size='.1'", "type='capsule' size='.1 .1'"])
def test_coincident_bodies(geom):
    """Two bodies at one place, upright on the floor, move apart as in MuJoCo."""
    body = f"<body pos='0 0 .1'><freejoint/><geom {geom} mass='1'/></body>"
    scene = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><geom type='plane' size='5 5 .1'/>{body}{body}</worldbody></mujoco>"
    )
    q, v, w, u = states(scene, 1, 20)
    found = Engine(from_mujoco(scene), scene).rollout(q, 0 * v, w, u)
    data = mujoco.MjData(scene)
    for _ in range(20):
        mujoco.mj_step(scene, data)
    np.testing.assert_allclose(found.qpos[0, -1], data.qpos, rtol=0, atol=1e-10)


@pytest.mark.parametrize("geom", ["size='.1'", "type='box' size='.1 .08 .06'"])
def test_everything_touches(geom):
    """Ten bodies that all overlap each other and the floor move as in MuJoCo, without NaN."""
    bodies = "".join(
        f"<body pos='{0.02 * i} {0.01 * (i % 3)} .08'><freejoint/><geom {geom} mass='1'/></body>" for i in range(10)
    )
    scene = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody><geom type='plane' size='5 5 .1'/>{bodies}</worldbody></mujoco>"
    )
    q, v, w, u = states(scene, 1, 3)
    found = Engine(from_mujoco(scene), scene).rollout(q, 0 * v, w, u)
    data = mujoco.MjData(scene)
    for _ in range(3):
        mujoco.mj_step(scene, data)
    assert data.ncon > 40
    np.testing.assert_allclose(found.qpos[0, -1], data.qpos, rtol=0, atol=1e-8)


@pytest.mark.parametrize("geom", ["type='cylinder' size='.1 .1'", "type='ellipsoid' size='.1 .08 .06'"])
def test_coincident_round_bodies_stay_finite(geom):
    """The direction in which they part is arbitrary, as nothing prefers one."""
    body = f"<body pos='0 0 .1'><freejoint/><geom {geom} mass='1'/></body>"
    scene = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}{body}</worldbody></mujoco>")
    q, v, w, u = states(scene, 1, 20)
    found = Engine(from_mujoco(scene), scene).rollout(q, 0 * v, w, u)
    assert np.all(np.isfinite(found.qpos))
