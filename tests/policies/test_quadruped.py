"""Joystick of a quadruped: its facts are read from any file, and MuJoCo's contact moves it as MuJoCo does."""

import dataclasses
import os
import re
from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.policies.environment import Environment
from truesim.policies.physics import MujocoPhysics, physics_of
from truesim.policies.randomization import Randomization, uniform
from truesim.policies.tasks.legged_robot import geom_positions, lowest_points, read_quadruped
from truesim.policies.tasks.quadruped import go2_joystick

LEG = """
<body name="{n}_hip" pos="{x} {y} 0">
  <joint name="{n}_hip_joint" axis="1 0 0" range="-0.8 0.8" damping="1" armature="0.01"/>
  <geom name="{n}_hip" type="sphere" size="0.03" mass="0.3" contype="0" conaffinity="0"/>
  <body name="{n}_thigh" pos="0 {o} 0">
    <joint name="{n}_thigh_joint" axis="0 1 0" range="-1.5 3" damping="1" armature="0.01"/>
    <geom name="{n}_thigh" type="capsule" fromto="0 0 0 0 0 -0.2" size="0.015" mass="0.6"/>
    <body name="{n}_calf" pos="0 0 -0.2">
      <joint name="{n}_calf_joint" axis="0 1 0" range="-2.7 -0.8" damping="1" armature="0.01"/>
      <geom name="{n}_calf" type="capsule" fromto="0 0 -0.02 0 0 -0.16" size="0.012" mass="0.15"/>
      <geom name="{n}" type="sphere" size="0.022" pos="0 0 -0.2" mass="0.03" priority="1" friction="0.8"/>
</body></body></body>"""
CORNERS = (("FL", 0.2, 0.05, 0.09), ("FR", 0.2, -0.05, -0.09), ("RL", -0.2, 0.05, 0.09), ("RR", -0.2, -0.05, -0.09))
JOINTS = [f"{n}_{part}" for n, *_ in CORNERS for part in ("hip", "thigh", "calf")]
ROBOT = f"""
<mujoco model="dog"><compiler angle="radian"/><option timestep="0.002" cone="elliptic"/>
<worldbody><geom name="floor" type="plane" size="0 0 1"/>
<body name="trunk" pos="0 0 0.3"><freejoint name="root"/>
<geom name="trunk" type="box" size="0.2 0.06 0.05" mass="7"/>
{"".join(LEG.format(n=n, x=x, y=y, o=o) for n, x, y, o in CORNERS)}
</body></worldbody>
<actuator>{"".join(f'<motor name="{j}" joint="{j}_joint" ctrlrange="-24 24" ctrllimited="true"/>' for j in JOINTS)}
</actuator>
<keyframe><key name="home" qpos="0 0 0.27 1 0 0 0 {"0 0.9 -1.8 " * 4}"/></keyframe></mujoco>"""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "dog.xml"
    path.write_text(ROBOT)
    return path


@pytest.fixture(scope="module")
def task(robot):
    return go2_joystick(robot)


def test_facts_of_the_robot(robot):
    own = read_quadruped(robot, timestep=0.005)
    names = own.simulator.model.geoms.names
    assert [names[g] for g in own.feet] == ["FL", "FR", "RL", "RR"]
    assert own.gait.tolist() == [0.0, 0.5, 0.5, 0.0]
    assert own.hips.tolist() == [1.0, 0.0, 0.0] * 4
    assert (own.torque == 24.0).all()
    assert [names[g] for g in own.obstacles(base=True)] == ["trunk"]
    assert {names[g] for g in own.obstacles(base=False)} == {f"{n}_{p}" for n, *_ in CORNERS for p in ("thigh", "calf")}


def test_routines_move_it_as_mujoco_does(task):
    """The same actions, nominal parameters and time step: positions agree to single precision after 0.2 s."""
    plain = dataclasses.replace(task, randomization=Randomization(), pushes=None)
    compiled = plain.simulator.model.source.compiled
    compiled.opt.timestep = float(plain.simulator.timestep)
    rng = np.random.default_rng(0)
    actions = 0.3 * rng.standard_normal((10, 4, 12)).astype(np.float32)
    ends = []
    with float32():
        for physics in (physics_of(plain, 4), MujocoPhysics(compiled, plain.period)):
            environment = Environment(plain, 4, physics=physics)
            episodes, _ = environment.reset(0)
            for each in actions:
                episodes, outcome = environment.step(episodes, each)
            ends.append((np.asarray(episodes.state.q), np.asarray(outcome.reward)))
    compiled.opt.timestep = 0.002
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=3e-3)
    np.testing.assert_allclose(ends[0][1], ends[1][1], atol=3e-3)


