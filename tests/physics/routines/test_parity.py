"""The table-driven step moves as MuJoCo does, feature by feature.

Differences grow with the motion's own sensitivity; 1e-11 after 60 steps is rounding. The number of Newton iterations
is equal in all but the few steps in which rounding decides about one more.
"""

import mujoco
import numpy as np
import pytest

from tests.physics.constraints.scenes import tied
from tests.physics.routines.parity import compare

PLANE = "<geom type='plane' size='5 5 .1'/>"
SHAPES = {
    "sphere": "type='sphere' size='.1'",
    "capsule": "type='capsule' size='.06 .1' quat='.7 .6 .2 .1'",
    "box": "type='box' size='.1 .07 .05' quat='.9 .1 .05 .3'",
    "cylinder": "type='cylinder' size='.08 .06' quat='.95 .2 .1 0'",
    "ellipsoid": "type='ellipsoid' size='.1 .07 .06' quat='.9 .3 .1 .2'",
}


def scene(body: str, *, option="", rest="") -> mujoco.MjModel:
    """A compiled model."""
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option timestep='.004' {option}/><worldbody>{body}</worldbody>{rest}</mujoco>"
    )


def falling(shape: str, condim: int, height=0.12) -> str:
    """A shape that drops on the floor."""
    return f"<body pos='0 0 {height}'><freejoint/><geom {shape} condim='{condim}' friction='.6 .02 .005'/></body>"


