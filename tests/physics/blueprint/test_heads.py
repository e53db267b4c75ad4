"""Heads keep their promise whatever the weights are."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.physics.contact.scenes import CUBE, scene
from tests.robots import PENDULUM, ROTATING, robot, start
from truesim import native
from truesim.core.errors import TruesimError
from truesim.physics.blueprint import MLP, Blueprint, Rule, ports
from truesim.physics.contact import CompliantContact
from truesim.physics.dynamics import kinetic_energy, potential_energy
from truesim.physics.simulation import Implicit, RungeKutta4, Simulator, rollout

STATES = 1000


def with_random_weights(simulator, rng, size=1.0):
    """The simulator with other weights in all its networks."""
    learned = simulator.learned
    for k in range(len(learned.networks)):
        learned = learned.with_weights(k, size * rng.normal(size=np.shape(learned.weights(k))))
    return dataclasses.replace(simulator, learned=learned)


DISSIPATIVE = {
    "each joint": ("joint.friction_torque", ("joint.position", "joint.velocity"), "each"),
    "all joints": ("joint.damping_torque", ("joint.position", "joint.velocity"), "whole"),
    "bodies": ("body.wrench", ("body.velocity",), "shared"),
}


@pytest.mark.parametrize("name", DISSIPATIVE)
def test_a_dissipative_head_never_gives_power(name):
    """The power that it adds, over a thousand random states and weights, is never positive but for rounding."""
    output, inputs, sharing = DISSIPATIVE[name]
    rule = Rule(output, inputs, MLP((4,)), sharing=sharing, head="dissipative")
    simulator = Simulator.of(robot(PENDULUM), blueprint=Blueprint((rule,)))

    def power(weights, q, v):
        learned = simulator.learned.with_weights(0, weights)
        equation = dataclasses.replace(simulator, learned=learned).equation(jnp.zeros(0))
        force = equation.applied(q, v) - dataclasses.replace(equation, learned=None).applied(q, v)
        return force @ v, jnp.sqrt(force @ force) * jnp.sqrt(v @ v)

    rng, (nq, size) = np.random.default_rng(0), (3, np.size(simulator.learned.weights(0)))
    arguments = rng.normal(size=(STATES, size)), 2 * rng.normal(size=(STATES, nq)), 5 * rng.normal(size=(STATES, nq))
    given, scale = native.compile(power, *(x[0] for x in arguments))(*arguments)
    assert np.all(given <= 1e-14 * scale)
    assert np.median(given) < -0.1


def test_dissipative_friction_of_contact():
    """Friction by a network never pushes: its power with the slip is never positive."""
    cube = scene(CUBE)
    rule = Rule("contact.friction_force", ("contact.slip", "contact.normal_force"), MLP((4,)), head="dissipative")
    simulator = Simulator.of(cube, contact=CompliantContact.of(cube), blueprint=Blueprint((rule,)))
    listener = simulator.learned.listen(cube, simulator.initial_state().q, None)
    rng = np.random.default_rng(1)
    points = ports.shape(simulator, ports.port("contact.slip"))
    slip, normal = rng.normal(size=points), rng.uniform(size=points[0])
    listener(ports.port("contact.slip"), jnp.asarray(slip))
    listener(ports.port("contact.normal_force"), jnp.asarray(normal))
    friction = listener(ports.port("contact.friction_force"), jnp.zeros(points))
    assert np.all(np.sum(friction * slip, axis=1) < 0)


def energy(simulator, state):
    """With all that networks add to it [J]."""
    model, learned = simulator.model, simulator.learned
    total = kinetic_energy(model, state.q, state.v) + potential_energy(model, state.q)
    if learned is None:
        return total
    return total + learned.potential(model, state.q) + state.v @ (learned.inertia(model, state.q) @ state.v) / 2


def energies(simulators, steps=250):
    """Energy along a motion of each of several simulators of the same structure [J]."""
    first = simulators[0]
    state, commands = start(first.model), np.zeros((steps, 0))

    def along(simulator, state, commands):
        _, after = rollout(simulator, state, commands, keep=lambda state, _: energy(simulator, state))
        return jnp.concatenate([energy(simulator, state)[None], after])

    kernel = native.compile(along, first, state, commands)
    return [kernel(simulator, state, commands) for simulator in simulators]


def with_steps(model, rule, *timesteps):
    """Simulators of the fourth order with a rule of random weights, at several time steps [s]."""
    plain = Simulator.of(model, integrator=RungeKutta4(), timestep=1e-3)
    learned = with_random_weights(plain.augmented(Blueprint((rule,))), np.random.default_rng(0))
    return [eqx.tree_at(lambda s: s.timestep, learned, np.asarray(dt)) for dt in timesteps]


def test_energy_falls_under_a_dissipative_head():
    """Never above the same robot's without the head, whose energy is constant, and never rising."""
    model = robot(PENDULUM)
    plain = Simulator.of(model, integrator=RungeKutta4(), timestep=2e-3)
    inputs = "joint.position", "joint.velocity"
    rule = Rule("joint.friction_torque", inputs, MLP((4,)), sharing="whole", head="dissipative", size=2.0)
    (learned,) = with_steps(model, rule, 2e-3)
    (without,), (under,) = energies([plain]), energies([learned])
    assert np.ptp(without) < 1e-7
    assert np.all(under <= without + 1e-9)
    assert np.all(np.diff(under) < 1e-9)
    assert under[-1] < without[-1] - 0.005


