"""The hybrid moves in MuJoCo as it does in truesim."""

import json
import shutil

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from truesim import Log, TruesimError
from truesim.bridges.mujoco import attach
from truesim.files.robots import loads
from truesim.files.robots.compiled import from_compiled
from truesim.identification.fit import Fit
from truesim.identification.fit_folder import robot_file
from truesim.identification.problem.build import build
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.stages import solve_problem
from truesim.physics.blueprint import GRU, MLP, Blueprint, Rule, Trained
from truesim.physics.simulation import Simulator, State, record

ARM = """
<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="{}"><flag contact="disable"/></option><worldbody>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping=".15" armature=".02"/>
    <inertial pos="0 0 -.2" mass="1.2" diaginertia=".02 .02 .002"/>
    <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".08" armature=".01"/>
      <inertial pos="0 0 -.15" mass=".7" diaginertia=".008 .008 .001"/></body></body></worldbody>
<actuator><position name="shoulder" joint="shoulder" kp="20" kv="1"/>
  <motor name="elbow" joint="elbow"/></actuator></mujoco>"""
STEPS = 1000

FORCES = Blueprint(
    (
        Rule("joint.friction_torque", ("joint.velocity",), MLP((8,))),
        Rule("body.wrench", ("body.velocity",), MLP((6,)), names=("lower",), head="dissipative"),
        Rule("actuator.command", ("actuator.command",), MLP((4,)), sharing="each"),
    )
)
MEMORY = Blueprint(
    (
        Rule("actuator.force", ("actuator.force", "previous actuator.force"), MLP((4,))),
        Rule("joint.torque", ("joint.position", "joint.velocity"), GRU(4), sharing="whole"),
    )
)
DAMPER = Blueprint((Rule("joint.damping_torque", ("joint.velocity",), MLP((6,)), mode="replace"),))


def trained(simulator: Simulator, blueprint: Blueprint) -> Trained:
    """Networks with numbers at random."""
    rng, learned = np.random.default_rng(0), blueprint.build(simulator)
    weights = {name: 0.3 * rng.normal(size=learned.weights(k).shape) for k, name in enumerate(learned.names)}
    return Trained(blueprint, weights)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
@pytest.mark.parametrize("blueprint", [FORCES, MEMORY, DAMPER], ids=["forces", "memory", "damper"])
def test_a_thousand_steps_agree(integrator, blueprint):
    """Positions differ by less than 1e-6 after 1,000 steps; without the networks they would differ a lot."""
    model = mujoco.MjModel.from_xml_string(ARM.format(integrator))
    with jax.enable_x64(True):
        robot = from_compiled(model, None)
        networks = trained(Simulator.of(robot), blueprint)
        if integrator == "RK4" and blueprint is MEMORY:
            with pytest.raises(TruesimError, match="RK4"):
                attach(model, networks)
            return
        time = np.arange(STEPS) * 0.002
        commands = np.stack([0.8 * np.sin(3 * time), 0.5 * np.sin(5 * time + 1)], axis=1)
        start = State(jnp.array([0.3, -0.5]), jnp.array([1.0, -0.4]), jnp.zeros(()))
        ours = np.asarray(record(Simulator.of(robot, blueprint=networks), start, commands).q)
    hybrid = attach(model, networks)
    theirs = moved(model, commands)
    hybrid.detach()
    plain = moved(model, commands)
    assert np.abs(ours[1:] - theirs).max() < 1e-6
    assert np.abs(plain - theirs).max() > 1e-2


def moved(model: mujoco.MjModel, commands: np.ndarray) -> np.ndarray:
    """Positions after every step of MuJoCo."""
    data, q = mujoco.MjData(model), np.empty((len(commands), model.nq))
    data.qpos[:], data.qvel[:] = (0.3, -0.5), (1.0, -0.4)
    for k, command in enumerate(commands):
        data.ctrl[:] = command
        mujoco.mj_step(model, data)
        q[k] = data.qpos
    return q


