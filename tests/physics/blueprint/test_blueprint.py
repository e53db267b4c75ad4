"""Blueprints: what they mean, what they refuse, and as files."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import evaluate
from tests.physics.contact.scenes import CUBE, rigid, scene
from tests.robots import CONSTRAINED, SMOOTH, robot, start
from truesim import native
from truesim.core.errors import TruesimError
from truesim.physics.blueprint import GRU, MLP, Blueprint, Constant, Rule, read_blueprint
from truesim.physics.blueprint.file import blueprint_of, description_of
from truesim.physics.contact import CompliantContact
from truesim.physics.simulation import MujocoJointModel, Simulator, SmoothJointModel, rollout
from truesim.physics.simulation import compile_value_and_gradient as value_and_gradient
from truesim.physics.simulation.sensors import read_sensors

SENSED = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1"/></body></worldbody>
<sensor><jointpos name="angle" joint="a"/></sensor></mujoco>"""


def linear(rule: Rule, numbers, model=None, **options):
    """A simulator with one rule, whose network has these numbers."""
    simulator = Simulator.of(robot(SMOOTH) if model is None else model, blueprint=Blueprint((rule,)), **options)
    weights = np.asarray(simulator.learned.weights(0))
    return dataclasses.replace(simulator, learned=simulator.learned.with_weights(0, np.resize(numbers, weights.shape)))


def acceleration(simulator, state):
    """At a state, without commands."""
    command = np.zeros(simulator.model.nu)
    return native.compile(Simulator.acceleration, simulator, state, command)(simulator, state, command)


def test_a_linear_network_is_a_damper():
    """Damping by a network of one weight a joint is damping by the model."""
    model = robot(SMOOTH)
    rule = Rule("joint.damping_torque", ("joint.velocity",), MLP((), bias=False), sharing="each")
    learned = linear(rule, [-0.7, -0.3])
    damped = Simulator.of(eqx.tree_at(lambda m: m.joints.damping, model, model.joints.damping + np.array([0.7, 0.3])))
    state = start(model)
    np.testing.assert_allclose(acceleration(learned, state), acceleration(damped, state), rtol=1e-12)


@pytest.mark.parametrize(("mode", "expected"), [("residual", "d + y"), ("replace", "y"), ("scale", "d * (1 + y)")])
def test_modes(mode, expected):
    """A constant y at the damping torque d."""
    model, y = robot(SMOOTH), 0.4
    state = start(model)
    d = -np.asarray(model.joints.damping) * np.asarray(state.v)
    wanted = np.broadcast_to(eval(expected), d.shape)
    undamped = eqx.tree_at(lambda m: m.joints.damping, model, np.zeros(2))
    reference = linear(Rule("joint.torque", (), Constant(), sharing="each"), wanted, undamped)
    learned = linear(Rule("joint.damping_torque", (), Constant(), mode=mode), [y])
    np.testing.assert_allclose(acceleration(learned, state), acceleration(reference, state), rtol=1e-12)


@pytest.mark.parametrize("law", [MujocoJointModel, SmoothJointModel])
@pytest.mark.parametrize("more", [0.4, -1.0])
def test_the_bound_of_dry_friction(law, more):
    """A constant at the bound is more dry friction in the model, and none where it would be negative."""
    model = robot(CONSTRAINED)
    loss = np.asarray(model.joints.frictionloss)
    rougher = eqx.tree_at(lambda m: m.joints.frictionloss, model, np.maximum(loss + more, 0.0))
    rule = Rule("joint.friction_bound", (), Constant())
    learned = linear(rule, [more], model, joint_model=law.of(model))
    plain = Simulator.of(rougher, joint_model=law.of(model))
    state = start(model)
    np.testing.assert_allclose(acceleration(learned, state), acceleration(plain, state), rtol=1e-12)


def test_joints_without_dry_friction_have_no_bound():
    """A rule for them is refused, with those that have some; `*` means these."""
    model = robot(CONSTRAINED)
    model = eqx.tree_at(lambda m: m.joints.frictionloss, model, np.array([0.3, 0.0]))
    with pytest.raises(TruesimError, match=r"joints b .* have no dry friction; those that have some: a\."):
        Simulator.of(model, blueprint=Blueprint([Rule("joint.friction_bound", (), Constant(), names=("b",))]))
    rule = Rule("joint.friction_bound", ("joint.motor_torque", "joint.gravity_torque"))
    built = Simulator.of(model, blueprint=Blueprint([rule]))
    assert built.learned.networks[0].rows == (0,)
    with pytest.raises(TruesimError, match="no joint has dry friction"):
        Simulator.of(robot(SMOOTH), blueprint=Blueprint([rule]))