def test_parameters_of_episodes_reach_the_routines(task):
    """A robot that carries more sinks deeper; each episode has its own load."""
    heavy = dataclasses.replace(
        task, randomization=Randomization({"bodies/trunk.mass": uniform(0.0, 10.0, "add")}), pushes=None
    )
    with float32():
        environment = Environment(heavy, 13, physics=physics_of(heavy, 13))
        episodes, outcome = environment.reset(0)
        for _ in range(40):
            episodes, outcome = environment.step(episodes, np.zeros((13, 12), np.float32))
    assert not outcome.terminated.any()
    load, height = episodes.parameters["bodies/trunk.mass"], episodes.state.q[:, 2]
    assert np.corrcoef(load, height)[0, 1] < -0.9


def test_a_parameter_that_cannot_differ_is_named(task):
    sized = dataclasses.replace(task, randomization=Randomization({"geoms/FL.size": uniform(0.9, 1.1, "scale")}))
    with float32(), pytest.raises(TruesimError, match="cannot differ between episodes"):
        physics_of(sized, 4)


def test_observations_have_the_documented_sizes(task):
    with float32():
        environment = Environment(task, 2, physics=physics_of(task, 2))
        _, outcome = environment.reset(0)
    assert outcome.observation.shape == (2, 47)
    assert np.isfinite(outcome.privileged).all()


def bare(text):
    """The robot without floor, actuators and keyframe."""
    without_floor = text.replace('<geom name="floor" type="plane" size="0 0 1"/>', "")
    return without_floor[: without_floor.index("<actuator>")] + "</mujoco>"


@pytest.mark.parametrize(
    "foot",
    [
        '<geom name="{n}" type="capsule" fromto="0 0 -0.02 0 0 -0.18" size="0.02" mass="0.2"/>',
        '<geom name="{n}" type="cylinder" fromto="0 0 -0.2 0 0 -0.02" size="0.02" mass="0.2"/>',
        '<geom name="{n}" type="box" pos="0 0 -0.1" size="0.015 0.015 0.1" mass="0.2"/>',
    ],
)
def test_a_lower_leg_without_a_foot_stands_on_its_end(tmp_path, foot):
    """The end of the lower leg is the foot: all four are on the floor in the posture that is made up, and below."""
    path, legs = tmp_path / "stilts.xml", "".join(LEG.format(n=n, x=x, y=y, o=o) for n, x, y, o in CORNERS)
    stilts = re.sub(r'<geom name="(\w\w)_calf".*\n.*<geom name="\1" .*/>', lambda m: foot.format(n=m[1]), legs)
    path.write_text(bare(ROBOT.replace(legs, stilts)))
    own = read_quadruped(path, timestep=0.005)
    model, q = own.simulator.model, jnp.asarray(own.home)
    assert [model.geoms.names[g] for g in own.feet] == ["FL", "FR", "RL", "RR"]
    np.testing.assert_allclose(lowest_points(model, q, own.feet), 0.0, atol=1e-3)
    ends = np.asarray(geom_positions(model, q, own.feet, own.tips))
    assert np.all(ends[:, 2] < 0.021)
    np.testing.assert_allclose(ends[:, 0], [0.2, 0.2, -0.2, -0.2], atol=1e-2)  # below the hips
    assert own.height > 0.3


def test_a_bare_robot_is_completed(tmp_path):
    """A floor, a motor for each joint and a posture with bent knees are made up, and the robot stands on its feet."""
    path = tmp_path / "bare.xml"
    path.write_text(bare(ROBOT))
    own = read_quadruped(path, timestep=0.005)
    assert own.compiled.nu == 12
    assert own.made_up == (
        "a floor",
        "12 motors",
        f"torque limit of 12 joints ({own.torque[0]:.3g} N m)",
        f"posture with the base at {own.height:.3g} m",
    )
    assert own.torque == pytest.approx(0.6 * own.compiled.body_mass.sum() * 9.81 * own.height)
    leg = own.home[7:].reshape(4, 3)
    np.testing.assert_allclose(leg, leg[:1].repeat(4, axis=0), atol=1e-3)
    assert abs(leg[0, 0]) < 1e-3
    assert leg[0, 1] > 0.3  # knees behind
    assert own.height == pytest.approx(0.022 + 0.8 * 0.4, abs=1e-3)
    task = dataclasses.replace(go2_joystick(path), randomization=Randomization(), pushes=None)
    with float32():
        environment = Environment(task, 2, physics=MujocoPhysics(task.simulator.model.source.compiled, task.period))
        episodes, _ = environment.reset(0)
        for _ in range(50):
            episodes, _ = environment.step(episodes, np.zeros((2, 12), np.float32))
    assert int(np.min(episodes.step)) == 50
    assert np.abs(np.asarray(episodes.state.q)[:, 2] - own.height).max() < 0.1 * own.height
    assert np.asarray(episodes.memory["contact"]).all()


NO_FRICTION, NO_ROTOR = ROBOT.replace('damping="1"', ""), ROBOT.replace('armature="0.01"', "")
NEITHER = NO_FRICTION.replace('armature="0.01"', "")