@pytest.mark.parametrize(("text", "sharing"), [(PENDULUM, "each"), (ROTATING, "whole")])
def test_a_conservative_head_keeps_energy(text, sharing):
    """Kinetic, potential and learned energy together, with ball and free joints too; order four of the integrator."""
    model = robot(text)
    none = np.zeros(len(model.joints.names))
    model = eqx.tree_at(lambda m: (m.joints.damping, m.joints.stiffness), model, (none, none))
    rule = Rule("joint.spring_torque", ("joint.position",), MLP((4,)), sharing=sharing, head="conservative", size=2.0)
    long, short = with_steps(model, rule, 4e-3, 2e-3)
    far, near = energies([long, short], 100)
    state = start(model)
    assert abs(near[0] - energy(dataclasses.replace(short, learned=None), state)) > 1e-3  # the potential is there
    assert np.ptp(near) < 1e-6
    assert np.ptp(near) < np.ptp(far) / 8


@pytest.mark.parametrize("sharing", ["whole", "each"])
def test_a_kinetic_head_keeps_energy(sharing):
    """The corrected kinetic energy takes part in it; order four of the integrator."""
    rule = Rule("joint.inertia", ("joint.position",), MLP((4,)), sharing=sharing, head="kinetic", size=0.5)
    long, short = with_steps(robot(PENDULUM), rule, 4e-3, 2e-3)
    far, near = energies([long, short], 100)
    assert np.ptp(near) < 1e-6
    assert np.ptp(near) < np.ptp(far) / 8
    inertia = np.asarray(short.learned.inertia(short.model, start(short.model).q))
    assert np.linalg.eigvalsh(inertia).min() > 0
    assert np.abs(inertia).max() > 1e-2


def test_kinetic_heads_have_derivatives():
    """Reverse mode through a step, against central differences."""
    rule = Rule("joint.inertia", ("joint.position",), MLP((2,)), sharing="whole", head="kinetic")
    simulator = Simulator.of(robot(PENDULUM), blueprint=Blueprint((rule,)))
    state = start(simulator.model)

    def loss(weights):
        after, _ = dataclasses.replace(simulator, learned=simulator.learned.with_weights(0, weights)).step(
            state, jnp.zeros(0)
        )
        return jnp.sum(jnp.sin(100 * after.v))

    weights = np.random.default_rng(0).normal(size=np.shape(simulator.learned.weights(0)))
    kernel = native.compile(jax.value_and_grad(loss), weights)
    gradient, steps = kernel(weights)[1], 1e-6 * np.eye(len(weights))
    difference = (kernel(weights + steps)[0] - kernel(weights - steps)[0]) / 2e-6
    np.testing.assert_allclose(gradient, difference, rtol=1e-4, atol=1e-6)


def test_kinetic_heads_refuse_what_they_cannot_change():
    """Ball and free joints, and the integrator that has its own mass matrix."""
    rule = Rule("joint.inertia", ("joint.position",), MLP((2,)), sharing="whole", head="kinetic")
    with pytest.raises(TruesimError, match="hinges and slides only"):
        Simulator.of(robot(ROTATING), blueprint=Blueprint((rule,)))
    with pytest.raises(TruesimError, match="integrator 'implicit'"):
        Simulator.of(robot(PENDULUM), integrator=Implicit(), blueprint=Blueprint((rule,)))
