"""Rigid contact takes energy out of every step and gives finite numbers, even where its solver does not converge."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.physics.contact.scenes import FLOOR, MIXED, Runner, changed, rigid, scene
from truesim import native
from truesim.math.interior_point import active_rows, central_path
from truesim.math.interior_point.cones import EllipticCone, PolyhedralCone
from truesim.math.interior_point.energy_bound import bound_energy
from truesim.math.interior_point.solver import ConeSolution
from truesim.physics.contact.effective_mass import effective_masses
from truesim.physics.dynamics import mass_matrix
from truesim.physics.simulation import State

EXAMPLES = 300
GAIN = 1e-7
"""Energy gain of a step by contact, in parts of the energy before it."""
ROD_GAIN = 1e-5
"""The same for rods: the products of the barrier grow with the slip of a fast spin, which has little energy."""
BODIES = ("box", "ball", "rod")


def rod(radius: float, kind: str = "capsule") -> str:
    """A rod of 1 kg and 1 m that lies on the floor."""
    return f"""<mujoco><option timestep="0.002"/><worldbody>{FLOOR}
      <body name="rod" pos="0 0 {radius}" euler="0 90 0"><freejoint/>
      <geom name="rod" type="{kind}" size="{radius} .5" mass="1"/></body></worldbody></mujoco>"""


def energies(simulator, q, v):
    """Energy with and without contact after one step, the step itself, and whether it converged."""
    increment = simulator.integrator.step(simulator.equation(jnp.zeros(0)), q, v, simulator.timestep)
    state, info = simulator.step(State(q, v, jnp.zeros(())), jnp.zeros(0))
    M = mass_matrix(simulator.model, q)
    before, after = (x @ M @ x / 2 for x in (increment.v, state.v))
    return {"before": before, "after": after, "q": state.q, "v": state.v, "converged": info.contact.converged}


@pytest.fixture(scope="module", params=[False, True], ids=["plastic", "bouncing"])
def heap(request):
    """One step of three touching bodies, with other masses and inertias."""
    model = scene(MIXED)
    simulator = rigid(model, bounces=request.param)
    at = [model.bodies.names.index(name) for name in BODIES]

    def run(scales, friction, restitution, q, v):
        own = {f"geoms/{name}.friction": friction[k] * jnp.array([1.0, 0, 0]) for k, name in enumerate(BODIES)}
        if request.param:
            own |= {f"geoms/{name}.restitution": restitution[k] for k, name in enumerate(BODIES)}
        for k, name in enumerate(BODIES):
            own[f"bodies/{name}.mass"] = scales[k] * jnp.asarray(model.bodies.mass[at[k]])
            own[f"bodies/{name}.inertia"] = scales[k] * jnp.asarray(model.bodies.inertia[at[k]])
        return energies(eqx.tree_at(lambda s: s.model, simulator, changed(model, own)), q, v)

    return native.compile(run, np.ones(3), np.ones(3), np.zeros(3), np.zeros(model.nq), np.zeros(model.nv))


def heaped(seed: int, decades: float) -> tuple:
    """Bodies that touch or overlap, with masses that differ by up to so many decades."""
    rng = np.random.default_rng(seed)
    q = []
    for k in range(3):
        turn = np.array([1.0, 0, 0, 0]) + (rng.random() < 0.7) * rng.normal(size=4)
        q += [0.14 * k + 0.05 * rng.normal(), 0.05 * rng.normal(), 0.1 + 0.05 * rng.normal()]
        q += [*(turn / np.linalg.norm(turn))]
    scales = 10.0 ** (decades * rng.uniform(-0.5, 0.5, 3))
    v = 10.0 ** rng.uniform(-3, 1) * rng.normal(size=19)
    return scales, rng.uniform(0, 1, 3), rng.uniform(0, 1, 3), np.array([*q, 0.1]), v


def check_energy(found) -> None:
    """Finite, and no more energy than without contact."""
    assert np.all(np.isfinite(found["q"]))
    assert np.all(np.isfinite(found["v"]))
    assert found["after"] <= (1 + GAIN) * found["before"]


@given(st.integers(0, 2**31), st.floats(0, 6))
@example(685, 6.0)
@settings(max_examples=EXAMPLES)
def test_masses_that_differ_by_six_decades(heap, seed, decades):
    """Energy never grows by contact, whatever the masses, friction and restitution."""
    check_energy(heap(*heaped(seed, decades)))


@pytest.fixture(scope="module", params=["capsule", "cylinder"])
def rods(request):
    """One step of a rod on the floor, by the decade of its radius."""
    steps = {}
    for decade in (2, 3, 4, 5):
        simulator = rigid(scene(rod(10.0**-decade, request.param)), bounces=True)
        model = simulator.model

        def run(friction, restitution, q, v, simulator=simulator, model=model):
            own = {"geoms/rod.friction": friction * jnp.array([1.0, 0, 0]), "geoms/rod.restitution": restitution}
            return energies(eqx.tree_at(lambda s: s.model, simulator, changed(model, own)), q, v)

        steps[decade] = native.compile(run, np.ones(()), np.zeros(()), np.zeros(7), np.zeros(6))
    return steps


def laid(seed: int, radius: float) -> tuple:
    """A rod that rests, rolls or falls on the floor, flat or tilted."""
    rng = np.random.default_rng(seed)
    heading, tilt = rng.uniform(0, np.pi), rng.choice([0, 1e-3, 0.1]) * rng.normal()
    half = (np.pi / 2 + tilt) / 2
    turn = np.array(
        [
            np.cos(heading) * np.cos(half),
            -np.sin(heading) * np.sin(half),
            np.cos(heading) * np.sin(half),
            np.sin(heading) * np.cos(half),
        ]
    )
    height = radius + 0.5 * abs(np.sin(tilt)) + rng.choice([0, -1e-6, 1e-5, -radius / 2])
    v = 10.0 ** rng.uniform(-3, 1) * rng.normal(size=6)
    v[3:] *= rng.random() < 0.5
    v[5] = rng.choice([v[5], v[0] / radius, 0.01 * v[0] / radius])
    return rng.uniform(0, 1), rng.uniform(0, 1) * (rng.random() < 0.5), np.array([0, 0, height, *turn]), v


@given(st.integers(0, 2**31), st.integers(2, 5))
@settings(max_examples=EXAMPLES)
def test_thin_rods(rods, seed, decade):
    """Rods of radius 1 cm to 10 um: finite, and no energy from contact."""
    found = rods[decade](*laid(seed, 10.0**-decade))
    assert np.all(np.isfinite(found["q"]))
    assert np.all(np.isfinite(found["v"]))
    assert found["after"] <= (1 + ROD_GAIN) * found["before"]


def test_most_steps_of_thin_rods_converge(rods):
    """Effective masses with the lever arms of a rod about its own axes: at most one step in a hundred fails."""
    for decade, step in rods.items():
        converged = [bool(step(*laid(seed, 10.0**-decade))["converged"]) for seed in range(100)]
        assert np.mean(converged) >= 0.99, decade


def test_a_thin_rod_slides_and_rolls_to_rest_on_the_floor():
    """A rod of radius 0.1 mm stays on the floor and loses energy at every step."""
    q, v, report = Runner(rigid(scene(rod(1e-4))), 300)(v=[0.5, 0.3, 0, 0, 0, 0])
    assert np.all(report.converged)
    np.testing.assert_allclose(q[:, 2], 1e-4, rtol=0.02)
    assert np.max(np.abs(v[:, :3])) < 0.5


def test_the_effective_mass_of_a_rod_does_not_vanish_with_its_radius():
    """It is the same part of the rod's mass for all thin rods, however easily they turn about their own axes."""
    simulators = [rigid(scene(rod(radius))) for radius in (1e-2, 1e-3, 1e-5)]
    masses = np.ravel([effective_masses(s.model, s.contact.detector).pairs for s in simulators])
    assert np.all((masses > 5e-3) & (masses < 1))
    np.testing.assert_allclose(masses, masses[-1], rtol=0.02)


