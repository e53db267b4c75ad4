"""What every integrator must provide, checked on every member of the table of integrators."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from tests.comparison import relative_error
from tests.evaluation import compiled, evaluate
from tests.robots import ROTATING, SMOOTH, SPINNING, numbers, robot, start, with_numbers
from truesim.core.results import RESULTS
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.integrators import INTEGRATORS, AbstractIntegrator, RungeKutta4, SemiImplicitEuler

MEMBERS = {**INTEGRATORS, "Euler without implicit damping": SemiImplicitEuler(implicit_damping=False)}
DURATION = 0.2
"""[s]"""


def test_the_table_holds_every_member():
    """No integrator is missing from the table of names."""
    assert {type(integrator) for integrator in INTEGRATORS.values()} == set(AbstractIntegrator.__subclasses__())


def arrival(simulator: Simulator, state: State, count):
    """State after `DURATION` in `count` steps."""
    simulator = dataclasses.replace(simulator, timestep=DURATION / count)
    command = 0.3 * jnp.ones(simulator.model.nu)
    constants = simulator.constants()
    last = jax.lax.fori_loop(0, count.astype(int), lambda _, s: simulator.step(s, command, constants)[0], state)
    return jnp.concatenate([last.q, last.v])


@pytest.fixture(scope="module")
def exact():
    """Where each robot truly is after `DURATION`, by a method of high order and many steps."""
    found = {}
    for text in (SMOOTH, ROTATING):
        model = robot(text)
        simulator = Simulator.of(model, integrator=RungeKutta4())
        found[text] = np.asarray(evaluate(arrival, simulator, start(model, speed=2.0), 800.0))
    return found


@pytest.mark.parametrize("text", [SMOOTH, ROTATING], ids=["arm", "ball and free"])
@pytest.mark.parametrize("name", MEMBERS)
def test_measured_order(name, text, exact, record_property):
    """The error shrinks with the declared power of the time step, orientations included."""
    model, integrator = robot(text), MEMBERS[name]
    simulator, state = Simulator.of(model, integrator=integrator), start(model, speed=2.0)
    counts = np.array([10.0, 14.0, 20.0, 28.0] if integrator.order == 4 else [80.0, 160.0, 320.0, 640.0])
    run = compiled(arrival, simulator, state, counts[0])
    errors = [np.max(np.abs(np.asarray(run(simulator, state, n)) - exact[text])) for n in counts]
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    record_property("order", float(order))
    print(f"{name}: order {order:.2f}, errors {errors}")
    assert abs(order - integrator.order) < 0.1 * integrator.order


@pytest.mark.parametrize("name", MEMBERS)
def test_derivatives_batches_and_result(name):
    """A step differentiates forwards and backwards in all its numbers, runs in a batch, and says that it is ok."""
    model = robot(SPINNING)
    simulator, state = Simulator.of(model, integrator=MEMBERS[name], timestep=0.01), start(model)
    vector, back = ravel_pytree((numbers(simulator), state))
    rng = np.random.default_rng(0)
    along, cotangent = rng.normal(size=vector.size) * np.abs(vector), rng.normal(size=model.nq + model.nv)

    def f(vector):
        parameters, state = back(vector)
        state, info = with_numbers(simulator, parameters).step(state, jnp.zeros(0))
        return jnp.concatenate([state.q, state.v]), info.result == RESULTS.ok

    def check(vector, along, cotangent):
        value, forward, _ = jax.jvp(f, (vector,), (along,), has_aux=True)
        _, pull, _ = jax.vjp(f, vector, has_aux=True)
        points = vector[None] + h * jnp.array([0.0, 1, -1, 2, -2])[:, None] * along[None]
        return value, forward, pull(cotangent)[0] @ along, *jax.vmap(f)(points)

    h = 1e-4
    value, forward, backward, values, ok = evaluate(check, vector, along, cotangent)
    central = (8 * (values[1] - values[2]) - (values[3] - values[4])) / (12 * h)
    assert relative_error(forward, central) < 1e-8
    assert abs(backward - cotangent @ np.asarray(forward)) < 1e-11 * np.abs(cotangent) @ np.abs(forward)
    np.testing.assert_allclose(values[0], value, rtol=1e-13, atol=1e-13)
    assert np.all(ok)


@pytest.mark.parametrize("name", MEMBERS)
def test_failure_is_a_value(name):
    """A state that is not finite is reported by the step, not raised."""
    model = robot(SMOOTH)
    simulator = Simulator.of(model, integrator=MEMBERS[name])
    state = dataclasses.replace(start(model), v=jnp.array([jnp.nan, 0.0]))
    _, info = evaluate(lambda s, x, u: s.step(x, u), simulator, state, np.zeros(model.nu))
    assert info.result == RESULTS.not_finite
