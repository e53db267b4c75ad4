"""The thrown cube of tiny-differentiable-simulator's `neural_contact`: eight balls at the corners of a 10 kg body.

The reference is rigid contact (friction 0.5, no bounce) over 3 s in steps of 10 ms. The model that is fitted to it has
compliant contact; its parameters, with those of its friction model, are one pytree.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.files.robots.load import loads
from truesim.math.spatial.rotation import quaternion_product
from truesim.physics.contact import CompliantContact, RigidContact
from truesim.physics.contact.models.friction_models import AbstractFrictionModel
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State, rollout

TIMESTEP, STEPS, SUBSTEPS = 0.01, 300, 5
"""Time step [s] and number of steps of the reference, and steps of the compliant model in each."""
FRICTION = 0.5
THROW = ((0.8, 1.1, 0.9), (0.0, 0.0, 1.2), (0.7, 5.0, 0.0))
"""Roll, pitch and yaw [rad], place [m] and velocity [m/s]."""


class Contact(NamedTuple):
    """Parameters of compliant contact that are identified."""

    stiffness: Float[Array, ""]
    """[1e4 N/m^1.5]"""
    damping: Float[Array, ""]
    """[1e4 N s/m^2.5]"""
    friction: Float[Array, ""]
    friction_model: AbstractFrictionModel
    """Its own parameters, if any, are identified too."""


def scene() -> Model:
    """The cube above a floor."""
    corners = [(x, y, z) for x in (-0.4, 0.4) for y in (-0.4, 0.4) for z in (-0.4, 0.4)]
    balls = "".join(f'<geom size="0.1" pos="{x} {y} {z}"/>' for x, y, z in corners)
    return loads(f"""<mujoco model="throw"><option timestep="{TIMESTEP}"/>
      <default><geom friction="{FRICTION} 0 0"/></default><worldbody><geom type="plane" size="50 50 1"/>
      <body name="cube"><freejoint name="cube"/><inertial pos="0 0 0" mass="10" diaginertia="1 1 1"/>{balls}</body>
      </worldbody></mujoco>""")


def thrown(
    angles: Float[np.ndarray, "3"], place: Float[np.ndarray, "3"], velocity: Float[np.ndarray, "3"]
) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity of a throw without spin."""
    turn = np.array([1.0, 0.0, 0.0, 0.0])
    for axis in (2, 1, 0):
        about = np.zeros(4)
        about[0], about[1 + axis] = np.cos(angles[axis] / 2), np.sin(angles[axis] / 2)
        turn = np.asarray(quaternion_product(turn, about))
    return np.concatenate([place, turn]), np.concatenate([velocity, np.zeros(3)])


def other_throws(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Throws with other angles and velocities."""
    rng = np.random.default_rng(0)
    return [
        thrown(rng.uniform(-np.pi, np.pi, 3), np.array(THROW[1]), np.array([*rng.uniform(-5, 5, 2), 0.0]))
        for _ in range(count)
    ]


def rigid_motion(model: Model, q: Float[Array, "7"], v: Float[Array, "6"]) -> tuple[Array, Array]:
    """Configurations and velocities after every step of the reference."""
    simulator = Simulator.of(model, contact=RigidContact.of(model))
    return rollout(simulator, State(q, v, jnp.zeros(())), jnp.zeros((STEPS, 0)), keep=lambda s, _: (s.q, s.v))[1]


def compliant_motion(model: Model, contact: Contact, q: Float[Array, "7"], v: Float[Array, "6"]) -> tuple[Array, Array]:
    """Configurations and velocities of the compliant model after every step of the reference."""
    everywhere = jnp.ones(len(model.geoms.names))
    numbers = (
        1e4 * contact.stiffness * everywhere,
        1e4 * contact.damping * everywhere,
        jnp.asarray(model.geoms.friction).at[:, 0].set(contact.friction),
    )
    changed = eqx.tree_at(
        lambda m: (m.geoms.contact_stiffness, m.geoms.contact_damping, m.geoms.friction), model, numbers
    )
    compliant = CompliantContact.of(model, friction_model=contact.friction_model)
    simulator = Simulator.of(changed, contact=compliant, timestep=TIMESTEP / SUBSTEPS)
    constants = simulator.constants()

    def advance(state: State, _: None) -> tuple[State, tuple[Array, Array]]:
        step = lambda state, _: (simulator.step(state, jnp.zeros(0), constants)[0], None)  # noqa: E731
        state, _ = jax.lax.scan(step, state, length=SUBSTEPS)
        return state, (state.q, state.v)

    return jax.lax.scan(advance, State(q, v, jnp.zeros(())), None, length=STEPS)[1]
