"""The sidecar holds what the file cannot, is read by itself, and teaches when it is wrong."""

import json

import pytest

from tests.files.robots.conftest import LEG, changed
from truesim.core.errors import FileError
from truesim.files.robots import load, save
from truesim.files.robots.sidecar import sidecar_path
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_actuator_model


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "leg.urdf"
    path.write_text(LEG)
    return path


def write(robot, content):
    sidecar_path(robot).write_text(content if isinstance(content, str) else json.dumps(content))


def test_it_is_read_by_itself(robot):
    """A value in the sidecar is in the model."""
    write(robot, {"version": 1, "parameters": {"joints/knee.armature": 0.25, "gravity": [0, 0, -1.6]}})
    model = load(robot)
    assert model.joints.armature.tolist() == [0.25, 0.0]
    assert model.gravity.tolist() == [0, 0, -1.6]


def test_its_name_and_content(robot):
    """It stands beside the file under the file's whole name and holds a version and the parameters."""
    save(changed(load(robot), {"joints/knee.armature": 0.1}), robot)
    assert json.loads((robot.parent / "leg.urdf.truesim.json").read_text()) == {
        "version": 1,
        "parameters": {"joints/knee.armature": 0.1},
    }


def test_a_stale_one_is_removed(robot):
    """When a save needs no sidecar any more, the old one goes."""
    save(changed(load(robot), {"joints/knee.armature": 0.1}), robot)
    save(changed(load(robot), {"joints/knee.armature": 0.0}), robot)
    assert not sidecar_path(robot).exists()


def test_sections_of_others_stay(robot):
    """Sections that this layer does not know survive a save."""
    write(robot, {"version": 1, "delays": {"knee": 0.01}})
    save(changed(load(robot), {"joints/knee.armature": 0.1}), robot)
    save(changed(load(robot), {"joints/knee.armature": 0.0}), robot)
    assert json.loads(sidecar_path(robot).read_text()) == {"version": 1, "delays": {"knee": 0.01}}


def test_what_no_format_holds_comes_back(tmp_path):
    """Offset, stiction, sensor errors and the clock's scale go to the sidecar from either format, a delay from URDF."""
    servo = """<mujoco><worldbody><body><joint name="knee"/><geom size=".1"/></body></worldbody>
      <actuator><position name="knee" joint="knee" kp="3"/></actuator>
      <sensor><gyro name="imu" site="s"/></sensor></mujoco>""".replace("<geom", '<site name="s"/><geom')
    values = {
        "actuators/knee.delay": 0.0113,
        "actuators/knee.offset": -0.02,
        "joints/knee.stiction": 0.3,
        "joints/knee.stribeck_velocity": 0.05,
        "joints/knee.load_friction": 0.07,
        "sensors/qpos/knee.bias": 0.05,
        "sensors/qvel/knee.scale": 1.01,
        "time_scale": 1.02,
    }
    cases = {"leg.urdf": (LEG, values), "leg.xml": (servo, {**values, "sensors/imu/y.delay": 0.004})}
    for name, (text, numbers) in cases.items():
        path = tmp_path / name
        path.write_text(text)
        save(changed(load(path), numbers), path)
        delay = ' delay="0.0113" nsample="7" interp="linear"'
        assert path.read_text() == text.replace('kp="3"', f'kp="3"{delay}')
        beside = {at: value for at, value in numbers.items() if at != "actuators/knee.delay" or name == "leg.urdf"}
        assert json.loads(sidecar_path(path).read_text())["parameters"] == beside
        model = load(path)
        assert {at: float(paths.read(model, at)) for at in numbers} == numbers


def test_actuator_models_come_back(robot):
    """The model of an actuator and its parameters go to the sidecar; those that are as by default need not."""
    model = with_actuator_model(load(robot), "knee", "duty_servo", kp=400.0, volts=7.4)
    notes = save(model, robot)
    assert json.loads(sidecar_path(robot).read_text())["parameters"] == {
        "actuators/knee.law": "duty_servo",
        "actuators/knee.kp": 400.0,
        "actuators/knee.volts": 7.4,
    }
    assert "actuators/knee.law" in [note.subject for note in notes]
    again = load(robot)
    assert again.actuators.models == model.actuators.models
    for path in paths.paths(model):
        assert paths.read(again, str(path)).tolist() == paths.read(model, path).tolist()
    save(with_actuator_model(again, "knee", "affine"), robot)
    assert not sidecar_path(robot).exists()


def holding(path, value):
    """The content of a sidecar with one parameter."""
    return {"version": 1, "parameters": {path: value}}


WRONG = {
    "not JSON": ("{", r"^leg.urdf.truesim.json cannot be read as JSON"),
    "not an object": ("[1]", "must hold an object"),
    "version": ({"version": 2}, "has version 2; this release reads version 1"),
    "name": (holding("joints/kne.armature", 1), "There is no joint named 'kne', did you mean 'knee'"),
    "field": (holding("joints/knee.armture", 1), "did you mean 'armature'"),
    "shape": (holding("gravity", 9.81), r"gravity has shape \(3,\), but the new value has shape \(\)"),
    "text": (holding("gravity", "down"), "must be a number or a list of numbers, not 'down'"),
    "law": (holding("actuators/knee.law", "dc_moter"), "There is no actuator model named 'dc_moter', did you mean"),
    "number of another law": (holding("actuators/knee.kp", 1), "actuators/knee has no kp: it is a motor"),
    "nan": (holding("joints/knee.armature", float("nan")), "must be a number or a list of numbers"),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_mistakes_are_one_sentence(robot, content, message):
    """A wrong sidecar is refused by name, with what would be right."""
    write(robot, content)
    with pytest.raises(FileError, match=message) as error:
        load(robot)
    assert "leg.urdf.truesim.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_compliance_of_contact_comes_back(tmp_path):
    """Stiffness, damping and the rest of a geom's compliant contact go to the sidecar, number by number."""
    path = tmp_path / "ball.xml"
    path.write_text('<mujoco><worldbody><body><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>')
    values = {"contact_stiffness": 3e4, "contact_damping": 2e3, "contact_exponent": 1.2, "transition_speed": 0.02}
    values = {f"geoms/ball.{field}": value for field, value in values.items()} | {"geoms/ball.breakaway": 1.3}
    save(changed(load(path), values), path)
    assert json.loads(sidecar_path(path).read_text())["parameters"] == values
    assert {name: float(paths.read(load(path), name)) for name in values} == values