@pytest.mark.parametrize("shape", [s for s in SHAPES if s != "ellipsoid"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_shapes_on_a_floor(shape, cone):
    model = scene(PLANE + falling(SHAPES[shape], 3), option=f"cone='{cone}' impratio='2'")
    found = compare(model, spread=1.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95
    assert found.solves > 0.5


@pytest.mark.parametrize("shape", ["sphere", "box"])
def test_runge_kutta(shape):
    """Four evaluations a step, each of which starts its solver from the same acceleration."""
    link = "<geom type='capsule' size='.03' fromto='0 0 0 .3 0 0'/>"
    arm = f"<body pos='1 0 1'><joint type='ball' damping='.1'/>{link}</body>"
    option = "integrator='RK4' cone='elliptic'"
    found = compare(scene(PLANE + arm + falling(SHAPES[shape], 3), option=option), spread=1.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


def test_implicit_treats_bias_forces():
    """Fast free, ball, slide and hinge joints of one tree: the unsymmetric matrix is that of MuJoCo."""
    link = "<geom type='box' size='.05 .03 .08' pos='.1 .02 .03' quat='.9 .1 .3 .2' contype='0' conaffinity='0'/>"
    body = f"""<body pos='0 0 .1'><freejoint/><geom type='box' size='.1 .07 .05'/>
      <body pos='.2 0 0'><joint type='ball' pos='0 .02 0' damping='.01'/>{link}
        <body pos='.2 0 0'><joint axis='0 1 .2'/><joint type='slide' axis='1 0 0' damping='.1'/>{link}</body></body>
      <body pos='-.2 0 0'><joint axis='1 0 0'/>{link}</body></body>"""
    found = compare(scene(PLANE + body, option="integrator='implicit'"), spread=8.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contact_dimensions(condim, cone):
    found = compare(scene(PLANE + falling(SHAPES["capsule"], condim), option=f"cone='{cone}'"), spread=1.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


def test_pairs_by_mujocos_function():
    """Shapes without a closed form here: MuJoCo's own function finds the same points, in several islands."""
    body = PLANE + "".join(
        f"<body pos='{x} 0 {z}'><freejoint/><geom {SHAPES[a]}/></body>"
        for x, z, a in ((0, 0.08, "box"), (0.02, 0.25, "capsule"), (1, 0.08, "box"), (1.03, 0.2, "box"))
    )
    found = compare(scene(body, option="cone='elliptic'"), steps=40)
    assert found.engine.sizes["ntree"] == 4
    assert np.median(found.qpos) < 1e-10
    assert found.iterations > 0.9


CHAIN = """
  <body pos='0 0 .5'><joint name='a' axis='0 1 0' range='-30 30' damping='.1' frictionloss='.05' armature='.01'/>
    <geom type='capsule' size='.03' fromto='0 0 0 .3 0 0' contype='0' conaffinity='0'/>
    <body pos='.3 0 0'><joint name='b' axis='0 0 1' stiffness='2' range='-20 40' springref='10' frictionloss='.02'/>
      <geom type='capsule' size='.03' fromto='0 0 0 .2 0 0' contype='0' conaffinity='0'/>
      <body name='tip' pos='.2 0 0' gravcomp='.5'>
        <joint name='c' type='slide' axis='1 0 0' range='-.05 .1' margin='.01'/>
        <geom type='sphere' size='.05' mass='.3'/></body></body>
    <body name='ball' pos='.1 .1 0'><joint name='d' type='ball' range='0 25' damping='.01'/>
      <geom type='box' size='.05 .02 .1' contype='0' conaffinity='0'/></body></body>"""
ACTUATORS = """<actuator><position joint='a' kp='20' kv='1' forcerange='-3 3'/><velocity joint='b' kv='.5'/>
  <motor joint='c' gear='3' ctrlrange='-.5 .5' ctrllimited='true'/>
  <general joint='b' gaintype='affine' gainprm='1 .2 .1' biastype='affine' biasprm='.1 -.3 -.05'/></actuator>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_joints_limits_friction_and_actuators(integrator):
    model = scene(CHAIN, option=f"integrator='{integrator}'", rest=ACTUATORS)
    found = compare(model, spread=1.0, steps=100)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95
    assert found.solves > 1


@pytest.mark.parametrize("flag", ["warmstart", "island", "actuation", "refsafe", "eulerdamp", "filterparent"])
def test_flags(flag):
    """Each flag changes what MuJoCo does; two robots, so that there are two islands."""
    option = f"cone='elliptic'><flag {flag}='disable'/></option><option timestep='.004'"
    found = compare(scene(PLANE + CHAIN + falling(SHAPES["capsule"], 3), option=option, rest=ACTUATORS), spread=1.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


@pytest.mark.parametrize("actuators", ["", "<actuator><motor joint='j'/></actuator>"])
def test_gravity_compensation_by_actuators(actuators):
    """MuJoCo adds it with the forces of the actuators, if there are any: a robot without actuators sinks."""
    geom = "<geom type='capsule' size='.03' fromto='0 0 0 .3 0 0'/>"
    body = f"<body gravcomp='.7'><joint name='j' axis='0 1 0' actuatorgravcomp='true'/>{geom}</body>"
    found = compare(scene(body, rest=actuators), amplitude=0.0)
    assert np.max(found.qpos) < 1e-12


@pytest.mark.parametrize("joint", ["type='ball'", "type='ball' range='0 25' margin='.6'", "type='free'"])
def test_springs_and_limits_of_rotations(joint):
    """A spring of a ball or free joint, and a limit that acts at rest, where a rotation has no axis."""
    geom = "<geom type='capsule' size='.03' fromto='0 0 0 .3 0 0'/>"
    body = f"<body pos='0 0 1'><joint {joint} stiffness='2' damping='.1'/>{geom}</body>"
    found = compare(scene(body), spread=1.0, steps=10)
    assert np.max(found.qpos) < 1e-12
    assert found.engine.tables_by_name["jnt_springy"].tolist() == [1]


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast"])
def test_bounds_of_joints_that_a_tendon_drives(integrator):
    """The velocity gain of an actuator on a tendon stays implicit where a joint's bound clamps its force."""
    geom = "<geom type='capsule' size='.03' fromto='0 0 0 .3 0 0' contype='0' conaffinity='0'/>"
    body = f"""<body><joint name='a' axis='0 1 0' actuatorfrcrange='-.01 .01'/>{geom}
      <body pos='.3 0 0'><joint name='b' axis='0 1 0'/>{geom}</body></body>"""
    rest = """<tendon><fixed name='t'><joint joint='a' coef='1'/><joint joint='b' coef='2'/></fixed></tendon>
      <actuator><position tendon='t' kp='5' kv='1'/></actuator>"""
    found = compare(scene(body, option=f"integrator='{integrator}'", rest=rest), spread=1.0)
    assert np.max(found.qpos) < 1e-12


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_fixed_tendons(integrator):
    rest = """<tendon><fixed name='t' limited='true' range='-.1 .2' stiffness='5' damping='.2' frictionloss='.1'>
        <joint joint='a' coef='1'/><joint joint='b' coef='-.5'/></fixed></tendon>
      <actuator><position tendon='t' kp='10' kv='.3'/></actuator>"""
    found = compare(scene(CHAIN, option=f"integrator='{integrator}'", rest=rest), spread=1.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


@pytest.mark.parametrize(
    "equality",
    [
        "<connect body1='tip' anchor='.02 0 0'/>",
        "<connect body1='tip' body2='ball' anchor='.02 0 0'/>",
        "<weld body1='tip' body2='ball' torquescale='.7'/>",
        "<weld body1='ball'/>",
        "<joint joint1='a' joint2='b' polycoef='.1 .5 .2 0 0'/>",
        "<joint joint1='b' polycoef='.2 0 0 0 0'/>",
    ],
)
def test_equalities(equality):
    found = compare(scene(CHAIN, rest=f"<equality>{equality}</equality>{ACTUATORS}"), spread=1.0)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast", "RK4"])
def test_ties_in_several_islands(integrator):
    """A weld, a connect, couplings, a rough tendon and a limited ball joint: islands do not act on each other."""
    found = compare(mujoco.MjModel.from_xml_string(tied(integrator)), spread=1.0)
    assert np.max(found.qpos) < 1e-12
    assert found.iterations == 1.0


def test_margin_gap_priority_and_explicit_pairs():
    body = (
        PLANE.replace("size", "name='floor' margin='.01' size")
        + """
      <body pos='0 0 .105'><freejoint/><geom type='sphere' size='.1' gap='.005' solref='-500 -10' priority='1'/></body>
      <body pos='1 0 .105'><freejoint/><geom type='sphere' name='other' size='.1' solimp='.8 .99 .002 .4 3'/></body>"""
    )
    rest = """<contact><pair geom1='floor' geom2='other' condim='4' friction='.5 .4 .01 0 0' solreffriction='.05 1'
      solimp='.8 .99 .01 .3 3'/></contact>"""
    found = compare(scene(body, option="cone='elliptic'", rest=rest), spread=0.5)
    assert np.median(found.qpos) < 1e-11
    assert found.iterations > 0.95


def test_many_contacts_only_need_a_larger_workspace():
    """Twenty spheres in a heap: more slots than a workspace has at first."""
    rng = np.random.default_rng(0)
    body = PLANE + "".join(
        f"<body pos='{x} {y} {0.1 + 0.02 * z}'><freejoint/><geom type='sphere' size='.1'/></body>"
        for x, y, z in rng.uniform(-0.5, 0.5, (20, 3))
    )
    found = compare(scene(body), batch=2, steps=10)
    assert found.engine._spaces[0].slots > 16
    assert found.qpos.max() < 1e-9


def test_menagerie(menagerie):
    """A quadruped on its feet, targets moving at random: 1e-12 after 200 steps, all iteration counts equal."""
    spec = mujoco.MjSpec.from_file(str(menagerie / "unitree_go2" / "scene.xml"))
    for a in spec.actuators:
        a.gainprm[0], a.biastype, a.ctrllimited = 40, mujoco.mjtBias.mjBIAS_AFFINE, 0
        a.biasprm[:3] = [0, -40, -1]
    found = compare(spec.compile(), batch=4, steps=200, amplitude=0.1)
    assert np.median(found.qpos) < 1e-12
    assert found.iterations == 1.0
