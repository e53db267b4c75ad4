"""Contract of actuator models, checked on every member of the family."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from tests.comparison import relative_error
from tests.robots import robot
from truesim.physics.actuators.forces import actuator_forces
from truesim.physics.actuators.models import ACTUATOR_MODELS, AbstractActuatorModel
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_actuator_model
from truesim.physics.model.actuators import ACTUATOR_MODEL_PARAMETERS, AFFINE, Actuators

ARM = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>
  <actuator><general name="a" joint="a" gaintype="affine" gainprm="2 .5 -.3" biastype="affine" biasprm=".1 -8 -2"/>
</actuator></mujoco>"""
POINTS = {"inside": (0.13, 0.07, 0.4), "moving back": (-0.21, 0.05, -0.7), "saturated": (3.0, -0.2, 2.0)}
"""Control, length and velocity, away from the kinks of every model."""


def test_the_table_holds_every_member():
    """Every actuator model is found under its own name, and its parameters are listed beside the record."""
    assert {type(kind) for kind in ACTUATOR_MODELS.values()} == set(AbstractActuatorModel.__subclasses__())
    assert all(name == kind.name for name, kind in ACTUATOR_MODELS.items())
    assert set(ACTUATOR_MODELS) == {AFFINE, *ACTUATOR_MODEL_PARAMETERS}


def force_of_everything(name: str):
    """The force as a function of one vector, and that vector: control, length, velocity, every number by field."""
    actuators = jax.tree.map(jnp.asarray, with_actuator_model(robot(ARM), "a", name).actuators)
    numbers = {f.name: getattr(actuators, f.name) for f in dataclasses.fields(Actuators) if "unit" in f.metadata}
    vector, back = ravel_pytree(((jnp.zeros(1),) * 3, numbers))

    def force(vector, point):
        state, numbers = back(vector.at[:3].add(point))
        return ACTUATOR_MODELS[name].force(dataclasses.replace(actuators, **numbers), *state)[0]

    return jax.jit(jax.vmap(force, in_axes=(0, None))), jax.jit(jax.grad(force)), vector, back


@pytest.mark.parametrize("name", ACTUATOR_MODELS)
def test_derivatives_agree_with_differences(name):
    """In every number, control, length and velocity, to 1e-5 away from kinks."""
    force, gradient, vector, _ = force_of_everything(name)
    steps = 1e-6 * np.eye(vector.size)
    for point in POINTS.values():
        at = jnp.array(point)
        central = (force(vector[None] + steps, at) - force(vector[None] - steps, at)) / 2e-6
        assert relative_error(gradient(vector, at), central) < 1e-5


@pytest.mark.parametrize("name", ACTUATOR_MODELS)
def test_exactly_the_listed_numbers_matter(name):
    """Every number that has a path under this kind moves the force somewhere, and no other does."""
    _, gradient, vector, back = force_of_everything(name)
    size = sum(np.abs(gradient(vector, jnp.array(point))) for point in POINTS.values())
    matters = {field for field, slope in back(jnp.asarray(size))[1].items() if np.any(slope > 0)}
    listed = {
        path.field for path in paths.paths(with_actuator_model(robot(ARM), "a", name)) if path.group == "actuators"
    }
    assert matters == listed - {"delay", "offset", "gear", "control_range", "force_range"}


@pytest.mark.parametrize("name", ACTUATOR_MODELS)
def test_mixed_with_others(name):
    """An actuator does the same alone and among others of other kinds."""
    text = ARM.replace("</actuator>", '<motor name="b" joint="a"/><motor name="c" joint="a"/></actuator>')
    alone = with_actuator_model(robot(ARM), "a", name)
    mixed = with_actuator_model(with_actuator_model(robot(text), "a", name), "c", "dc_motor")
    q, v = np.array([0.1]), np.array([0.4])
    expected = actuator_forces(alone, q, v, np.array([0.3])).force[0]
    found = actuator_forces(mixed, q, v, np.array([0.3, 0.7, 0.2])).force
    motor = ACTUATOR_MODEL_PARAMETERS["dc_motor"]
    torque = motor["torque_constant"] * (motor["volts"] * 0.2 - motor["torque_constant"] * 0.4) / motor["resistance"]
    np.testing.assert_allclose(found, [expected, 0.7, torque], rtol=1e-14)
