"""Random scenes: the solution of every step is complementary, within the cones, and takes energy out."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.physics.contact.scenes import MIXED, changed, rigid, scene
from truesim import native
from truesim.physics.contact.constraints import contact_constraints, limit_constraints
from truesim.physics.dynamics import mass_matrix
from truesim.physics.simulation import State

SCENES = 200
COMPLEMENTARY = 1e-8
"""Product of an impulse and the speed by which its contact stays clear, in parts of its mass times speed squared."""
ENERGY = 1e-9
"""Work of all constraints in a step, in parts of the energy that moves."""


def observed(simulator, q, v):
    """One step, and what it takes to judge it."""
    model, dt = simulator.model, simulator.timestep
    increment = simulator.integrator.step(simulator.equation(jnp.zeros(0)), q, v, dt)
    state, info = simulator.step(State(q, v, jnp.zeros(())), jnp.zeros(0))
    detector = simulator.contact.detector
    points = detector(model, q, (increment.v, dt))
    rows = contact_constraints(model, q, detector, points)
    return {
        "free": increment.v,
        "v": state.v,
        "M": mass_matrix(model, q),
        "force": info.contact.force * dt,
        "distance": points.distance,
        "restitution": points.restitution,
        "friction": rows.friction,
        "N": rows.normal,
        "T": rows.tangent,
        "limit": limit_constraints(model, simulator.contact.limits, q).distance,
        "converged": info.contact.converged,
    }


@pytest.fixture(scope="module")
def step():
    model = scene(MIXED)
    simulator = rigid(model, bounces=True)
    numbers = ("bodies/box.mass", "bodies/ball.mass", "bodies/rod.mass", "joints/hinge.frictionloss")
    frictions = tuple(f"geoms/{name}.friction" for name in ("floor", "box", "ball", "rod"))
    bounces = tuple(f"geoms/{name}.restitution" for name in ("box", "ball", "rod"))

    def run(values, friction, restitution, q, v):
        own = {name: values[k] for k, name in enumerate(numbers)}
        own |= {name: friction[k] * jnp.array([1.0, 0, 0]) for k, name in enumerate(frictions)}
        own |= {name: restitution[k] for k, name in enumerate(bounces)}
        return observed(eqx.tree_at(lambda s: s.model, simulator, changed(model, own)), q, v)

    example = (np.ones(4), np.ones(4), np.zeros(3), np.zeros(model.nq), np.zeros(model.nv))
    return native.compile(run, *example)


def random_scene(seed, with_friction, with_restitution):
    """Masses over two decades, bodies near the floor and each other, apart or overlapping, slow or fast."""
    rng = np.random.default_rng(seed)
    values = np.append(10.0 ** rng.uniform(-1, 1, 3), 10.0 ** rng.uniform(-2, 1))
    friction = rng.uniform(0, 1, 4) * with_friction
    q = []
    for k in range(3):
        turn = rng.normal(size=4) if rng.random() < 0.7 else np.array([1.0, 0, 0, 0])
        place = np.array([0.14 * k, 0, 0.05]) + 0.05 * rng.normal(size=3) + [0, 0, rng.exponential(0.05)]
        q += [*place, *(turn / np.linalg.norm(turn))]
    q.append(rng.choice([-0.53, 0.3495, 0.1]))
    v = 10.0 ** rng.uniform(-3, 1) * rng.normal(size=19)
    return values, friction, rng.uniform(0, 1, 3) * with_restitution, np.array(q), v


def judge(found):
    """Asserts what holds in every scene; returns the work of the constraints in parts of the energy."""
    dt = 0.005
    normal, friction = found["force"][:, 0], found["force"][:, 1:]
    N, T = found["N"], found["T"][:, :2]
    before, after = N @ found["free"], N @ found["v"]
    speed = np.max(np.abs(before)) + 9.81 * dt
    approach = np.maximum(-before, 0)
    least = -np.maximum(found["distance"], 0) / dt
    hits = (approach > 0.01 + 2 * 9.81 * dt) & (found["distance"] < approach * dt) & (found["restitution"] > 0)
    least = np.where(hits, found["restitution"] * approach, least)
    clear = after - least
    gained = (found["v"] - found["free"]) @ found["M"] @ (found["v"] + found["free"]) / 2
    energy = (found["free"] @ found["M"] @ found["free"] + found["v"] @ found["M"] @ found["v"]) / 2
    mass = 1 / np.sum(N * np.linalg.solve(found["M"], N.T).T, axis=1)
    assert found["converged"]
    assert np.all(normal >= 0)
    if gained < -1e-6 * energy or not np.any(hits):  # else only a part of the bounce was taken
        assert np.all(clear >= -1e-9 * speed)
        assert np.all(normal * clear <= COMPLEMENTARY * mass * speed**2)
    bound = found["friction"][:, 0] * normal
    assert np.all(np.hypot(*friction.T) <= bound * (1 + 1e-9) + 1e-15)
    slip = np.einsum("pdn,n->pd", T, found["v"])
    assert np.all(np.sum(friction * slip, axis=1) <= 1e-9 * np.max(normal) * speed)
    return gained / energy


@given(st.integers(0, 2**31))
@settings(max_examples=SCENES)
def test_friction_without_restitution(step, seed):
    """Complementary to 1e-8, forces in the cone, and no net positive work."""
    found = step(*random_scene(seed, with_friction=True, with_restitution=False))
    assert judge(found) <= ENERGY


@given(st.integers(0, 2**31))
@settings(max_examples=SCENES)
def test_restitution_without_friction(step, seed):
    """The same for bouncing bodies."""
    found = step(*random_scene(seed, with_friction=False, with_restitution=True))
    assert judge(found) <= ENERGY


def test_friction_with_restitution(step):
    """With both, Newton's law of impact alone would add energy; the step does not."""
    work = [judge(step(*random_scene(seed, with_friction=True, with_restitution=True))) for seed in range(SCENES)]
    assert max(work) <= ENERGY
