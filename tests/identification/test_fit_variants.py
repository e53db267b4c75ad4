"""Fits with contact, a floating base and networks: the folder holds all of it."""

import jax
import numpy as np
import pytest

from tests.identification.recorded import ARM_WRONG, arm_log, record
from truesim.cli.simulate import simulate
from truesim.files.logs import Log, read_log
from truesim.files.robots import load
from truesim.identification import Fit, identify
from truesim.physics.blueprint import MLP, Blueprint, Rule
from truesim.physics.contact import RigidContact
from truesim.physics.model.kinds import FREE

BOX = """
<mujoco><option timestep="0.005"/><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
  <body name="box" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
    <geom name="cube" type="box" size=".1 .1 .1" mass="1"/></body></worldbody>
  <actuator><motor name="push" joint="x"/></actuator></mujoco>"""
DRONE = """
<robot name="drone"><link name="hull"><inertial><mass value="1.2"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0 0 -0.1"/><mass value="0.3"/>
  <inertia ixx="0.002" iyy="0.002" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="continuous"><parent link="hull"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


def check_same(fit: Fit, folder) -> Fit:
    """The loaded fit has the same simulator, values and document."""
    again = Fit.load(folder)
    for mine, other in zip(jax.tree.leaves(fit.simulator), jax.tree.leaves(again.simulator), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert again.request.options.document() == fit.request.options.document()
    assert [e.document() for e in again.estimates] == [e.document() for e in fit.estimates]
    return again


def test_rigid_contact_with_its_smoothing(tmp_path):
    """And predictions of another log are those of the fit."""
    (tmp_path / "box.xml").write_text(BOX)
    log = record(BOX, lambda t: [8 * np.sin(6 * t)], 0.7, noise=1e-4)
    options = {"contact": "rigid", "smoothing": 1e-3, "window": 0.1, "iterations": 2}
    fit = identify(tmp_path / "box.xml", [log], ["bodies/box.mass"], out=tmp_path / "fit", **options)
    again = check_same(fit, tmp_path / "fit")
    assert isinstance(again.simulator.contact, RigidContact)
    np.testing.assert_allclose(
        again.evaluate([log], window=0.1)["qpos/x"].rmse, fit.evaluate([log], window=0.1)["qpos/x"].rmse
    )


def test_a_floating_base(tmp_path):
    """The root of the URDF is free in the loaded fit too."""
    (tmp_path / "drone.urdf").write_text(DRONE)
    model = load(tmp_path / "drone.urdf", floating_base=True)
    time = np.arange(140) * 0.005
    height = 2 - 4.905 * time**2
    root = next(name for name, kind in zip(model.joints.names, model.joints.kinds, strict=True) if kind == FREE)
    pose = {
        "x": 0 * time,
        "y": 0 * time,
        "z": height,
        "qw": 1 + 0 * time,
        "qx": 0 * time,
        "qy": 0 * time,
        "qz": 0 * time,
    }
    columns = {f"qpos/{root}/{axis}": values for axis, values in pose.items()}
    columns |= {"qpos/hip": 0.3 * np.sin(4 * time), "ctrl/hip": 0.05 * np.sin(9 * time)}
    fit = identify(
        tmp_path / "drone.urdf",
        [Log(time, columns, "fall.csv")],
        ["bodies/arm.mass"],
        out=tmp_path / "fit",
        floating_base=True,
        window=0.05,
        iterations=2,
    )
    again = check_same(fit, tmp_path / "fit")
    assert again.model.nq == 8
    simulate(tmp_path / "fit", 0.05, tmp_path / "motion.csv")
    assert f"qpos/{root}/z" in read_log(tmp_path / "motion.csv").columns


def test_networks_curriculum_and_validation(tmp_path):
    """Weights, their start, and the request with horizons and validation logs."""
    (tmp_path / "arm.xml").write_text(ARM_WRONG)
    rule = Rule("joint.friction_torque", ("joint.velocity",), MLP((3,)), penalty=0.1)
    fit = identify(
        tmp_path / "arm.xml",
        [arm_log(0.7, name="a")],
        ["bodies/lower.mass"],
        validate=[arm_log(0.7, seed=2, name="v")],
        blueprint=Blueprint((rule,)),
        horizons=[0.05],
        iterations=3,
        out=tmp_path / "fit",
    )
    again = check_same(fit, tmp_path / "fit")
    assert again.request.validate == ("v",)
    assert again.request.options.solve.horizons == (0.05,)
    assert again.networks is not None
    for name, weights in fit.networks.weights.items():
        np.testing.assert_array_equal(again.networks.weights[name], weights)
    np.testing.assert_array_equal(again.problem.parameters.start, fit.problem.parameters.start)
    again.save(tmp_path / "copy")
    check_same(fit, tmp_path / "copy")


def test_values_that_belong_to_single_logs(tmp_path):
    """Known ones are known again, and estimated ones are there by log."""
    (tmp_path / "arm.xml").write_text(ARM_WRONG)
    table = {"a": {"bodies/lower.mass": 0.6}, "b": {"bodies/lower.mass": 0.7}, "*": {"joints/elbow.damping": "free"}}
    logs = [arm_log(0.7, name="a"), arm_log(0.7, seed=3, name="b")]
    fit = identify(
        tmp_path / "arm.xml", logs, ["bodies/upper.mass"], per_log=table, window=0.1, iterations=3, out=tmp_path / "fit"
    )
    again = check_same(fit, tmp_path / "fit")
    assert {"joints/elbow.damping@a", "joints/elbow.damping@b"} <= set(again.values)
    with pytest.raises(Exception, match="no log named"):
        identify(tmp_path / "arm.xml", logs[:1], ["bodies/upper.mass"], per_log=table)