def test_only_some_names():
    """A rule for one joint leaves the other alone."""
    one = linear(Rule("joint.torque", (), Constant(), names=("b",)), [1.0])
    seen = one.tap(start(one.model), jnp.zeros(one.model.nu))
    equation = one.equation(jnp.zeros(one.model.nu), None, start(one.model))
    plain = dataclasses.replace(equation, learned=None)
    state = start(one.model)
    change = equation.applied(state.q, state.v, seen) - plain.applied(state.q, state.v)
    np.testing.assert_allclose(change, [0.0, 1.0], atol=1e-14)


def test_a_wrench_on_a_body_is_a_force_there():
    """A constant force on a falling body, in the body's own axes."""
    ball = scene(CUBE)
    rule = Rule("body.wrench", (), Constant())
    pushed = linear(rule, [0, 0, 0, 2.0, 0, 0], ball)
    np.testing.assert_allclose(acceleration(pushed, pushed.initial_state()), [2.0, 0, -9.81, 0, 0, 0], atol=1e-12)


def test_gravity_scaled_away():
    """Minus one as the scale of gravity: a falling body floats."""
    floating = linear(Rule("joint.gravity_torque", (), Constant(), mode="scale"), [-1.0], scene(CUBE))
    np.testing.assert_allclose(acceleration(floating, floating.initial_state()), 0.0, atol=1e-12)


def test_inertia_scaled():
    """Twice the inertia, half the acceleration under the same torque."""
    model = eqx.tree_at(lambda m: m.gravity, scene(CUBE), np.zeros(3))
    rules = Rule("joint.torque", (), Constant(), names=("*",)), Rule("body.inertia_scale", (), Constant())
    simulator = Simulator.of(model, blueprint=Blueprint(rules))
    learned = simulator.learned.with_weights(0, np.ones(1)).with_weights(1, np.ones(1))
    light = dataclasses.replace(simulator, learned=simulator.learned.with_weights(0, np.ones(1)))
    heavy, rest = dataclasses.replace(simulator, learned=learned), simulator.initial_state()
    np.testing.assert_allclose(2 * acceleration(heavy, rest), acceleration(light, rest), rtol=1e-12)


def test_contact_forces_can_be_replaced():
    """A constant normal force of contact lifts a cube by so much, at every corner that there is."""
    cube = scene(CUBE)
    rule = Rule("contact.normal_force", (), Constant(), mode="replace")
    simulator = linear(rule, [3.0], cube, contact=CompliantContact.of(cube))
    corners = simulator.contact.detector.capacity
    np.testing.assert_allclose(acceleration(simulator, simulator.initial_state())[2], 3.0 * corners - 9.81, rtol=1e-9)


def test_previous_values_are_those_of_the_step_before():
    """A torque that equals the velocity of the step before, and the first velocity in the first step."""
    rule = Rule("joint.torque", ("previous joint.velocity",), MLP((), bias=False), mode="replace")
    simulator = linear(rule, [1.0])
    state = simulator.started(start(simulator.model), jnp.zeros(3))
    velocities, applied = [state.v], []
    step = native.compile(Simulator.step, simulator, state, np.zeros(3))
    for _ in range(3):
        state, info = step(simulator, state, np.zeros(3))
        velocities.append(state.v)
        applied.append(info.applied_force)
    np.testing.assert_allclose(applied, [velocities[0], velocities[0], velocities[1]], rtol=1e-14)


def test_recurrent_networks_remember():
    """Under a constant input the torque of a recurrent network changes; stepping on continues it."""
    rule = Rule("actuator.force", ("actuator.command",), GRU(3, seed=1), mode="replace", sharing="each")
    simulator = Simulator.of(robot(SMOOTH), blueprint=Blueprint((rule,)))
    state, commands = start(simulator.model), jnp.ones((6, 3))
    whole, _ = rollout(simulator, state, commands)
    half, _ = rollout(simulator, state, commands[:3])
    np.testing.assert_allclose(rollout(simulator, half, commands[3:])[0].q, whole.q, rtol=1e-12)
    assert half.memory.hidden["actuator.force"].shape == (3, 3)
    assert not np.allclose(half.memory.hidden["actuator.force"], whole.memory.hidden["actuator.force"])


