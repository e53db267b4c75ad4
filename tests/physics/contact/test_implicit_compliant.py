"""Compliant contact at the end of each step: stable and sticking at long steps, and the same law at short ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.physics.contact.scenes import BALL, FLOOR, FOUR_BAR, Runner, scene, tilted
from truesim import native
from truesim.core.errors import TruesimError
from truesim.physics.contact import CompliantContact, ImplicitCompliantContact
from truesim.physics.simulation import Simulator

BOX = f"""<mujoco><worldbody>{FLOOR}<body name="box" pos="0 0 .1"><freejoint/>
  <geom name="box" type="box" size=".1 .1 .1" mass="1" friction=".5 0 0"/></body></worldbody></mujoco>"""
ARM = """<mujoco><worldbody><body name="arm" pos="0 0 1">
  <joint name="hinge" axis="0 1 0" range="-30 40" limited="true" frictionloss="{}"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".6"/></body></worldbody></mujoco>"""
TRANSITION = 0.01
"""Speed at which friction is developed, by default [m/s]."""


def simulator(xml, timestep, contact=ImplicitCompliantContact, **options):
    """A scene with a contact model and a time step."""
    model = scene(xml.replace(FLOOR, FLOOR.replace("/>", ' friction=".5 0 0"/>')))
    return Simulator.of(model, contact=contact.of(model, **options), timestep=timestep)


@pytest.mark.parametrize("timestep", [0.002, 0.005, 0.01])
def test_a_box_sticks_on_a_slope_at_any_step(timestep):
    """At 20 degrees with friction 0.5 it creeps at the speed where friction equals the load, and does not sink."""
    run = Runner(simulator(BOX, timestep), round(2.0 / timestep))
    q, v, _ = run({"gravity": tilted(20, 0.0)})
    assert np.all(np.isfinite(q))
    level = np.tan(np.radians(20)) / 0.5
    assert 0 < v[-1, 0] < TRANSITION * level  # Brown's friction rises four times faster than a line
    assert 0.095 < q[-1, 2] < 0.1
    assert np.abs(v[-1, 2:]).max() < 1e-3


def test_a_box_slides_down_a_steep_slope():
    """At 40 degrees it accelerates by g (sin - 0.5 cos)."""
    run = Runner(simulator(BOX, 0.005), 600)
    _, v, _ = run({"gravity": tilted(40, 0.0)})
    acceleration = (v[-1, 0] - v[-101, 0]) / (100 * 0.005)
    expected = 9.81 * (np.sin(np.radians(40)) - 0.5 * np.cos(np.radians(40)))
    assert acceleration == pytest.approx(expected, rel=1e-3)


def test_where_the_explicit_law_diverges():
    """At 10 ms a box thrown on the floor comes to rest; with the forces at the start of the step it does not."""
    speeds = {}
    for contact in (ImplicitCompliantContact, CompliantContact):
        run = Runner(simulator(BOX, 0.01, contact), 200)
        _, v, _ = run(v=[1.0, 0.5, -1.0, 1.0, 2.0, 0.0], q=[0, 0, 0.3, 1, 0, 0, 0])
        speeds[contact] = np.linalg.norm(v[-20:], axis=1).max()
    assert speeds[ImplicitCompliantContact] < 0.02
    assert not speeds[CompliantContact] < 0.5


def test_short_steps_follow_the_explicit_law():
    """A bouncing ball: the difference between both models falls in proportion to the time step."""
    errors = []
    for timestep in (2e-4, 1e-4, 5e-5):
        ends = [
            Runner(simulator(BALL, timestep, contact), round(0.06 / timestep))(
                q=[0, 0, 0.12, 1, 0, 0, 0], v=[0.3, 0, -1, 0, 0, 0]
            )
            for contact in (ImplicitCompliantContact, CompliantContact)
        ]
        errors.append(np.abs(ends[0][1] - ends[1][1]).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert np.all((ratios > 1.6) & (ratios < 2.5)), errors


def test_reported_forces_change_the_momentum():
    """Of a ball on the floor: mass times change of velocity is weight and the reported force."""
    run = Runner(simulator(BALL, 0.005, iterations=12), 60)
    _, v, report = run(q=[0, 0, 0.1, 1, 0, 0, 0], v=[0.5, 0, -0.5, 0, 0, 0])
    change = np.diff(v[:, :3], axis=0) / 0.005
    tangents = report.force[1:, 0, 1:]
    np.testing.assert_allclose(change[:, 2] + 9.81, report.force[1:, 0, 0], atol=1e-8)
    np.testing.assert_allclose(np.abs(change[:, 0]), np.abs(tangents).max(1), atol=1e-6)


def test_friction_stays_in_its_cone():
    run = Runner(simulator(BALL, 0.005, iterations=12), 60)
    _, _, report = run(q=[0, 0, 0.1, 1, 0, 0, 0], v=[2.0, 1.0, -1, 0, 0, 0])
    force = report.force[:, 0]
    assert force[:, 0].min() >= 0
    assert np.all(
        np.linalg.norm(force[:, 1:], axis=1) <= force[:, 0] * (1 + 1e-9)
    )  # the ball's coefficient of 1 counts


def test_energy_does_not_grow():
    """Cubes that fall on edges and corners lose energy in every step beyond the first order of the integrator."""
    run = Runner(simulator(BOX, 0.005, iterations=6), 300)
    rng = np.random.default_rng(0)
    for _ in range(10):
        turn = rng.standard_normal(4)
        q, v, _ = run(q=[0, 0, 0.25, *turn / np.linalg.norm(turn)], v=rng.uniform(-2, 2, 6))
        inertia = 1.0 * 0.2**2 / 6
        energy = 0.5 * np.sum(v[:, :3] ** 2, 1) + 0.5 * inertia * np.sum(v[:, 3:] ** 2, 1) + 9.81 * q[:, 2]
        assert np.diff(energy).max() < 0.02 * energy[0]
        assert energy[-1] < 1.05 * 9.81 * 0.1


def test_limits_and_friction_of_joints():
    """An arm falls to its limit of 40 degrees and stays there; friction above its weight holds it."""
    q, v, _ = Runner(simulator(ARM.format(0), 0.005), 600)()
    assert np.degrees(q[-1, 0]) == pytest.approx(40, abs=1.0)
    assert abs(v[-1, 0]) < 1e-6
    _, held, _ = Runner(simulator(ARM.format(2.0), 0.005), 100)()
    assert abs(held[-1, 0]) == pytest.approx(0.0049, rel=0.02)  # the speed at which friction of 2 N m carries 0.88 N m
    sliding, _, _ = Runner(simulator(ARM.format(0.5), 0.005), 20)()
    free, _, _ = Runner(simulator(ARM.format(0), 0.005), 20)()
    assert 0.2 < sliding[-1, 0] / free[-1, 0] < 0.8


def test_derivatives_are_central_differences():
    """Of a sliding, sinking ball after three steps, in stiffness, friction and initial velocity."""
    ball = simulator(BALL, 0.005)
    paths = ("geoms/ball.contact_stiffness", "geoms/ball.friction[0]")
    nominal = [float(ball.read(path)) for path in paths]

    def end(x):
        changed = ball.replace({path: value * (1 + k) for path, value, k in zip(paths, nominal, x[:2], strict=True)})
        state = changed.initial_state(
            q=jnp.array([0, 0, 0.098, 1.0, 0, 0, 0]), v=jnp.array([0.3, 0, -0.2, 0, 0, 0]) + x[2:]
        )
        for _ in range(3):
            state, _ = changed.step(state, jnp.zeros(0))
        return jnp.concatenate([state.q, state.v])

    along = native.compile(lambda x, dx: jax.jvp(end, (x,), (dx,)), np.zeros(8), np.zeros(8))
    directions, h = np.eye(8), 1e-6
    _, forward = along(np.zeros(8), directions)
    above, below = (along(sign * h * directions, directions)[0] for sign in (1, -1))
    central = (np.asarray(above) - np.asarray(below)) / (2 * h)
    assert np.abs(central[:2]).max() > 1e-3  # both parameters act
    np.testing.assert_allclose(forward, central, atol=1e-6)


def test_what_it_cannot_simulate_is_refused():
    with pytest.raises(TruesimError, match="does not close chains"):
        ImplicitCompliantContact.of(scene(FOUR_BAR))
    with pytest.raises(TruesimError, match="0 linear solves"):
        ImplicitCompliantContact.of(scene(BOX), iterations=0)
