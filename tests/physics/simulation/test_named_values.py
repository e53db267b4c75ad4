"""Numbers of a simulator by name: `replace` and `read`, also under transformations of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.evaluation import compiled, evaluate
from tests.physics.contact.scenes import BALL, CUBE, scene
from tests.robots import CONSTRAINED, SMOOTH, robot, start
from truesim.core.errors import NameUnknownError, TruesimError
from truesim.physics.blueprint import MLP, Blueprint, Rule
from truesim.physics.contact import RigidContact
from truesim.physics.model import paths
from truesim.physics.simulation import Simulator, rollout
from truesim.physics.simulation.named_values import expand, write, write_all

STEPS = 8
BLUEPRINT = Blueprint((Rule("joint.torque", ("joint.velocity",), MLP((3,)), name="drag"),))


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    """An arm with springs, servos and a network."""
    return Simulator.of(robot(SMOOTH), blueprint=BLUEPRINT)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("joints/a.damping", 0.7),
        ("bodies/body2.mass", 3.0),
        ("bodies/body1.com", [0.1, 0.2, 0.3]),
        ("bodies/body1.com[1]", 0.4),
        ("gravity", [0.0, 1.0, -3.0]),
        ("gravity[2]", -1.6),
        ("actuators/actuator0.gain", 12.0),
        ("timestep", 0.004),
        ("networks/drag[2]", 0.3),
    ],
)
def test_read_returns_what_replace_wrote(simulator, path, value):
    """Every kind of path is written, nothing else changes, and the original is untouched."""
    before = np.array(simulator.read(path))
    changed = simulator.replace({path: value})
    np.testing.assert_array_equal(changed.read(path), np.asarray(value))
    np.testing.assert_array_equal(simulator.read(path), before)
    back = changed.replace({path: before})
    jax.tree.map(np.testing.assert_array_equal, back, simulator)


def test_writing_all_values_at_once_is_writing_one_after_the_other(simulator):
    """Values of NumPy and of JAX, elements, negatives, gains of servos, and what is not in a group of the model."""
    names = ("bodies/body1.com[1]", "bodies/body2.com[1]", "-bodies/body2.com[0]", "joints/a.damping", "timestep")
    more = ("actuators/actuator0.gain", "gravity[2]", "networks/drag[2]", "bodies/body2.mass")
    found = [target for name in (*names, *more) for target in expand(simulator, name)]
    values = [np.float64(k + 0.5) for k in range(len(found))]
    values[-1] = jnp.asarray(2.0)
    expected = simulator
    for target, value in zip(found, values, strict=True):
        expected = write(expected, target, value)
    several = write_all(simulator, list(zip(found, values, strict=True)))
    jax.tree.map(np.testing.assert_array_equal, several, expected)
    assert float(several.read("bodies/body2.com[0]")) == -float(values[2])


def test_all_weights_of_a_network_are_one_vector(simulator):
    """`networks/<rule>` reads and writes them together."""
    weights = np.arange(simulator.read("networks/drag").size, dtype=float)
    changed = simulator.replace({"networks/drag": weights})
    np.testing.assert_array_equal(changed.learned.weights(0), weights)


def test_a_pattern_gives_one_value_to_all(simulator):
    """`*` stands for any text."""
    changed = simulator.replace({"joints/*.damping": 0.3, "bodies/*.com[2]": 0.05})
    np.testing.assert_array_equal(changed.model.joints.damping, [0.3, 0.3])
    np.testing.assert_array_equal(changed.model.bodies.com[:, 2], [0.05, 0.05])


def test_numbers_of_contact():
    """Solver numbers of rigid contact have paths."""
    rigid = Simulator.of(scene(CUBE), contact=RigidContact.of(scene(CUBE)))
    changed = rigid.replace({"contact.recovery": 0.5})
    assert float(changed.contact.recovery) == 0.5 != float(rigid.contact.recovery)


def test_derivatives_flow_through_replace(simulator):
    """The gradient by a name equals that by the array, inside `jit`, `grad` and `vmap`."""
    state, commands = start(simulator.model), jnp.ones((STEPS, 3))

    def by_name(damping):
        return rollout(simulator.replace({"joints/a.damping": damping}), state, commands, backend="xla")[0].q[0]

    def central(f, x, h=1e-5):
        return (f(x + h) - f(x - h)) / (2 * h)

    gradient = compiled(jax.grad(by_name), 0.5)
    np.testing.assert_allclose(gradient(0.5), central(compiled(by_name, 0.5), 0.5), rtol=1e-7)
    several = evaluate(jax.vmap(jax.grad(by_name)), jnp.array([0.2, 0.5]))
    np.testing.assert_allclose(several[1], gradient(0.5), rtol=1e-12)
    assert abs(several[0] - several[1]) > 1e-9


def test_a_batch_of_simulators(simulator):
    """`vmap` over a value makes simulators with a batch axis, which `vmap` takes again."""
    masses = jnp.array([1.0, 2.0, 4.0])
    batch = jax.vmap(lambda m: simulator.replace({"bodies/body2.mass": m}))(masses)
    np.testing.assert_array_equal(batch.model.bodies.mass[:, 1], masses)


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("joints/a.dampng", "damping"),
        ("bodies/body22.mass", "body2"),
        ("timesteps", "timestep"),
        ("networks/drg", "networks/drag"),
        ("gravty", "gravity"),
        ("joint/a.damping", "joints"),
        ("bodies/*.mas", r"bodies/\*.mass"),
    ],
)
def test_wrong_names_are_answered_with_the_nearest(simulator, path, nearest):
    """A typo raises, and the message names what was meant."""
    with pytest.raises(NameUnknownError, match=f"did you mean '{nearest}'"):
        simulator.replace({path: 1.0})


def test_wrong_shapes_are_refused(simulator):
    """A vector in the place of a number, and an element that is not there."""
    with pytest.raises(TruesimError, match=r"joints/a.damping has shape \(\), but the new value has shape \(2,\)"):
        simulator.replace({"joints/a.damping": [1.0, 2.0]})
    with pytest.raises(TruesimError, match=r"gravity is 3 elements, \[0\] to \[2\]; there is no gravity\[3\]"):
        simulator.replace({"gravity[3]": 1.0})
    with pytest.raises(TruesimError, match="several values"):
        simulator.read("joints/*.damping")


def test_values_without_effect_are_refused(simulator):
    """Dry friction in a joint without, and delays without history, would silently do nothing."""
    with pytest.raises(TruesimError, match="without dry friction"):
        simulator.replace({"joints/a.frictionloss": 0.1})
    with pytest.raises(TruesimError, match="without dry friction"):
        jax.jit(lambda x: simulator.replace({"joints/a.frictionloss": x}).timestep)(0.1)
    with pytest.raises(TruesimError, match="max_delay"):
        simulator.replace({"actuators/actuator0.delay": 0.02})
    roomy = Simulator.of(simulator.model, max_delay=0.02)
    assert float(roomy.replace({"actuators/actuator0.delay": 0.02}).read("actuators/actuator0.delay")) == 0.02
    with pytest.raises(TruesimError, match="2 time steps"):
        roomy.replace({"actuators/actuator0.delay": 0.05})
    rough = Simulator.of(robot(CONSTRAINED))
    assert float(rough.replace({"joints/a.frictionloss": 0.1}).read("joints/a.frictionloss")) == 0.1


def test_simulators_can_be_made_inside_a_trace():
    """Structure comes from the file: the simulator is the same as outside, and derivatives flow."""
    model = robot(CONSTRAINED)
    usual, state, commands = Simulator.of(model), start(model), jnp.ones((STEPS, 2))

    def end(make, friction):
        return rollout(make(friction), state, commands, backend="xla")[0].v[0]

    def made(friction):
        simulator = Simulator.of(paths.write(model, "joints/a.frictionloss", friction))
        assert simulator.joint_model == usual.joint_model
        return simulator

    inside = evaluate(jax.grad(lambda x: end(made, x)), 0.3)
    outside = evaluate(jax.grad(lambda x: end(lambda x: usual.replace({"joints/a.frictionloss": x}), x)), 0.3)
    np.testing.assert_allclose(inside, outside, rtol=1e-12)
    assert abs(inside) > 1e-6


def test_a_whole_traced_model_keeps_its_structure():
    """All numbers traced, with rigid contact: same constraints and states as outside of the trace."""
    model = scene(CUBE)
    usual = Simulator.of(model, contact=RigidContact.of(model))
    shape = jax.tree.structure(usual.initial_state())

    def height(model):
        simulator = Simulator.of(model, contact=RigidContact.of(model), timestep=jnp.asarray(0.01))
        assert jax.tree.structure(simulator.initial_state()) == shape
        assert simulator.joint_model == usual.joint_model
        return simulator.initial_state().q[2]

    np.testing.assert_array_equal(jax.jit(height)(model), usual.initial_state().q[2])


def test_friction_written_in_a_trace_gets_its_constraint():
    """A joint without dry friction in the file, to which a traced one is written, has it."""
    model = robot(SMOOTH)
    assert Simulator.of(model).joint_model.friction == ()
    found = []
    jax.jit(lambda x: found.append(Simulator.of(paths.write(model, "joints/b.frictionloss", x)).joint_model))(0.2)
    assert found[0].friction == (1,)
    also = paths.write(model, "joints/a.stiction", np.float64(0.1))
    jax.jit(lambda model: found.append(Simulator.of(model).joint_model))(also)
    assert found[1].friction == (0,)


def test_traced_delays_take_the_files_room_or_an_argument():
    """From the file where it has a delay, else from `max_delay`; an error only without both."""
    model = robot(SMOOTH)

    def room(model, **options):
        found = []
        jax.jit(
            lambda x: found.append(Simulator.of(paths.write(model, "actuators/actuator0.delay", x), **options).history)
        )(0.01)
        return found[0]

    with pytest.raises(TruesimError, match="max_delay"):
        room(model)
    assert room(model, max_delay=0.03) == 4
    late = paths.write(model, "actuators/actuator0.delay", np.float64(0.02))
    assert room(late) == Simulator.of(late).history == 3
    assert jax.jit(lambda model: jnp.zeros(Simulator.of(model).history))(model).size == 0


def test_replacing_values_keeps_the_tree_structure():
    """Also where a value decides structure in `Simulator.of`: compiled functions take every replaced simulator."""
    model = scene(BALL)
    simulator = Simulator.of(model, contact=RigidContact.of(model, bounces=True))
    bouncing = simulator.replace({"geoms/ball.restitution": 0.8})
    assert jax.tree.structure(bouncing) == jax.tree.structure(simulator)
