"""The physics layer: balls and walls as rigid bodies in truesim, as one differentiable function of JAX."""

import jax
import jax.numpy as jnp
import numpy as np

import truesim as ts
from experiments.visual_prediction.scene import AHEAD, BALLS, RADIUS, SIZE
from truesim import native
from truesim.core.typing import Array
from truesim.files.robots import loads

STEPS = 2
"""Time steps of a frame."""
WALLS = (("0 0 0", "1 0 0"), (f"{SIZE} 0 0", "-1 0 0"), ("0 0 0", "0 1 0"), (f"0 {SIZE} 0", "0 -1 0"))
BALL = """<body name="ball{k}"><joint name="x{k}" type="slide" axis="1 0 0"/>
  <joint name="y{k}" type="slide" axis="0 1 0"/><geom name="ball{k}" type="sphere" size="{r}" mass="1" condim="1"/>
  </body>"""


def table_simulator() -> ts.Simulator:
    """Simulator of the table; a unit of length is a pixel, a unit of time is a frame."""
    walls = "".join(
        f'<geom name="wall{k}" type="plane" size="1 1 1" pos="{p}" zaxis="{z}" condim="1"/>'
        for k, (p, z) in enumerate(WALLS)
    )
    balls = "".join(BALL.format(k=k, r=RADIUS) for k in range(BALLS))
    head = f'<option timestep="{1 / STEPS}" gravity="0 0 0"/>'
    model = loads(f"<mujoco>{head}<worldbody>{walls}{balls}</worldbody></mujoco>")
    return ts.Simulator.of(model, contact=ts.RigidContact.of(model, bounces=True))


def make_layer(frames: int = AHEAD) -> native.Kernel:
    """Places and velocities in the frames that follow, from places, velocities, restitution and friction; batches."""
    simulator = table_simulator()
    joints = [f"joints/{axis}{k}.damping" for k in range(BALLS) for axis in "xy"]

    def layer(x: Array, v: Array, restitution: Array, friction: Array) -> tuple[Array, Array]:
        sim = simulator.replace({"geoms/*.restitution": restitution} | dict.fromkeys(joints, friction))
        state = sim.initial_state(q=x.ravel(), v=v.ravel())
        commands = jnp.zeros((frames * STEPS, 0))
        _, motion = ts.rollout(sim, state, commands, keep=lambda s, info: (s.q, s.v), backend="xla")
        x, v = (z[STEPS - 1 :: STEPS].reshape(frames, BALLS, 2) for z in motion)
        return x, v

    places = np.zeros((BALLS, 2))
    with jax.enable_x64(True):
        return native.compile(layer, places, places, np.float64(1), np.float64(0))
