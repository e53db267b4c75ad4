"""The scene of lcp-physics' `inference` experiment, in pixels: ten hanging plates and a ball that flies at them.

Links 1 to 9 fall at 100 px/s^2; the first link and the ball do not feel gravity. All move in the plane of the picture.
Links turn on hinges, so that no joint can come apart. Contacts between links, which never happen here, are left out.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.typing import Array, Float
from truesim.files.robots.load import loads
from truesim.physics.contact import RigidContact
from truesim.physics.dynamics import body_poses, reference_configuration
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State

LINKS, WIDTH, HEIGHT, PITCH = 10, 20.0, 60.0, 50.0
"""Number of links; width, height and distance of their centers [px]."""
TOP = 30.0
"""Height of the first hinge below the upper edge [px]."""
GRAVITY, SPEED = 100.0, 150.0
"""Of the links [px/s^2], and of the ball [px/s]."""
FRICTION, RESTITUTION = 0.9, 0.75
"""Means of the link's and the ball's own."""
RATE, SECONDS = 30, 10.0
STEPS = round(RATE * SECONDS)


class Bodies(NamedTuple):
    """Angle and place of ten links and the ball in the picture, x to the right and y down."""

    angle: Float[Array, "11"]
    """[rad]"""
    x: Float[Array, "11"]
    """[px]"""
    y: Float[Array, "11"]
    """[px]"""


def scene() -> Model:
    """The model, with links of 0.7 and a ball of 1; one meter is a pixel."""
    chain = ""
    for i in reversed(range(LINKS)):
        above = TOP if i == 0 else 25 + PITCH * i
        center = PITCH + PITCH * i
        origin = f"300 0 {-above}" if i == 0 else f"0 0 {(TOP if i == 1 else 25 + PITCH * (i - 1)) - above}"
        below, size = f"0 0 {above - center}", f"{WIDTH / 2} 100 {HEIGHT / 2}"
        chain = f"""<body name="link{i}" pos="{origin}"><joint name="hinge{i}" axis="0 -1 0"/>
          <inertial pos="{below}" mass="0.7" diaginertia="{" ".join([str(_inertia(0.7))] * 3)}"/>
          <geom name="link{i}" type="box" size="{size}" pos="{below}"/>{chain}</body>"""
    pairs = "".join(
        f'<pair geom1="ball" geom2="link{i}" condim="3" friction="{FRICTION} {FRICTION}"/>' for i in range(LINKS)
    )
    return loads(f"""<mujoco model="chain"><option timestep="{1 / RATE}" gravity="0 0 {-GRAVITY}"/>
      <default><geom contype="0" conaffinity="0"/></default><worldbody>{chain}
      <body name="ball" pos="50 0 -500"><joint name="x" type="slide" axis="1 0 0"/>
        <joint name="z" type="slide" axis="0 0 1"/><joint name="spin" axis="0 -1 0"/>
        <inertial pos="0 0 0" mass="1" diaginertia="200 200 200"/><geom name="ball" size="20"/></body></worldbody>
      <contact>{pairs}</contact>
      <actuator><motor name="first" joint="hinge0"/><motor name="lift" joint="z"/></actuator></mujoco>""")


def simulator_of(model: Model, contact: RigidContact, masses: Float[Array, "10"]) -> Simulator:
    """The simulator with these masses of the links; their inertias follow."""
    inertia = jnp.asarray(model.bodies.inertia).at[:LINKS, 1].set(_inertia(masses))
    bodies = eqx.tree_at(
        lambda b: (b.mass, b.inertia), model.bodies, (jnp.asarray(model.bodies.mass).at[:LINKS].set(masses), inertia)
    )
    bouncing = jnp.full(LINKS, RESTITUTION)
    changed = eqx.tree_at(lambda m: (m.bodies, m.contacts.restitution), model, (bodies, bouncing))
    return Simulator.of(changed, contact=contact)


def motion(model: Model, contact: RigidContact, masses: Float[Array, "10"]) -> Bodies:
    """The bodies after each step, stacked over steps."""
    simulator = simulator_of(model, contact, masses)
    constants = simulator.constants()
    start = State(reference_configuration(model), jnp.zeros(model.nv), jnp.zeros(()))
    start = eqx.tree_at(lambda s: s.v, start, jnp.zeros(model.nv).at[LINKS].set(SPEED))

    def advance(state: State, _: None) -> tuple[State, Bodies]:
        command = weightless(masses, state.q)
        after, _ = simulator.step(state, command, constants)
        return after, image_of(model, after.q)

    return jax.lax.scan(advance, start, None, length=STEPS)[1]


def weightless(masses: Float[Array, "10"], q: Float[Array, " nq"]) -> Float[Array, "2"]:
    """Controls that compensate gravity: torque at the hinge of the first link, and force on the ball."""
    lever = PITCH - TOP
    return jnp.stack([masses[0] * GRAVITY * lever * jnp.sin(q[0]), jnp.asarray(GRAVITY)])


def image_of(model: Model, q: Float[Array, " nq"]) -> Bodies:
    """Angles and centers of mass in image coordinates."""
    poses = body_poses(model, q)
    centers = jax.vmap(lambda pose, com: pose.point(com))(poses, jnp.asarray(model.bodies.com))
    angle = jnp.append(jnp.cumsum(q[:LINKS]), q[LINKS + 2])
    return Bodies(angle, centers[:, 0], -centers[:, 2])


def _inertia(mass: Float[Array, "..."]) -> Float[Array, "..."]:
    """Inertia of a plate about its center [px^2]."""
    return mass * (WIDTH**2 + HEIGHT**2) / 12


def rigid_contact(model: Model) -> RigidContact:
    """Rigid contact with restitution; the ball touches at most two links."""
    return RigidContact.of(model, bounces=True, capacity=2)


def drift(bodies: Bodies) -> float:
    """Largest distance between the two points that a hinge should hold together, over all steps [px]."""
    turn, center = np.asarray(bodies.angle)[:, :LINKS], np.stack([bodies.x, bodies.y], axis=-1)[:, :LINKS]
    down = np.stack([np.sin(turn), np.cos(turn)], axis=-1)
    above = center - PITCH / 2 * down
    above[:, 0] = center[:, 0] - (PITCH - TOP) * down[:, 0]
    below = center + PITCH / 2 * down
    held = np.concatenate([np.broadcast_to([[[300.0, TOP]]], above[:, :1].shape), below[:, :-1]], axis=1)
    return float(np.linalg.norm(above - held, axis=-1).max())