def test_other_ports_are_refused_by_name():
    """Ports that are no forces cannot be had in MuJoCo."""
    model = mujoco.MjModel.from_xml_string(ARM.format("Euler"))
    with jax.enable_x64(True):
        simulator = Simulator.of(from_compiled(model, None))
        networks = trained(simulator, Blueprint((Rule("step.velocity_change", ("joint.velocity",)),)))
    with pytest.raises(TruesimError, match=r"step\.velocity_change.*joint\.torque"):
        attach(model, networks)


def test_another_robot_is_refused():
    """Networks belong to the joints that they were trained on."""
    model = mujoco.MjModel.from_xml_string(ARM.format("Euler"))
    other = mujoco.MjModel.from_xml_string(ARM.format("Euler").replace('"lower"', '"tip"'))
    with jax.enable_x64(True):
        networks = trained(Simulator.of(from_compiled(model, None)), FORCES)
    with pytest.raises(TruesimError, match="lower"):
        attach(other, networks)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A fit of the arm with a network, and its folder."""
    robot, machine = (loads(ARM.format("RK4").replace(".08", damping)) for damping in (".08", ".5"))
    time = np.arange(300) * 0.002
    with jax.enable_x64(True):
        commands = np.stack([0.8 * np.sin(3 * time), 0.5 * np.sin(5 * time + 1)], axis=1)
        simulator = Simulator.of(machine)
        motion = record(simulator, simulator.initial_state(), jnp.asarray(commands))
    columns = {f"qpos/{name}": np.asarray(motion.q)[:, k] for k, name in enumerate(("shoulder", "elbow"))}
    columns |= {f"ctrl/{name}": np.asarray(motion.command)[:, k] for k, name in enumerate(("shoulder", "elbow"))}
    rule = Rule("joint.friction_torque", ("joint.velocity",), MLP((2,)), penalty=0.1)
    problem = build(robot, [Log(np.asarray(motion.time), columns)], [], ProblemOptions(blueprint=Blueprint((rule,))))
    fit = Fit.of(solve_problem(problem, SolveOptions(iterations=5, window=0.1)))
    folder = tmp_path_factory.mktemp("fit")
    fit.save(folder)
    return fit, folder


@pytest.mark.parametrize("how", ["fit", "folder", "path"])
def test_a_fit_its_folder_and_a_path_attach_alike(fitted, how):
    """All give the force of the same networks."""
    fit, folder = fitted
    given = {"fit": fit, "folder": folder, "path": str(folder)}[how]
    model = mujoco.MjModel.from_xml_path(str(robot_file(folder)))
    data = mujoco.MjData(model)
    data.qvel[:] = (1.0, -2.0)
    hybrid = attach(model, given)
    with jax.enable_x64(True):
        net = fit.problem.simulator_at(fit.solution.theta).learned.networks[0].net
        expected = [float(net(jnp.array([v]))[0]) for v in data.qvel]
    force = hybrid.force(data)
    hybrid.detach()
    np.testing.assert_allclose(force, expected, rtol=1e-9)
    assert np.abs(expected).max() > 1e-3


def test_folders_without_networks_are_refused(fitted, tmp_path):
    """A folder of no fit, and a fit without networks; a port that is no force by its name, from a folder too."""
    _, folder = fitted
    model = mujoco.MjModel.from_xml_path(str(robot_file(folder)))
    with pytest.raises(TruesimError, match="not the folder of a fit"):
        attach(model, tmp_path)
    copied = tmp_path / "fit"
    shutil.copytree(folder, copied)
    document = json.loads((copied / "networks.json").read_text())
    document["rule"][0]["output"] = "step.velocity_change"
    (copied / "networks.json").write_text(json.dumps(document))
    with pytest.raises(TruesimError, match=r"step\.velocity_change, which MuJoCo cannot be given.*Valid: actuator"):
        attach(model, copied)
    for name in ("networks.json", "networks.npz"):
        (copied / name).unlink()
    with pytest.raises(TruesimError, match="has no networks"):
        attach(model, str(copied))
