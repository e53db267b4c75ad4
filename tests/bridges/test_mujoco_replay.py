"""The robot file that a fit writes, in plain MuJoCo."""

import mujoco
import numpy as np
import pytest

import truesim as ts
from tests.terminal import terminal
from truesim.bridges.mujoco_replay import replay_errors, replay_in_mujoco
from truesim.cli.main import run
from truesim.core.errors import FileError, TruesimError
from truesim.files.logs import Log
from truesim.files.robots import load, save
from truesim.identification.fit_folder import mujoco_file

ARM = """<mujoco><option timestep=".002"><flag contact="disable"/></option>{include}<worldbody>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping="{damping}" armature=".02"/>
    <inertial pos="0 0 -.15" mass="1" diaginertia=".01 .01 .001"/>
    <body name="lower" pos="0 0 -.3"><joint name="elbow" axis="0 1 0" damping="{damping}" armature=".02"/>
      <inertial pos="0 0 -.1" mass=".5" diaginertia=".004 .004 .001"/></body></body></worldbody>{motors}</mujoco>"""
MOTORS = """<actuator><position name="shoulder" joint="shoulder" kp="{kp}" {delay}/>
  <position name="elbow" joint="elbow" kp="{kp}" {delay}/></actuator>"""
JOINTS = ("shoulder", "elbow")
NOISE = 2e-4
"""Of the encoders [rad]."""


def recording(seed, seconds=4.0):
    """A log at 100 Hz of the true arm, with a delay of 23.7 ms."""
    motors = MOTORS.format(kp=30, delay='delay=".0237" nsample="16" interp="linear"')
    model = mujoco.MjModel.from_xml_string(ARM.format(include="", damping=1.3, motors=motors))
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    time = np.arange(0, seconds, 0.01)
    phase = 2 * np.pi * random.uniform(0.3, 1.6, (4, 2))
    commands = 0.3 * np.sin(time[:, None, None] * phase).sum(axis=1)
    q = []
    for command in commands:
        q.append(data.qpos.copy())
        data.ctrl = command
        for _ in range(5):
            mujoco.mj_step(model, data)
    measured = np.array(q) + NOISE * random.normal(size=(len(q), 2))
    columns = {f"qpos/{name}": measured[:, k] for k, name in enumerate(JOINTS)}
    return Log(time, columns | {f"ctrl/{name}": commands[:, k] for k, name in enumerate(JOINTS)}, name=f"run{seed}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a fit; gains and delays of the robot are in a file that it includes."""
    home = tmp_path_factory.mktemp("arm")
    (home / "arm.xml").write_text(ARM.format(include='<include file="motors.xml"/>', damping=1.0, motors=""))
    (home / "motors.xml").write_text(f"<mujoco>{MOTORS.format(kp=20, delay='')}</mujoco>")
    free = ["joints/*.damping", "actuators/*.kp", "actuators/*.delay"]
    ts.identify(home / "arm.xml", [recording(0)], free, holdout=[recording(1)], out=home / "fit")
    return home / "fit"


def test_the_written_robot_replays_the_held_out_run(folder):
    """Delays act in MuJoCo: errors over the whole run are those of the fit's own windows, near the noise."""
    held_out = ts.Fit.load(folder).document["errors"]["held_out"]
    (replay,) = replay_in_mujoco(folder / "arm.xml", [recording(1)])
    for row, error in replay_errors([replay]).items():
        assert error.rmse < 2 * NOISE
        assert error.rmse < 1.5 * held_out[row]["rmse"]


def test_numbers_are_where_they_were(folder):
    """The included file of the copy has gains and delays, the user's own has not, and no sidecar is needed."""
    assert "delay=" in (folder / "motors.xml").read_text()
    assert "delay=" not in (folder.parent / "motors.xml").read_text()
    assert not (folder / "arm.xml.truesim.json").exists()


def test_without_the_delay_the_errors_are_larger(folder, tmp_path):
    """What the test above would find if the delay stayed in a sidecar."""
    (tmp_path / "arm.xml").write_text((folder / "arm.xml").read_text())
    motors = (folder / "motors.xml").read_text()
    (tmp_path / "motors.xml").write_text(motors.replace("delay=", "user="))
    errors = replay_errors(replay_in_mujoco(tmp_path / "arm.xml", [recording(1)]))
    assert max(error.rmse for error in errors.values()) > 20 * NOISE


def test_evaluate_replays_in_mujoco(folder, tmp_path, monkeypatch, capsys):
    """`--engine mujoco` on a fit shows errors over whole logs."""
    log = recording(1)
    table = np.column_stack([log.time, *log.columns.values()])
    np.savetxt(tmp_path / "run.csv", table, delimiter=",", header="time," + ",".join(log.columns), comments="")
    monkeypatch.setenv("MUJOCO_GL", "disable")
    call = terminal(run, monkeypatch, capsys)
    shown = call("evaluate", folder, tmp_path / "run.csv", "--engine", "mujoco")
    assert shown.code == 0, shown.err
    assert "qpos/elbow" in shown.out
    assert "MuJoCo" in shown.out
    assert "mujoco" in call("evaluate", folder, tmp_path / "run.csv", "--engine", "mujocco").sentence


def test_what_cannot_be_replayed_is_told(folder, tmp_path):
    """A log without the position of a joint, and a URDF."""
    log = recording(1)
    columns = {name: values for name, values in log.columns.items() if name != "qpos/elbow"}
    with pytest.raises(TruesimError, match="qpos/elbow"):
        replay_in_mujoco(folder / "arm.xml", [Log(log.time, columns)])
    with pytest.raises(FileError, match="URDF"):
        replay_in_mujoco(tmp_path / "arm.urdf", [log])


URDF = """<robot name="arm"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 -.15"/><mass value="1"/>
  <inertia ixx=".02" iyy=".02" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" effort="20" velocity="9"/><dynamics damping="1.0"/></joint></robot>"""


def test_a_urdf_with_servos_is_written_as_mjcf_too(tmp_path):
    """The fit of a URDF has an MJCF with position servos and delays, which replays the run in MuJoCo."""
    servo = '<actuator><position joint="turn" kp="30" delay=".0237" nsample="16" interp="linear"/></actuator>'
    (tmp_path / "arm.urdf").write_text(URDF.replace('damping="1.0"', 'damping="1.4"'))
    save(load(tmp_path / "arm.urdf"), tmp_path / "true.xml")
    text = (tmp_path / "true.xml").read_text()
    begin, end = text.index("<actuator>"), text.index("</actuator>") + len("</actuator>")
    model = mujoco.MjModel.from_xml_string(text[:begin] + servo + text[end:])
    data, time = mujoco.MjData(model), np.arange(0, 4, 0.01)
    commands, q = 0.8 * np.sin(2 * np.pi * (0.4 + 0.3 * time) * time), []
    for command in commands:
        q.append(data.qpos[0])
        data.ctrl = command
        mujoco.mj_step(model, data, 5)
    measured = np.array(q) + NOISE * np.random.default_rng(0).normal(size=len(q))
    log = Log(time, {"qpos/turn": measured, "ctrl/turn": commands}, name="run")
    (tmp_path / "arm.urdf").write_text(URDF)
    free = ["joints/*.damping", "actuators/*.kp", "actuators/*.delay"]
    ts.identify(tmp_path / "arm.urdf", [log], free, servos={"joints/*": {"kp": 20.0}}, out=tmp_path / "fit")
    assert replay_in_mujoco(mujoco_file(tmp_path / "fit"), [log])[0].rmse["qpos/turn"] < 1.5 * NOISE
