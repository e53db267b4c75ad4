"""Rigid contact obeys the textbook: friction angle, bounce, rolling, closed chains, nothing passes through."""

import math

import jax
import numpy as np
import pytest

from tests.physics.contact.scenes import BALL, CUBE, FOUR_BAR, Runner, plate, rigid, scene, tilted
from truesim.physics.contact import PolyhedralCone
from truesim.physics.contact.closure import closure

STEPS, DT, FRICTION = 300, 0.002, 0.5


@pytest.fixture(scope="module")
def slope():
    return Runner(rigid(scene(CUBE)), STEPS)


def slide(run, degrees, heading):
    """Distance covered, final speed over time, and whether every step converged."""
    values = {"gravity": tilted(degrees, heading), "geoms/cube.friction": [FRICTION, 0, 0]}
    values["geoms/floor.friction"] = [FRICTION, 0, 0]
    q, v, report = run(values)
    assert np.all(report.converged)
    return np.hypot(*q[-1, :2]), np.hypot(*v[-1, :2]) / (STEPS * DT)


@pytest.mark.parametrize("heading", [0.0, 0.3, 1.1, 2.5])
def test_a_block_sticks_below_the_friction_angle(slope, heading):
    """The friction angle of 0.5 is 26.57 degrees; at 26 a block does not move, whichever way the slope falls."""
    distance, _ = slide(slope, 26.0, heading)
    assert distance < 1e-7


@pytest.mark.parametrize("heading", [0.0, 0.3, 1.1, 2.5])
@pytest.mark.parametrize("degrees", [27.0, 40.0])
def test_a_block_slides_above_it(slope, degrees, heading):
    """The acceleration is `g (sin - mu cos)` to 0.1 % for every heading."""
    _, acceleration = slide(slope, degrees, heading)
    angle = math.radians(degrees)
    assert acceleration == pytest.approx(9.81 * (math.sin(angle) - FRICTION * math.cos(angle)), rel=1e-3)


@pytest.mark.parametrize(("count", "heading"), [(4, 0.0), (6, math.pi / 6)])
def test_a_polyhedral_cone_is_exact_along_its_directions(count, heading):
    """A block slides along a direction of the cone as it should."""
    run = Runner(rigid(scene(CUBE), cone=PolyhedralCone(count)), STEPS)
    _, acceleration = slide(run, 40.0, heading)
    angle = math.radians(40.0)
    assert acceleration == pytest.approx(9.81 * (math.sin(angle) - FRICTION * math.cos(angle)), rel=1e-3)
    distance, _ = slide(run, 26.0, heading)
    assert distance < 1e-6


@pytest.fixture(scope="module")
def ball():
    return Runner(rigid(scene(BALL), bounces=True), 700)


@pytest.mark.parametrize("e", [0.3, 0.5, 0.8, 1.0])
def test_a_ball_bounces(ball, e):
    """Dropped from h it rises to e^2 h within 1 %, and never sinks into the floor."""
    q, v, report = ball({"geoms/ball.restitution": e})
    height = q[:, 2] - 0.1
    bounce = int(np.argmax(v[:, 2] > 0))
    again = bounce + int(np.argmax(v[bounce:, 2] < 0))
    assert height[again] == pytest.approx(e**2, rel=1e-2)
    assert np.min(height) > -1e-9
    assert np.all(report.converged)


def test_a_ball_comes_to_rest(ball):
    """Small bounces end."""
    q, v, _ = ball({"geoms/ball.restitution": 0.5}, q=[0, 0, 0.105, 1, 0, 0, 0])
    np.testing.assert_allclose(q[-1, 2], 0.1, atol=1e-9)
    np.testing.assert_allclose(v[-1], 0, atol=1e-9)


def test_a_sliding_ball_ends_up_rolling(ball):
    """Friction turns sliding at 1 m/s into rolling at 5/7 m/s without slip."""
    _, v, _ = ball(q=[0, 0, 0.1, 1, 0, 0, 0], v=[1, 0, 0, 0, 0, 0])
    assert v[-1, 0] == pytest.approx(5 / 7, rel=1e-6)
    assert v[-1, 4] == pytest.approx(v[-1, 0] / 0.1, rel=1e-9)


def test_a_four_bar_linkage_stays_closed():
    """For 10 s of swinging it is closed to 1e-9 m after every step."""
    model = scene(FOUR_BAR)
    q, _, report = Runner(rigid(model), 5000)()
    opened = jax.jit(jax.vmap(lambda x: closure(model, x).violation))(q)
    assert np.max(np.abs(opened)) < 1e-9
    assert np.ptp(q[:, 0]) > 0.5
    assert np.all(report.converged)


@pytest.fixture(scope="module", params=[0.002, 0.01])
def simulated(request):
    """A ball at 20 m/s over 60 ms towards a plate 5 mm thick, from many heights, with some side velocity."""
    run = Runner(rigid(scene(plate(request.param))), round(0.06 / request.param))
    heights = np.linspace(0.3, 0.5, 41)

    def shoot(x, side):
        q = np.stack([[x, 0, h, 1, 0, 0, 0] for h in heights])
        return run(q=q, v=np.tile([side, 0, -20.0, 0, 0, 0], (41, 1)))

    return shoot


@pytest.mark.parametrize(("x", "side"), [(0.0, 0.0), (0.05, 5.0), (0.295, 0.0)])
def test_a_fast_ball_does_not_pass_a_thin_plate(simulated, x, side):
    """It stops at the surface, wherever the step happens to end."""
    q, _, _ = simulated(x, side)
    on_plate = np.abs(q[..., 0]) < 0.3
    assert np.min(q[..., 2][on_plate]) > 0.0125 - 1e-9


@pytest.mark.parametrize(("x", "side"), [(0.311, 0.0), (0.0, 40.0)])
def test_a_near_miss_is_not_deflected(simulated, x, side):
    """A ball that passes 1 mm beside the plate, or leaves its span before it reaches it, flies on."""
    _, v, _ = simulated(x, side)
    np.testing.assert_allclose(v[:, -1, :3], np.tile([side, 0, -20.0], (41, 1)), atol=1e-5)


@pytest.mark.parametrize("shape", ['type="capsule" size=".01 .03"', 'type="box" size=".02 .01 .015"'])
def test_fast_solids_do_not_pass_a_thin_plate(shape):
    """At 20 m/s with steps of 10 ms, turned any way: its center stays above, though spin may sink a part for a step."""
    ball = '<geom size=".01" mass="1"/>'
    assert ball in plate(0.01)
    run = Runner(rigid(scene(plate(0.01).replace(ball, f'<geom {shape} mass="1"/>'))), 6)
    rng = np.random.default_rng(0)
    turns = rng.normal(size=(40, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    q = np.concatenate([np.zeros((40, 2)), np.linspace(0.3, 0.5, 40)[:, None], turns], axis=1)
    q, _, report = run(q=q, v=np.tile([1.0, 0.5, -20.0, 0, 0, 0], (40, 1)))
    assert np.min(q[..., 2]) > 0.0025 + 0.005
    assert np.all(report.converged)
