"""Planted flaws are found at their own port, and a model that fits needs no network."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.identification.suggestion.planted import ARM2, ARM3, POLE, drag, geared, recorded, spring, stribeck
from tests.robots import robot
from truesim.files.logs import Log
from truesim.identification.problem.build import build
from truesim.identification.suggestion import Suggestions, suggest
from truesim.identification.suggestion.folder import blueprint_text, write_suggestions
from truesim.physics.blueprint import read_blueprint
from truesim.physics.contact import CompliantContact
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State, record
from truesim.report.suggest_page import write_suggest_page

LAG = ("actuator.command", "actuator.force")

BOX = """
<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1" friction=".35"/>
<body name="box" pos="0 0 .2"><freejoint name="box"/>
<geom name="cube" type="box" size=".05 .05 .05" mass=".4" friction=".35"/></body></worldbody></mujoco>"""


def found(text: str, seeds: tuple[int, ...], **flaw) -> Suggestions:
    """What is suggested for a planted flaw."""
    return suggest(build(robot(text), [recorded(text, seed, **flaw) for seed in seeds], ()))


def test_a_model_that_fits_needs_none():
    """Residuals are noise, and no port is proposed."""
    result = found(ARM2, (11, 12), seconds=3.0)
    assert not result.needed
    assert "None needed" in result.sentence
    assert result.remaining == pytest.approx(1.0, abs=0.05)


def test_stribeck_friction():
    """Friction that is highest at the onset of motion is found in its joint, from its velocity."""
    result = found(ARM2, (3, 4), flaw=stribeck(1), seconds=4.0)
    best = result.found[0]
    assert result.needed
    assert (best.port, best.names, best.inputs) == ("joint.friction_torque", ("elbow",), ("joint.velocity",))
    assert best.curve is not None
    onset = np.abs(best.curve.y[np.abs(best.curve.x) < 0.3]).max()
    fast = np.abs(best.curve.y[np.abs(best.curve.x) > 3.0])
    assert onset > 1.2 * np.median(fast)  # the true curve: 0.55 against 0.3


def test_friction_under_load():
    """Dry friction that grows with the motor's torque is found at its bound, from what the joint transmits."""
    text = POLE.replace('armature=".01"', 'armature=".01" frictionloss=".05"')
    best = found(text, (31, 32), flaw=geared(0), seconds=3.0).found[0]
    assert (best.port, best.kind, best.names) == ("joint.friction_bound", "friction under load", ("hinge",))
    assert best.explained > 0.9
    assert best.curve is not None
    assert np.polyfit(np.abs(best.curve.x), best.curve.y, 1)[0] == pytest.approx(0.4, rel=0.1)


def test_drag_on_one_link(tmp_path):
    """Quadratic drag is found at its body, and its blueprint can be read and built."""
    problem = build(robot(POLE), [recorded(POLE, seed, flaw=drag("pole", 0.2), seconds=3.0) for seed in (5, 6)], ())
    result = suggest(problem)
    best = result.found[0]
    assert result.needed
    assert (best.port, best.names, best.inputs) == ("body.wrench", ("pole",), ("body.velocity",))
    assert best.explained > 0.9
    paths = write_suggestions(result, tmp_path)
    assert read_blueprint(paths[0]).rules[0] == best.rule
    assert "body.wrench" in write_suggest_page(tmp_path).read_text(encoding="utf-8")
    for suggestion in result.found:
        path = tmp_path / "any.toml"
        path.write_text(blueprint_text(suggestion), encoding="utf-8")
        problem.simulator.augmented(read_blueprint(path))


def test_actuator_lag():
    """Servos that lag are found at the actuators, from the value of the step before."""
    result = found(POLE, (1, 2), lag=0.02, seconds=3.0)
    best = result.found[0]
    assert result.needed
    assert best.port in LAG
    assert best.inputs == (best.port, f"previous {best.port}")


@pytest.mark.slow
def test_a_spring_that_nobody_modelled():
    """A spring is found in its joint, from its position."""
    result = found(POLE, (7, 8), flaw=spring(0), seconds=3.0)
    best = result.found[0]
    assert result.needed
    assert (best.port, best.names, best.inputs) == ("joint.spring_torque", ("hinge",), ("joint.position",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaw", "port", "names"),
    [
        ({"flaw": stribeck(1, 1.0, 0.6)}, ("joint.friction_torque",), ("lift",)),
        ({"flaw": drag("fore", 2.0)}, ("body.wrench",), ("fore",)),
        ({"lag": 0.015}, LAG, ("yaw", "lift", "bend")),
        ({"flaw": spring(2, 5.0)}, ("joint.spring_torque",), ("bend",)),
    ],
)
def test_flaws_of_an_arm_in_space(flaw, port, names):
    """The same on three links with servos."""
    best = found(ARM3, (21, 22), size=1.0, **flaw).found[0]
    assert best.port in port
    assert best.names == names


def rubbed(model: Model, coefficient: float) -> Model:
    """The model with another coefficient of friction everywhere."""
    friction = np.array(model.geoms.friction)
    friction[:, 0] = coefficient
    return eqx.tree_at(lambda m: m.geoms.friction, model, friction)


def thrown(model: Model, seed: int) -> Log:
    """A box that is thrown onto the floor and slides."""
    rng = np.random.default_rng(seed)
    turn = np.array([3.0, 0, 0, 0]) + rng.normal(size=4) * (1, 0.1, 0.1, 0.1)
    q = np.array([0, 0, 0.06 + 0.1 * rng.random(), *(turn / np.linalg.norm(turn))])
    v = np.array([*rng.normal(size=2), 0, *(3 * rng.normal(size=3))])
    with jax.enable_x64(True):
        simulator = Simulator.of(model, contact=CompliantContact.of(model))
        motion = record(simulator, State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(())), jnp.zeros((500, 0)))
    noisy = np.asarray(motion.q) + 5e-5 * rng.normal(size=motion.q.shape)
    axes = ("x", "y", "z", "qw", "qx", "qy", "qz")
    columns = {f"qpos/box/{axis}": column for axis, column in zip(axes, noisy.T, strict=True)}
    return Log(np.asarray(motion.time), columns, name=f"throw{seed}")


@pytest.mark.slow
def test_wrong_contact_friction():
    """A box that slides less far than it should has wrong friction with the floor."""
    model = robot(BOX)
    problem = build(model, [thrown(rubbed(model, 0.6), seed) for seed in (1, 2, 3, 4)], ())
    problem = dataclasses.replace(problem, simulator=Simulator.of(model, contact=CompliantContact.of(model)))
    result = suggest(problem)
    assert result.needed
    assert result.found[0].port == "contact.friction_force"
    assert result.found[0].names == ("floor-cube",)
