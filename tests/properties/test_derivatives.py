"""Derivatives of motion in state, command and every physical parameter against differences."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from tests.comparison import relative_error
from tests.evaluation import evaluate
from tests.random_trees import Skeleton, random_configuration, tree
from tests.robots import CONSTRAINED, ROTATING, SMOOTH, numbers, robot, start, with_numbers
from truesim.physics.dynamics import forward_dynamics
from truesim.physics.dynamics.forward import _articulated_body
from truesim.physics.model.model import Model
from truesim.physics.simulation import SemiImplicitEuler, Simulator, SmoothJointModel, State, rollout
from truesim.physics.simulation.joint_models import SmoothFriction, SmoothLimits

CENTRAL = 1e-6
"""Agreement with five-point differences: steps of 1e-4 leave h^4 of truncation and 1e-12 of rounding."""
STEPS = 5


def soft_law(model: Model) -> SmoothJointModel:
    """Friction and stops soft enough for differences to resolve."""
    return SmoothJointModel(SmoothFriction.of(model, 0.3), SmoothLimits.of(model, 100.0, 1.0, 0.05))


CASES = {
    "smooth": (SMOOTH, None),
    "dry friction and limits": (CONSTRAINED, None),
    "smooth friction and limits": (CONSTRAINED, soft_law),
    "ball and free": (ROTATING, None),
}


def simulation(name: str) -> tuple[Simulator, State, np.ndarray]:
    """A simulator, a state in motion, and commands."""
    text, law = CASES[name]
    model = robot(text)
    simulator = Simulator.of(model, joint_model=law(model) if law else None, integrator=SemiImplicitEuler())
    state = start(model)
    if text is CONSTRAINED:  # beyond the first limit, near the second, moving fast enough for friction to slip
        state = State(jnp.array([0.4, 0.45]), jnp.array([0.7, -1.3]), jnp.zeros(()))
    return simulator, state, np.random.default_rng(1).normal(size=(STEPS, model.nu)) * 0.3


def vectors(simulator: Simulator, state: State, commands: np.ndarray):
    """All inputs as one vector, and the way back."""
    vector, back = ravel_pytree((numbers(simulator), state.q, state.v, jnp.asarray(commands)))

    def unpack(vector):
        parameters, q, v, commands = back(vector)
        return with_numbers(simulator, parameters), State(q, v, jnp.zeros(())), commands

    return vector, unpack


def after_a_step(simulator, state, commands):
    """State, acceleration and constraint force of one step."""
    state, info = simulator.step(state, commands[0])
    return jnp.concatenate([state.q, state.v, info.acceleration, info.constraint_force])


def after_a_rollout(simulator, state, commands):
    """State at the end of a rollout."""
    state, _ = rollout(simulator, state, commands)
    return jnp.concatenate([state.q, state.v])


@pytest.mark.parametrize("outcome", [after_a_step, after_a_rollout])
@pytest.mark.parametrize("case", CASES)
def test_derivatives_agree_with_differences(case, outcome):
    """Forward and reverse mode give the full Jacobian: state, commands, time step and every physical number."""
    vector, unpack = vectors(*simulation(case))

    def f(vector):
        return outcome(*unpack(vector))

    def jacobians(vector):
        steps = 1e-4 * jnp.where(vector == 0, 0.1, jnp.abs(vector))
        forward = jax.vmap(lambda e: jax.jvp(f, (vector,), (e,))[1], out_axes=1)(jnp.eye(vector.size))
        backward = jax.jacrev(f)(vector)
        near, far = (
            jax.vmap(lambda e, k=k: f(vector + k * e) - f(vector - k * e), out_axes=1)(jnp.diag(steps)) for k in (1, 2)
        )
        return forward, backward, (8 * near - far) / (12 * steps[None])

    forward, backward, central = (np.asarray(J) for J in evaluate(jacobians, vector))
    assert np.all(np.isfinite(forward))
    assert relative_error(backward, forward) < 1e-11
    scale = np.maximum(np.abs(central).max(axis=0), 1e-3 * np.abs(central).max())
    errors = np.abs(forward - central).max(axis=0) / scale
    worst = int(np.argmax(errors))
    assert errors[worst] < CENTRAL, f"input {worst} of {vector.size}: {forward[:, worst]} is not {central[:, worst]}"
    moved = np.abs(central).max(axis=0) > 0
    assert moved.sum() > 0.4 * vector.size  # the comparison is not one of zeros with zeros


@pytest.mark.parametrize("case", CASES)
def test_no_nan_at_special_points(case):
    """At rest, at zero angles and at identity quaternions, values and gradients are finite."""
    simulator, _, commands = simulation(case)
    vector, unpack = vectors(simulator, simulator.initial_state(), 0 * commands)

    def both(vector):
        def f(vector):
            return after_a_step(*unpack(vector))

        return f(vector), jax.vjp(f, vector)[1](jnp.ones_like(f(vector)))[0], jax.jvp(f, (vector,), (vector,))[1]

    value, backward, forward = evaluate(both, vector)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(backward))
    assert np.all(np.isfinite(forward))


@pytest.mark.parametrize(
    "skeleton",
    [Skeleton((-1, 0), (("free",), ("hinge", "ball"))), Skeleton((-1, 0, 0), (("ball",), ("slide", "hinge"), ()))],
    ids=["floating", "fixed"],
)
def test_the_derivative_rule_of_forward_dynamics(skeleton):
    """`M^-1 (d tau - d rnea)` is what differentiating through the articulated-body recursion gives."""
    m, model = tree(skeleton, 3)
    rng = np.random.default_rng(0)
    state = (random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nv))
    external, added = rng.normal(size=(m.nbody - 1, 6)), rng.uniform(0.1, 1, m.nv)
    inputs = ((model.bodies, model.joints.axis, model.joints.position, model.joints.armature), *state, external, added)
    vector, back = ravel_pytree(jax.tree.map(jnp.asarray, inputs))
    direction = rng.normal(size=vector.size)

    def through(recursion):
        def f(vector):
            (bodies, axis, position, armature), q, v, tau, external, added = back(vector)
            joints = dataclasses.replace(model.joints, axis=axis, position=position, armature=armature)
            return recursion(dataclasses.replace(model, bodies=bodies, joints=joints), q, v, tau, external, added)

        return lambda vector: (jax.jvp(f, (vector,), (direction,))[1], jax.jacrev(f)(vector))

    def by_rule(model, q, v, tau, external, added):
        return forward_dynamics(model, q, v, tau, external=external, added_inertia=added)

    ours = evaluate(through(by_rule), vector)
    plain = evaluate(through(lambda *inputs: _articulated_body(*inputs)[0]), vector)
    assert relative_error(ours[0], plain[0]) < 1e-10
    assert relative_error(ours[1], plain[1]) < 1e-10