@pytest.mark.parametrize(
    ("text", "is_made_up"),
    [
        (NEITHER, (True, True)),
        (NO_FRICTION, (False, False)),
        (NO_ROTOR, (False, False)),
        (bare(NEITHER), (True, True)),
        (bare(NO_FRICTION), (False, True)),
        (bare(NO_ROTOR), (True, False)),
    ],
)
def test_rotors_are_made_up_only_where_the_file_has_none(tmp_path, text, is_made_up):
    """Motors of a file keep the inertia and damping that it has for them, and what is made up is told."""
    path = tmp_path / "light.xml"
    path.write_text(text)
    own, file = read_quadruped(path, timestep=0.005), mujoco.MjModel.from_xml_string(text)
    inertia = own.torque * 4e-4 if is_made_up[0] else file.dof_armature[6:]
    damping = own.torque / 25.0 if is_made_up[1] else file.dof_damping[6:]
    np.testing.assert_allclose(own.compiled.dof_armature[6:], inertia, rtol=1e-5)
    np.testing.assert_allclose(own.compiled.dof_damping[6:], damping, rtol=1e-5)
    np.testing.assert_allclose(own.simulator.model.joints.armature[1:], inertia, rtol=1e-5)
    assert not own.compiled.dof_armature[:6].any()  # the base has no motor
    told = " ".join(own.made_up)
    assert ("rotor inertia of 12 joints" in told, "damping of 12 joints" in told) == is_made_up
    assert go2_joystick(path).made_up == own.made_up


def test_servos_of_a_light_robot_are_damped(tmp_path):
    """With rotors that are made up, no joint is damped less than asked, although its own links are light."""
    path = tmp_path / "light.xml"
    path.write_text(bare(NEITHER))
    own = read_quadruped(path, timestep=0.005)
    data, mass_matrix = mujoco.MjData(own.compiled), np.zeros((18, 18))
    data.qpos[:] = own.home
    mujoco.mj_forward(own.compiled, data)
    mujoco.mj_fullM(own.compiled, data, mass_matrix)
    critical = 2.0 * np.sqrt(own.stiffness * np.diag(mass_matrix)[6:])
    assert ((own.damping + own.compiled.dof_damping[6:]) / critical > 0.699).all()


def test_joints_without_names_get_motors(tmp_path):
    """Names of joints are optional in MJCF; motors need them."""
    path = tmp_path / "nameless.xml"
    path.write_text(re.sub(r'<joint name="\w+"', "<joint", bare(ROBOT)))
    own = read_quadruped(path, timestep=0.005)
    assert own.simulator.model.actuators.names == tuple(f"hinge{k}" for k in range(12))


def test_numbers_of_the_task_grow_with_the_robot(robot, tmp_path):
    """Twice the torque makes servos twice as stiff, and so damped that no joint oscillates in the air."""
    strong = tmp_path / "strong.xml"
    strong.write_text(ROBOT.replace("-24 24", "-48 48"))
    weak, strong = (read_quadruped(path, timestep=0.005) for path in (robot, strong))
    assert strong.stiffness == 2 * weak.stiffness == 80.0
    inertia = ((strong.damping[:2] + 1.0) / (2 * 0.7)) ** 2 / 80.0  # of hip and thigh: critical damping, joint included
    assert (inertia > 0.025).all()
    assert (inertia < 0.029).all()
    np.testing.assert_allclose(strong.damping[2::3], 1.0)  # the calf is damped by its joint
    np.testing.assert_allclose(weak.damping, 0.5)


def test_robots_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT.replace('<freejoint name="root"/>', "").replace('qpos="0 0 0.27 1 0 0 0', 'qpos="'))
    with pytest.raises(TruesimError, match="0 free bases"):
        go2_joystick(path)
    path.write_text(bare(ROBOT).replace('range="-2.7 -0.8"', 'range="-0.3 0"'))
    with pytest.raises(TruesimError, match="cannot be put below its leg: give the file a keyframe"):
        go2_joystick(path)
    path.write_text(bare(ROBOT).replace(LEG.format(n="RR", x=-0.2, y=-0.05, o=-0.09), ""))
    with pytest.raises(TruesimError, match="has 3 legs"):
        go2_joystick(path)
    path.write_text("<mujoco><worldbody><body></worldbody></mujoco>")
    with pytest.raises(TruesimError, match="cannot be read by MuJoCo"):
        go2_joystick(path)


def test_menagerie_quadrupeds_are_read():
    """ANYmal C has no keyframe: its knees bend towards each other, as its shanks do."""
    data = Path(os.environ.get("TRUESIM_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "menagerie"
    if not data.is_dir():
        pytest.skip(f"no robots in {data}")
    for name in ("unitree_go2", "unitree_go1", "anybotics_anymal_c"):
        own = read_quadruped(data / name / "scene.xml", timestep=0.005)
        assert len(own.joint_q) == 12
        assert sorted(own.gait.tolist()) == [0.0, 0.0, 0.5, 0.5]
        assert own.hips.sum() == 4
        assert own.stiffness == {"anybotics_anymal_c": 130.0}.get(name, 40.0)
    knees = own.home[7:].reshape(4, 3)[:, 2]
    assert (np.sign(knees) == [-1, -1, 1, 1]).all()
