"""Excitation of parameters by a motion."""

import numpy as np
import pytest

from truesim.files.logs import Log, prepare
from truesim.files.robots import loads
from truesim.identification.diagnose.observability import excitation, grade

CART = loads("""
<mujoco><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/>
</body></worldbody><actuator><motor name="push" joint="rail"/></actuator></mujoco>""")
ARM = loads("""
<mujoco><worldbody><body name="upper"><joint name="shoulder" axis="0 1 0"/><inertial pos="0 0 -.2" mass="1"
  diaginertia=".02 .02 .001"/><body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0"/><inertial
  pos="0 0 -.15" mass=".6" diaginertia=".01 .01 .001"/></body></body></worldbody>
  <actuator><motor name="a" joint="shoulder"/><motor name="b" joint="elbow"/></actuator></mujoco>""")
TIME = np.arange(2000) * 0.002


def shown(model, **columns):
    """Grades of all parameters, and the whole account."""
    log = Log(TIME, {name.replace("_", "/"): values for name, values in columns.items()})
    account = excitation([prepare(log, model)], model)
    return {name: grade(share, account.together[name]) for name, share in account.alone.items()}, account


def waves(*frequencies):
    return sum(np.sin(2 * np.pi * f * TIME + k) for k, f in enumerate(frequencies))


def test_a_cart_to_and_fro_shows_all_it_can():
    """Damping and friction stand alone, mass and armature only as their sum, and a rail has no inertia about it."""
    grades, account = shown(CART, qpos_rail=0.3 * waves(0.4, 1.1), ctrl_push=TIME)
    assert grades["rail.damping"] == grades["rail.frictionloss"] == "clear"
    assert grades["cart.m"] == grades["rail.armature"] == "in sums"
    assert grades["cart.Ixx"] == "no"
    assert next(parameter.combination for parameter in account.base) == "cart.m + rail.armature"
    assert account.rank == len(account.base) == 3


def test_a_steady_motion_cannot_tell_damping_from_dry_friction():
    """At one speed both are one constant force, and inertia is not excited."""
    grades, account = shown(CART, qpos_rail=0.5 * TIME, ctrl_push=TIME)
    assert grades["rail.damping"] == grades["rail.frictionloss"] == "in sums"
    assert account.rank < 3
    assert account.joints[0].forward == 1.0


def test_an_elbow_that_rests_does_not_show():
    """Noise is no motion: what only its motion could show is not claimed; the shoulder's friction is."""
    noise = 1e-6 * np.random.default_rng(0).standard_normal(len(TIME))
    moving, _ = shown(ARM, qpos_shoulder=waves(0.5, 1.3), qpos_elbow=waves(0.8, 1.7), ctrl_a=TIME, ctrl_b=TIME)
    resting, _ = shown(ARM, qpos_shoulder=waves(0.5, 1.3), qpos_elbow=noise, ctrl_a=TIME, ctrl_b=TIME)
    assert moving["elbow.damping"] == "clear"
    assert resting["elbow.damping"] == resting["elbow.frictionloss"] == resting["elbow.armature"] == "no"
    assert resting["shoulder.damping"] == "clear"


def test_planar_arms_have_their_textbook_combinations():
    """Two links in a plane: first moments, and inertias with the mass carried at the elbow."""
    _, account = shown(ARM, qpos_shoulder=waves(0.5, 1.3), qpos_elbow=waves(0.8, 1.7), ctrl_a=TIME, ctrl_b=TIME)
    combinations = {parameter.combination for parameter in account.base}
    assert {"upper.mz - 0.4 lower.m", "upper.Iyy + 0.16 lower.m + shoulder.armature"} <= combinations


def test_missing_samples_spoil_nothing():
    """A burst of missing samples changes no grade."""
    angle = waves(0.5, 1.3)
    whole, _ = shown(CART, qpos_rail=angle, ctrl_push=TIME)
    angle[500:700] = np.nan
    with_holes, account = shown(CART, qpos_rail=angle, ctrl_push=TIME)
    assert whole == with_holes
    assert np.isfinite(account.joints[0].speed)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"qpos_shoulder": waves(0.5)}, ["Positions of all joints", "No force or command"]),
        ({"qpos_shoulder": waves(0.5), "qpos_elbow": waves(1.0), "ctrl_a": TIME}, ["ctrl/b was not recorded"]),
    ],
)
def test_what_limits_the_account_is_said(columns, words):
    """Missing joints and unknown forces are named."""
    _, account = shown(ARM, **columns)
    for word in words:
        assert any(word in remark for remark in account.remarks)
