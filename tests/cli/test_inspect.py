"""`truesim inspect`."""

import json

from truesim.formats import load
from truesim.model import paths


def test_lists_everything_by_name(truesim, arm):
    """Bodies, joints, actuators, sensors and every parameter path with its unit are printed."""
    outcome = truesim("inspect", arm)
    assert outcome.code == 0
    model = load(arm)
    for name in (*model.bodies.names, *model.joints.names, *(sensor.name for sensor in model.sensors)):
        assert name in outcome.out
    for path in paths.paths(model):
        assert path.text in outcome.out
    assert "kg m^2" in outcome.out
    assert "Everything in this file is simulated." in outcome.out


def test_says_what_is_not_simulated(truesim, tmp_path):
    """Tendons, contact and fluids are listed."""
    (tmp_path / "r.xml").write_text(
        '<mujoco><option density="1000"/><worldbody><geom type="plane" size="1 1 1"/><body name="b"><joint name="j"/>'
        '<geom size=".1"/></body></worldbody><tendon><fixed name="T"><joint joint="j" coef="1"/></fixed></tendon>'
        "</mujoco>"
    )
    outcome = truesim("inspect", "r.xml")
    assert outcome.code == 0
    shown = outcome.out.split("Not simulated")[1]
    for word in ("fluid of density 1000", "tendon 'T'", "only if the simulator is given a contact law"):
        assert word in shown


def test_json_holds_values_and_units(truesim, arm):
    """The JSON has the same parameters, with numbers."""
    outcome = truesim("inspect", arm, "--json", "--only", "bodies/*.mass")
    shown = {entry["path"]: entry for entry in json.loads(outcome.out)["parameters"]}
    assert shown["bodies/hand.mass"] == {"path": "bodies/hand.mass", "value": 0.7, "unit": "kg"}
    assert len(shown) == 4


def test_a_pattern_that_fits_nothing_is_an_error(truesim, arm):
    """One sentence, exit code 2."""
    outcome = truesim("inspect", arm, "--only", "bodies/*.weight")
    assert outcome.code == 2
    assert "bodies/*.weight" in outcome.sentence
