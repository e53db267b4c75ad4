"""A thousand steps against MuJoCo."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.reference.gymnasium_models import gymnasium_model
from truesim.files.robots.compiled import from_compiled
from truesim.physics.simulation import Simulator, State, rollout

STEPS = 1000
SAME = 1e-8
"""Rounding, 1e-16 a step, grows along a trajectory; chaotic motions would need a shorter run or a larger bound."""

BALL_AND_FREE = """
<mujoco><compiler angle="radian"/><option timestep="0.002"/><worldbody>
  <body pos="0 0 1" quat="1 .2 -.1 .3"><joint type="ball" pos="0 .1 .1" damping=".05" stiffness=".5"/>
    <inertial pos="0.1 -.1 .2" mass="1" fullinertia=".03 .04 .05 .004 -.003 .002"/>
    <body pos=".3 0 0"><joint type="hinge" axis="1 2 0" damping=".1" armature=".02"/>
      <inertial pos=".1 .05 0" mass=".5" diaginertia=".01 .02 .015"/></body></body>
  <body pos="1 0 0"><freejoint/><inertial pos=".05 .02 0" mass="1" diaginertia=".01 .02 .015"/>
    <body pos=".2 0 0"><joint type="slide" axis="0 1 1" damping="1" stiffness="20"/>
      <inertial pos="0 .1 0" mass=".3" diaginertia=".002 .003 .004"/></body></body>
  <body pos="2 0 0"><freejoint/><inertial pos="0 .03 0" mass="1" diaginertia=".01 .02 .025"/></body>
</worldbody></mujoco>"""
ARM = """
<mujoco><compiler angle="radian"/><option timestep="0.002"/><worldbody>
  <body pos="0 0 .3"><joint name="a" axis="0 0 1" damping=".5" armature=".1" ref=".2"/>
    <inertial pos=".02 0 .1" mass="2" diaginertia=".02 .02 .01"/>
    <body pos="0 0 .3" quat="1 0 .3 0"><joint name="b" axis="0 1 0" damping="1" stiffness="5" springref=".4"/>
      <inertial pos="0 .02 .15" mass="1.5" fullinertia=".03 .03 .005 .001 .002 -.001"/>
      <body pos="0 0 .3"><joint name="c" axis="1 0 0" damping=".2"/><joint name="d" type="slide" axis="0 0 1"
          damping="3" stiffness="100"/><inertial pos="0 0 .1" mass=".7" diaginertia=".004 .004 .002"/></body></body>
  </body>
</worldbody><actuator>
  <position joint="a" kp="30" kv="3"/><velocity joint="b" kv="4" gear="2"/>
  <motor joint="c" gear="3" ctrlrange="-.4 .4"/>
  <general joint="d" gaintype="affine" gainprm="2 .5 -.3" biastype="affine" biasprm=".1 -8 -2" forcerange="-3 3"/>
</actuator></mujoco>"""
FRICTION_AND_LIMITS = """
<mujoco><compiler angle="radian"/><option timestep="0.002"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".02" frictionloss=".3" range="-.4 .9" limited="true"/>
    <inertial pos=".05 0 -.25" mass="1" diaginertia=".02 .02 .001"/>
    <body pos="0 0 -.5"><joint name="b" axis="0 1 .2" frictionloss=".05" range="-1 .5" margin=".05"
        solreflimit="-800 -20" solreffriction=".03 1.2" solimpfriction=".8 .9 .01 .4 3" limited="true"/>
      <inertial pos="0 .02 -.2" mass=".6" diaginertia=".008 .008 .001"/>
      <body pos="0 0 -.4"><joint type="ball" range="0 .8" frictionloss=".004" solimplimit=".85 .97 .05 .4 3"
          limited="true"/><inertial pos="0 .05 -.1" mass=".2" diaginertia=".002 .003 .002"/></body></body></body>
</worldbody><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""

INTEGRATORS = {name: getattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}") for name in ("Euler", "RK4")} | {
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT,
}


def from_text(text: str) -> mujoco.MjModel:
    """MuJoCo's model of an MJCF text."""
    return mujoco.MjModel.from_xml_string(text)


MODELS = {
    "hopper": lambda: gymnasium_model("hopper"),
    "swimmer": lambda: gymnasium_model("swimmer"),
    "reacher": lambda: gymnasium_model("reacher"),
    "arm": lambda: from_text(ARM),
    "ball and free": lambda: from_text(BALL_AND_FREE),
}


def largest_difference(m: mujoco.MjModel, commands: np.ndarray, q=None, v=None) -> float:
    """Largest difference of any coordinate or velocity along the motion, in parts of its largest value."""
    d = mujoco.MjData(m)
    d.qpos, d.qvel = (m.qpos0 if q is None else q), (np.zeros(m.nv) if v is None else v)
    simulator = Simulator.of(from_compiled(m, None))
    start = State(jnp.asarray(d.qpos), jnp.asarray(d.qvel), jnp.zeros(()))
    _, states = evaluate(lambda s, x, u: rollout(s, x, u), simulator, start, commands)
    theirs = np.empty((len(commands), m.nq + m.nv))
    for row, command in zip(theirs, commands, strict=True):
        d.ctrl = command
        mujoco.mj_step(m, d)
        row[:] = np.concatenate([d.qpos, d.qvel])
    ours = np.concatenate([states.q, states.v], axis=1)
    return float(np.max(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs).max(axis=0))))


def disturbed(m: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slow, smooth commands and a start in motion."""
    rng = np.random.default_rng(0)
    time = np.arange(STEPS)[:, None] * m.opt.timestep
    commands = 0.5 * np.sin(2 * time * rng.uniform(1, 4, m.nu) + rng.uniform(0, 6, m.nu))
    q = m.qpos0.copy()
    v = rng.normal(size=m.nv) * 0.5
    mujoco.mj_integratePos(m, q, rng.normal(size=m.nv) * 0.3, 1.0)
    return commands, q, v


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("model", MODELS)
def test_motion_without_contact(model, integrator):
    """Every integrator takes the steps of MuJoCo's, damping and actuators treated as it does."""
    m = MODELS[model]()
    m.opt.integrator = INTEGRATORS[integrator]
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    assert largest_difference(m, *disturbed(m)) < SAME


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_dry_friction_and_limits(integrator):
    """Friction and limits of hinges and ball joints act as MuJoCo's soft constraints do."""
    m = from_text(FRICTION_AND_LIMITS)
    m.opt.integrator, m.opt.tolerance, m.opt.iterations = INTEGRATORS[integrator], 0, 200
    assert largest_difference(m, *disturbed(m)) < SAME


@pytest.mark.parametrize("case", ["pendulum2_4s", "arm7_servo"])
def test_recorded_cases(case, sysid_cases):
    """The motion under the recorded commands is MuJoCo's, dry friction included."""
    m = mujoco.MjModel.from_xml_path(str(sysid_cases / f"{case}.xml"))
    m.opt.tolerance, m.opt.iterations = 0, 200  # MuJoCo's solver runs until rounding stops it
    path = sysid_cases / f"{case}.csv"
    header = path.read_text().splitlines()[0].split(",")
    columns = [i for i, name in enumerate(header) if name.startswith("ctrl/")]
    commands = np.loadtxt(path, delimiter=",", skiprows=1, usecols=columns)[:STEPS]
    assert largest_difference(m, commands) < SAME
