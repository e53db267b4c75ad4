"""What is meant by words that are no parameter."""

import pytest

from truesim.physics.model.path_words import meant_path

PATHS = [
    *(f"bodies/{body}.{field}" for body in ("forearm", "hand") for field in ("mass", "com", "inertia")),
    *(f"joints/{joint}.{field}" for joint in ("elbow", "wrist") for field in ("damping", "frictionloss", "armature")),
    *(f"actuators/{name}.{field}" for name in ("elbow", "wrist") for field in ("gain", "delay", "kp", "kv")),
    "geoms/tip.friction",
    "gravity",
]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("friction", "joints/*.frictionloss"),
        ("elbow friction", "joints/elbow.frictionloss"),
        ("contact friction", "geoms/*.friction"),
        ("mass of hand", "bodies/hand.mass"),
        ("weight of the hnad", "bodies/hand.mass"),
        ("motor delay", "actuators/*.delay"),
        ("latency", "actuators/*.delay"),
        ("joint/*.dampng", "joints/*.damping"),
        ("joints/*.friction", "joints/*.frictionloss"),
        ("joints/el*.dampin", "joints/el*.damping"),
        ("links/hand.mass", "bodies/hand.mass"),
        ("actuators/*.kd", "actuators/*.kv"),
        ("joints/none*.damping", "joints/*.damping"),
        ("hand_mass", "bodies/hand.mass"),
        ("rotor_inertia", "joints/*.armature"),
        ("colour", None),
        ("joints/elbow", None),
    ],
)
def test_words_mean_paths(text, meant):
    """Synonyms, any order and typing errors lead to the parameter; a pattern stays a pattern."""
    assert meant_path(text, PATHS) == meant
