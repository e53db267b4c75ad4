"""Derivatives of a step with contact: against central differences, in every kind of motion, and at switches."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.physics.contact.scenes import rigid, scene
from truesim import native
from truesim.math.interior_point import central_path
from truesim.math.interior_point import solver as interior_point
from truesim.math.interior_point.cones import EllipticCone
from truesim.math.spatial.rotation import quaternion_matrix
from truesim.physics.contact import CompliantContact
from truesim.physics.dynamics import integrate
from truesim.physics.simulation import Simulator, State

PUSHED = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/><body name="cube" pos="0 0 .1">
  <joint name="free" type="free"/><geom name="cube" type="box" size=".1 .1 .1" mass="1"/></body></worldbody>
  <actuator><motor joint="free" gear="1 0 0 0 0 0"/></actuator></mujoco>"""
EXACT = 1e-6
"""Part of the largest derivative by which forward mode and central differences may differ."""
COLUMNS = 6 + 6 + 1 + 1 + 3 + 3 + 3 + 1
"""Configuration, velocity, control, mass, sizes, frictions, restitutions, and stiffness or gravity."""

TURNED = np.array([0.95, 0.2, -0.15, 0.1]) / np.linalg.norm([0.95, 0.2, -0.15, 0.1])
FLAT = [1, 0, 0, 0]
CASES = {
    "sticking": (-2e-3, FLAT, [0, 0, 0, 0, 0, 0]),
    "sliding": (-2e-3, FLAT, [1, 0.5, 0, 0, 0, 0.2]),
    "separating": (-2e-3, FLAT, [0, 0, 1, 0, 0.1, 0]),
    "apart": (0.3, TURNED, [0, 0.3, 0, 0.2, 0.1, 0]),
    "impacting": (1e-3, TURNED, [0.5, 0.1, -3, 0.3, 0.2, -1]),
}
"""Height of the lowest corner, orientation and velocity of each kind of motion."""


def placed(height, turn):
    """The configuration whose lowest corner is at this height."""
    down = np.abs(np.asarray(quaternion_matrix(np.array(turn, dtype=float)))[2]) @ np.full(3, 0.1)
    return np.array([0, 0, down + height, *turn])


def stepping(simulator):
    """The step as a function of everything at once, at a state."""
    model = simulator.model

    def step(x, q, v):
        parts = jnp.split(x, np.cumsum([6, 6, 1, 1, 3, 3, 3]))
        dq, dv, command, mass, size, friction, restitution, last = parts
        geoms = dataclasses.replace(
            model.geoms,
            size=jnp.asarray(model.geoms.size).at[1].add(size),
            friction=jnp.asarray(model.geoms.friction).at[1].add(friction),
            restitution=jnp.array([0.0, 0.4]) + restitution[:2],
        )
        bodies = dataclasses.replace(model.bodies, mass=model.bodies.mass + mass)
        changed = eqx.tree_at(lambda s: (s.model.geoms, s.model.bodies), simulator, (geoms, bodies))
        if isinstance(simulator.contact, CompliantContact):
            stiffness = jnp.asarray(model.geoms.contact_stiffness) * (1 + last[0])
            changed = eqx.tree_at(lambda s: s.model.geoms.contact_stiffness, changed, stiffness)
        else:
            changed = eqx.tree_at(lambda s: s.model.gravity, changed, jnp.asarray(model.gravity) * (1 + last[0]))
        state, _ = changed.step(State(integrate(model, q, dq), v + dv, jnp.zeros(())), 3.0 + command)
        return jnp.concatenate([state.q, state.v])

    return step


@pytest.fixture(scope="module", params=["rigid", "smooth", "compliant"])
def derivatives(request):
    """The step, and its derivative along a direction."""
    model = scene(PUSHED)
    options = {"rigid": {}, "smooth": {"smoothing": 1e-3}}
    if request.param == "compliant":
        simulator = Simulator.of(model, contact=CompliantContact.of(model))
    else:
        simulator = rigid(model, bounces=True, **options[request.param])
    step = stepping(simulator)
    example = (np.zeros(COLUMNS), np.zeros(7), np.zeros(6))

    def along(x, dx, q, v):
        return jax.jvp(lambda x: step(x, q, v), (x,), (dx,))

    return native.compile(along, example[0], *example)


@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_central_differences(derivatives, case):
    """With respect to state, control, mass, geometry, friction, restitution and stiffness or gravity."""
    height, turn, v = CASES[case]
    q, v = placed(height, turn), np.array(v, dtype=float)
    directions = np.eye(COLUMNS)
    _, forward = derivatives(np.zeros(COLUMNS), directions, q, v)
    h = 1e-4 if case == "impacting" else 5e-6  # an impact at 3 m/s is solved to 1e-9 m/s
    ends = [derivatives(k * h * directions, directions, q, v)[0] for k in (1, -1, 2, -2)]
    central = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
    assert np.all(np.isfinite(forward))
    assert np.max(np.abs(forward - central)) <= EXACT * np.max(np.abs(central))


def test_derivatives_at_switches_are_finite(derivatives):
    """Distance zero and velocity zero, the edge between sticking and sliding: numbers between the two sides."""
    q, v = np.array([0, 0, 0.1, 1.0, 0, 0, 0]), np.zeros(6)
    for push in (-3.0, 9.81 - 3.0):  # no load sideways; exactly the largest friction
        x = np.zeros(COLUMNS)
        x[12] = push
        value, forward = derivatives(x, np.eye(COLUMNS), q, v)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(forward))


def test_implicit_derivatives_are_those_of_newton_steps():
    """Two further Newton steps, differentiated, give the same velocity and the same derivative of it."""
    rng = np.random.default_rng(0)
    n, cone = 6, EllipticCone()
    A = rng.normal(size=(n, n))
    normal, tangent = rng.normal(size=(3, n)), 0.5 * rng.normal(size=(3, 2, n))
    none, speed2 = np.zeros((0, n)), np.ones(3)
    problem = central_path.ConeProblem(
        A @ A.T + n * np.eye(n), rng.normal(size=n), normal, np.array([0.0, 0.1, 2.0]), tangent, none, none,
        np.zeros(0), np.ones(3), speed2, np.zeros(0), np.zeros(0), np.zeros(0), np.asarray(1e-6),
    )  # fmt: skip
    direction = rng.normal(size=n)
    found = evaluate(lambda p: interior_point.solve(p, cone), problem)
    assert found.converged

    def residuals(problem, point):
        momentum = problem.inertia @ (point.velocity - problem.free)
        return central_path.residuals(problem, cone, point, problem.barrier, momentum)

    def refined(free):
        changed, point = problem._replace(free=free), found.point
        for _ in range(2):
            step = central_path.newton(changed, cone, point)(residuals(changed, point))
            point = jax.tree.map(lambda x, dx: x + dx, point, step)
        return point.velocity

    def implicit(direction):
        change = jax.jvp(lambda f: residuals(problem._replace(free=f), found.point), (problem.free,), (direction,))[1]
        return central_path.newton(problem, cone, found.point)(change).velocity

    value, unrolled = evaluate(lambda f: jax.jvp(refined, (f,), (direction,)), problem.free)
    np.testing.assert_allclose(value, found.point.velocity, rtol=1e-9)
    np.testing.assert_allclose(evaluate(implicit, direction), unrolled, rtol=1e-7, atol=1e-9)
