"""Parameters that are not identifiable are flagged, and no others."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import record
from tests.robots import robot
from truesim.identification.diagnose.estimates import EstimateFlag, Flag
from truesim.identification.diagnose.messages import explain
from truesim.identification.fit import Fit
from truesim.identification.problem.build import build
from truesim.identification.solve.stages import solve_problem

TABLE = """
<mujoco><compiler angle="radian"/><option timestep="0.005"><flag contact="disable"/></option><worldbody>
  <body name="disc"><joint name="axle" axis="0 0 1" damping=".2" armature=".02"/>
    <inertial pos="0 0 .1" mass="1.5" diaginertia=".03 .03 .01"/></body>
</worldbody><actuator><motor name="motor" joint="axle"/></actuator></mujoco>"""
"""A disc whose center of mass lies on its vertical axle."""
TABLE_FREE = ("bodies/disc.mass", "joints/axle.damping", "joints/axle.armature", "actuators/motor.delay")
TABLE_WRONG = TABLE.replace('damping=".2"', 'damping=".35"').replace('armature=".02"', 'armature=".05"')
SPEED = 2.0
"""[rad/s]"""
TRIO = """
<mujoco><compiler angle="radian"/><option timestep="0.005"><flag contact="disable"/></option><worldbody>
  <body name="cart"><joint name="rail" type="slide" axis="1 0 0" damping=".5"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
    <body name="load"><inertial pos="0 0 .1" mass=".4" diaginertia=".01 .01 .01"/></body></body>
  <body name="bob" pos="0 1 0"><joint name="swing" axis="0 1 0" damping=".02"/>
    <inertial pos=".05 .02 -.3" mass=".5" diaginertia=".01 .01 .01"/></body>
  <body name="idle" pos="0 2 0"><joint name="still" type="slide" axis="1 0 0" damping=".5"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body>
</worldbody><actuator><motor name="push" joint="rail"/><motor name="none" joint="still"/></actuator></mujoco>"""
"""A loaded cart, a pendulum, and a cart that nothing moves."""
TRIO_WRONG = (
    TRIO.replace('mass=".4"', 'mass=".8"').replace('damping=".02"', 'damping=".05"').replace(".05 .02 -.3", "0 .02 -.4")
)
TRIO_FREE = ("bodies/cart.mass", "bodies/load.mass", "joints/*.damping", "bodies/bob.com")


@pytest.fixture(scope="module")
def table() -> dict[str, Fit]:
    """Fits of the disc to a lively log, and to one of constant speed under a constant command."""
    model = robot(TABLE_WRONG)
    lively = record(TABLE, lambda t: [0.6 * np.sin(5 * t) + 0.4 * np.sign(np.sin(9 * t))], 2.0, noise=1e-3)
    steady = record(TABLE, lambda t: [0.2 * SPEED], 2.0, noise=1e-3, start=([0.0], [SPEED]))
    first = build(model, [lively], TABLE_FREE)
    second = dataclasses.replace(build(model, [steady], TABLE_FREE), like=first)
    return {name: Fit.of(solve_problem(p)) for name, p in (("lively", first), ("steady", second))}


@pytest.fixture(scope="module")
def trio() -> Fit:
    """The fit of the three mechanisms."""
    start = ([0.0, 0.9, 0.0], [0.0, 0.0, 0.0])
    log = record(TRIO, lambda t: [2 * np.sin(4 * t) + np.sin(9 * t), 0.0], 2.0, noise=1e-3, start=start)
    return Fit.of(solve_problem(build(robot(TRIO_WRONG), [log], TRIO_FREE)))


def check(fit: Fit, unknown: set[str], known: dict[str, float]) -> None:
    """Flags, groups, widths and the status agree on what is unknown; known values are found."""
    by_path = {e.path: e for e in fit.estimates}
    assert fit.status == "not identifiable"
    named = {name.partition("[")[0] for group in fit.not_identifiable for name in group}
    for path in unknown:
        estimate = by_path[path]
        assert EstimateFlag(Flag.NOT_IDENTIFIABLE) in estimate.flags, (path, estimate)
        assert path in named
        assert estimate.high - estimate.low > np.abs(estimate.value), (path, estimate)
    for path, truth in known.items():
        estimate = by_path[path]
        assert estimate.identifiable, (path, estimate)
        assert path not in named
        assert abs(estimate.value - truth) < 4 * estimate.std < 0.2 * max(truth, 0.01), (path, estimate)


def test_a_mass_on_a_vertical_axle(table):
    """It turns with its inertia only."""
    known = {"joints/axle.damping": 0.2, "joints/axle.armature": 0.02, "actuators/motor.delay": 0.0}
    check(table["lively"], {"bodies/disc.mass"}, known)


def test_armature_at_constant_speed_and_delay_of_a_constant_command(table):
    """Nothing accelerates and nothing arrives; the damping shows all the same."""
    unknown = {"bodies/disc.mass", "joints/axle.armature", "actuators/motor.delay"}
    check(table["steady"], unknown, {"joints/axle.damping": 0.2})


def test_two_masses_of_which_the_sum_shows(trio):
    """The sentence names both; the sum is known, and so is the damping beside it."""
    check(trio, {"bodies/cart.mass", "bodies/load.mass"}, {"joints/rail.damping": 0.5})
    assert ("bodies/cart.mass", "bodies/load.mass") in trio.not_identifiable
    (said,) = (explain(d) for d in trio.diagnostics if "bodies/cart.mass" in d.subjects)
    assert said == "bodies/cart.mass and bodies/load.mass: only a combination of them shows in these logs."
    cart, load = (e.value for e in trio.estimates[:2])
    np.testing.assert_allclose(cart + load, 1.4, rtol=0.01)


def test_damping_of_a_joint_that_rests(trio):
    """That of the joints that move is known."""
    check(trio, {"joints/still.damping"}, {"joints/rail.damping": 0.5, "joints/swing.damping": 0.02})


def test_a_centre_of_mass_along_the_axis(trio):
    """One of three numbers: the flag says which."""
    com = next(e for e in trio.estimates if e.path == "bodies/bob.com")
    assert EstimateFlag(Flag.NOT_IDENTIFIABLE, (1,)) in com.flags
    assert "not identifiable in [1]" in map(str, com.flags)
    assert any("bodies/bob.com[1]" in group for group in trio.not_identifiable)
    assert com.high[1] - com.low[1] > 0.1
    np.testing.assert_allclose(com.value[[0, 2]], [0.05, -0.3], atol=0.005)
    assert np.all(com.std[[0, 2]] < 0.005)
