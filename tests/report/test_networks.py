"""The section about networks: structure, size of their effect, learned function."""

import re

from tests.report import fits
from truesim.identification.fit_folder import read_document
from truesim.report.fit_page import fit_page
from truesim.report.sections.networks import network_section
from truesim.report.sections.signals import read_signals

EFFECT = {
    "term": 0.0,
    "change": 0.21,
    "unit": "N m",
    "input": "joint.velocity",
    "input_unit": "rad/s",
    "seen": [-2.0, 2.0],
    "x": [-4.0, 0.0, 4.0],
    "curves": {"shoulder": [0.4, 0.0, -0.4], "elbow": [0.4, 0.0, -0.4]},
    "points": [[-2.0, 0.2], [2.0, -0.2]],
}
NETWORK = {
    **{"name": "friction", "output": "joint.friction_torque", "inputs": ["joint.velocity"], "mode": "residual"},
    **{"sharing": "shared", "names": ["*"], "penalty": 100.0, "weights": 10, "change": 0.31, "effect": EFFECT},
    "network": {"kind": "mlp", "hidden": [3], "activation": "tanh"},
}


def document(**changes):
    """A fit with a network."""
    errors = {"train": {"qpos/elbow": {"median": 0.01}}, "held_out": {"qpos/elbow": {"median": 0.02}}}
    silent = {"train": {"qpos/elbow": 0.05}, "held_out": {"qpos/elbow": 0.05}}
    found = {"networks": [NETWORK], "errors": errors, "errors_without_networks": silent, "units": {"qpos/elbow": "rad"}}
    return found | changes


def test_a_fit_without_networks_has_no_section():
    """Also one that was written before there were any."""
    assert network_section({}) is None
    assert network_section({"networks": []}) is None


def test_facts_sizes_and_errors_are_said():
    """Port, inputs, size and penalty; size of the effect; errors with and without it."""
    section = network_section(document())
    (network,) = section.networks
    facts = dict(network.facts)
    assert facts["port"] == "adds to joint.friction_torque"
    assert facts["network"] == "mlp, hidden 3, 10 weights"
    assert "100" in facts["penalty R"]
    assert "0.21" in network.size
    assert "the model itself has no such term" in network.size
    assert "held-out logs errors are 2.5 times smaller" in section.words
    assert section.rows == (("qpos/elbow", "rad", "0.05", "0.01", "0.05", "0.02"),)
    larger = network_section(document(errors_without_networks={"train": {"qpos/elbow": 0.005}}))
    assert "2 times larger" in larger.words
    beside = {**NETWORK, "effect": {**EFFECT, "term": 0.84}}
    assert "25 %" in network_section(document(networks=[beside])).networks[0].size


def test_the_picture_has_the_curve_and_the_range_seen():
    """Equal curves are one; the band is what the logs show; all lies within the frame."""
    picture = network_section(document()).networks[0].plot
    ((name, points),) = picture.curves
    assert name == ""
    pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert [x for x, _ in pairs] == [0.0, 210.0, 420.0]
    assert all(0 <= y <= 190 for _, y in pairs)
    assert picture.band == ("105.0", "210.0")
    assert picture.x_axis[1].startswith("joint.velocity [rad/s")


def test_ports_elsewhere_and_replaced_physics_are_said():
    """No picture, and a sentence that says why."""
    unknown = {**NETWORK, "output": "contact.depth", "effect": None}
    section = network_section(document(networks=[unknown], errors_without_networks={"train": None}))
    assert section.networks[0].plot is None
    assert "contact.depth is not a force" in section.networks[0].size
    assert "replaces a part of the physics" in section.words
    assert section.rows == ()


def test_the_page_shows_it(tmp_path):
    """In its place, with an entry in the list of sections."""
    folder = fits.write_small(tmp_path / "fit")
    fit = read_document(folder)
    silent = {"train": dict.fromkeys(fit["errors"]["train"], 1.0)}
    page = fit_page(fit | {"networks": [NETWORK], "errors_without_networks": silent}, read_signals(folder), folder)
    assert '<a href="#networks">' in page
    section = re.search(r'<section id="networks">.*?</section>', page, re.DOTALL).group()
    assert section.count("<polyline") == 1
    assert "beyond it the network extrapolates" in section