def problem_of(cone, seed: int):
    """Two bodies of very different masses between three contacts."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4)) * np.array([1, 1, 1e-3, 1e-3])[:, None]
    return central_path.ConeProblem(
        inertia=jnp.asarray(root @ root.T + np.diag([1e-2, 1e-2, 1e-8, 1e-8])),
        free=jnp.asarray(rng.normal(size=4)),
        normal=jnp.asarray(rng.normal(size=(3, 4))),
        offset=jnp.asarray(rng.uniform(0, 0.1, 3)),
        tangent=jnp.asarray(rng.normal(size=(3, 2, 4))),
        joint_friction=jnp.asarray(0.1 * np.eye(4)[:1]),
        equality=jnp.zeros((0, 4)),
        target=jnp.zeros(0),
        mass=jnp.full(3, 1e-3),
        speed2=jnp.ones(3),
        joint_friction_energy=jnp.full(1, 1e-3),
        equality_mass=jnp.zeros(0),
        equality_speed=jnp.zeros(0),
        barrier=jnp.asarray(2e-9),
    )


@pytest.mark.parametrize("cone", [EllipticCone(), PolyhedralCone(4)], ids=["elliptic", "polyhedral"])
@pytest.mark.parametrize("spoiled", [1.0, 1e6, 1e200, np.nan, np.inf, -1.0])
def test_any_iterate_becomes_a_step_within_the_bound(cone, spoiled):
    """Finite, balanced, pushing and dissipating, with finite derivatives, from whatever the solver left."""
    for seed in range(4):
        problem = problem_of(cone, seed)
        point = jax.tree.map(lambda x: spoiled * x, central_path.start(problem, cone))
        found = ConeSolution(point, jnp.zeros((), int), jnp.zeros((), bool))
        bounded = bound_energy(problem, cone, found).point
        v, free, M = bounded.velocity, problem.free, problem.inertia
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(bounded))
        assert v @ M @ v <= (1 + 1e-6) * (free @ M @ free)
        assert np.all(np.asarray(bounded.normal) > 0)
        assert np.all(np.asarray(bounded.slack) > 0)
        given = central_path.impulse(problem, cone, bounded)
        np.testing.assert_allclose(M @ (v - free), given, atol=1e-8 * (1 + np.max(np.abs(given))))
        moved = central_path.newton(problem, cone, bounded)(jax.tree.map(jnp.ones_like, bounded))
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(moved))


def test_a_converged_solution_stays_as_it_is():
    """The bound changes no bit of a converged solution."""
    cone = EllipticCone()
    for seed in range(3):
        problem = problem_of(cone, seed)._replace(inertia=jnp.eye(4), mass=jnp.full(3, 0.3))
        found = active_rows.solve(problem, cone, np.arange(3))
        assert found.converged
        again = bound_energy(problem, cone, found)
        assert all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (found, again)), strict=True))


def test_gradients_through_unconverged_steps_are_finite():
    """A heap whose step does not converge has a finite gradient with respect to its state."""
    model = scene(MIXED)
    scales, _, _, q, v = heaped(685, 6.0)
    own = {}
    for k, name in enumerate(BODIES):
        at = model.bodies.names.index(name)
        own[f"bodies/{name}.mass"] = scales[k] * model.bodies.mass[at]
        own[f"bodies/{name}.inertia"] = scales[k] * np.asarray(model.bodies.inertia[at])
    simulator = rigid(changed(model, own))

    def end(q, v):
        state, info = simulator.step(State(q, v, jnp.zeros(())), jnp.zeros(0))
        return jnp.sum(state.v**2) + jnp.sum(state.q**2), info.contact.converged

    kernel = native.compile(jax.grad(end, argnums=(0, 1), has_aux=True), q, v)
    gradient, converged = kernel(q, v)
    assert not converged
    assert all(np.all(np.isfinite(x)) for x in gradient)