def test_any_module_is_a_network():
    """One of equinox's own, in single precision as it comes; a kernel has its gradient."""
    net = eqx.nn.MLP(2, 1, 4, 1, activation=jnp.tanh, key=jax.random.key(0))
    rule = Rule("joint.friction_torque", ("joint.position", "joint.velocity"), net)
    simulator = Simulator.of(robot(SMOOTH), blueprint=Blueprint((rule,)))
    state, commands = start(simulator.model), jnp.zeros((10, 3))

    def loss(weights, q):
        learned = simulator.learned.with_weights(0, weights)
        run = dataclasses.replace(simulator, learned=learned)
        return jnp.sum(rollout(run, dataclasses.replace(state, q=q), commands)[0].q ** 2)

    arguments = np.asarray(simulator.learned.weights(0)), np.asarray(state.q)
    kernel = value_and_gradient(loss, *arguments)
    value, (gradient, _) = kernel(*arguments)
    steps = 1e-5 * np.eye(len(gradient))
    after, before = (kernel(arguments[0] + sign * steps, arguments[1])[0] for sign in (1, -1))
    np.testing.assert_allclose(gradient, (after - before) / 2e-5, rtol=1e-5, atol=1e-7)
    assert np.abs(gradient).max() > 1e-3
    assert np.isfinite(value)


REFUSED = {
    "There is no port named 'joint.dampng_torque', did you mean 'joint.damping_torque'": Rule("joint.dampng_torque"),
    "There is no port named 'joint.vel'": Rule("joint.torque", ("joint.vel",)),
    "joint.velocity is part of the state": Rule("joint.velocity", ("joint.position",)),
    "joint.torque is not known yet where joint.damping_torque is computed. Valid: joint.position, joint.velocity": Rule(
        "joint.damping_torque", ("joint.torque",)
    ),
    "only the sharing 'whole' can read it": Rule("joint.torque", ("body.velocity",)),
    "no row of joint.torque named 'elbow'": Rule("joint.torque", ("joint.velocity",), names=("elbow",)),
    "reads nothing": Rule("joint.torque"),
    "the simulator has no contact": Rule("contact.depth", (), Constant()),
    "does not take 2 numbers": Rule(
        "joint.torque", ("joint.position", "joint.velocity"), eqx.nn.Linear(3, 1, key=jax.random.key(0))
    ),
    "gives an array of shape (2,)": Rule(
        "joint.torque", ("joint.velocity",), eqx.nn.Linear(1, 2, key=jax.random.key(0))
    ),
    "reads joint.position and nothing else": Rule("joint.torque", ("joint.velocity",), head="conservative"),
    "is no force": Rule("body.inertia_scale", ("body.velocity",), head="dissipative"),
    "is a residual": Rule("joint.torque", ("joint.velocity",), head="dissipative", mode="replace"),
    "belong together": Rule("joint.torque", ("joint.position",), head="kinetic"),
    "is not kept from step to step": Rule("joint.torque", ("previous encoder.velocity",)),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_mistakes_are_refused(sentence):
    """Each names the thing and what is valid."""
    with pytest.raises(TruesimError) as raised:
        Simulator.of(robot(SMOOTH), blueprint=Blueprint((REFUSED[sentence],)))
    assert sentence in str(raised.value)


def test_laws_that_solve_refuse_by_name():
    """What is found together with the acceleration can be neither replaced nor read."""
    friction = Rule("joint.friction_torque", ("joint.velocity",), mode="replace")
    with pytest.raises(TruesimError, match=r"MujocoJointModel finds joint[.]friction_torque together"):
        Simulator.of(robot(CONSTRAINED), blueprint=Blueprint((friction,)))
    with pytest.raises(TruesimError, match=r"joint[.]limit_torque is not known yet"):
        Simulator.of(robot(CONSTRAINED), blueprint=Blueprint((Rule("joint.torque", ("joint.limit_torque",)),)))
    with pytest.raises(TruesimError, match="RigidContact finds it together with the step"):
        rigid(scene(CUBE)).augmented(Blueprint((Rule("contact.normal_force", ("contact.depth",)),)))


def test_words_are_checked():
    """Modes, sharings, heads and names of rules."""
    for rule in ({"mode": "add"}, {"sharing": "all"}, {"head": "magic"}, {"size": 0.0}):
        with pytest.raises(TruesimError):
            Rule("joint.torque", ("joint.velocity",), **rule)
    with pytest.raises(TruesimError, match=r"Two rules are named 'joint[.]torque'"):
        Blueprint((Rule("joint.torque"), Rule("joint.torque")))
    with pytest.raises(TruesimError, match="no activation named 'tan'"):
        MLP(activation="tan")


FILE = """
[[rule]]
output = "joint.friction_torque"
inputs = ["joint.velocity", "previous joint.velocity"]
names = ["a"]
size = 0.5
scales = {"joint.velocity" = 10.0}
network = {kind = "mlp", hidden = [4, 4], activation = "softplus"}

[[rule]]
name = "servo"
output = "actuator.force"
inputs = ["actuator.command", "actuator.length"]
sharing = "each"
mode = "replace"
network = {kind = "gru", hidden = 3}
"""


def test_files(tmp_path):
    """What is written in Python and in a file is the same, there and back."""
    path = tmp_path / "blueprint.toml"
    path.write_text(FILE)
    blueprint = read_blueprint(path)
    first = Rule(
        "joint.friction_torque",
        ("joint.velocity", "previous joint.velocity"),
        MLP((4, 4), "softplus"),
        names=("a",),
        size=0.5,
        scales={"joint.velocity": 10.0},
    )
    inputs = ("actuator.command", "actuator.length")
    second = Rule("actuator.force", inputs, GRU(3), name="servo", sharing="each", mode="replace")
    assert blueprint == Blueprint((first, second))
    assert blueprint_of(description_of(blueprint)) == blueprint


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[rule]\n", "cannot be read as TOML"),
        ("", "at least one rule"),
        ("[[rules]]\n", "did you mean 'rule'"),
        ("[[rule]]\ninputs = []\n", "needs an output"),
        ("[[rule]]\noutput = 'joint.torque'\ninput = []\n", "did you mean 'inputs'"),
        ("[[rule]]\noutput = 'joint.torque'\ninputs = 'joint.velocity'\n", "must be a list of texts"),
        ("[[rule]]\noutput = 'joint.torque'\nnetwork = {kind = 'cnn'}\n", "no kind of network named 'cnn'"),
        ("[[rule]]\noutput = 'joint.torque'\nnetwork = {hiden = [3]}\n", "did you mean 'hidden'"),
        ("[[rule]]\noutput = 'joint.torque'\nnetwork = {hidden = [0]}\n", "whole numbers above zero"),
    ],
)
def test_broken_files(tmp_path, text, sentence):
    """One sentence that names the file."""
    path = tmp_path / "blueprint.toml"
    path.write_text(text)
    with pytest.raises(TruesimError) as raised:
        read_blueprint(path)
    assert sentence in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"network": "mlp"}, r"network must be a table, such as \{kind = 'mlp', hidden = \[8\]\}, not 'mlp'"),
        ({"network": {"hidden": 8}}, r"hidden of a network of kind 'mlp' must be a list, such as \[8, 8\]; it is 8"),
        ({"network": {"kind": "gru", "hidden": [8]}}, "hidden of a network of kind 'gru' must be a single value"),
        ({"network": {"kind": "lagged"}}, "A network of kind 'lagged' needs interval"),
        ({"scales": {"velocity": 3.0}}, "velocity.*joint.velocity"),
        ({"scales": 3.0}, "scales of the rule for joint.friction_torque must be a table"),
        ({"penalty": "much"}, "penalty of the rule for joint.friction_torque must be a number, not 'much'"),
        ({"penalty": -1.0}, "must not be negative"),
    ],
)
def test_mistakes_in_a_file_are_explained(rule, message):
    """What is wrong, and what would be right; never an error of Python's own."""
    table = {"output": "joint.friction_torque", "inputs": ["joint.velocity"], **rule}
    with pytest.raises(TruesimError, match=message):
        blueprint_of({"rule": [table]})


def test_former_names_of_ports_still_work():
    """A blueprint with `sensor.reading` changes the measurements, and keeps the name of its weights."""
    model = robot(SENSED)
    old, new = (linear(Rule(name, (), Constant()), [0.5], model) for name in ("sensor.reading", "sensor.measurement"))
    assert old.learned.names == ("sensor.reading",)
    values = [evaluate(read_sensors, s, s.initial_state(), jnp.zeros(0))["angle"] for s in (old, new)]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[0], 0.5, atol=1e-12)
