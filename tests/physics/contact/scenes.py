"""Scenes of touching bodies, and a quick way to run them."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.files.robots.load import loads
from truesim.physics.contact import RigidContact
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State, rollout

FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'
CUBE = f"""<mujoco><worldbody>{FLOOR}<body name="cube" pos="0 0 .1"><freejoint/>
  <geom name="cube" type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""
BALL = f"""<mujoco><worldbody>{FLOOR}<body name="ball" pos="0 0 1.1"><freejoint/>
  <geom name="ball" size=".1" mass="1"/></body></worldbody></mujoco>"""
FOUR_BAR = """<mujoco><default><geom type="capsule" size=".02" contype="0" conaffinity="0"/></default><worldbody>
  <body name="a" pos="0 0 1"><joint axis="0 1 0"/><geom fromto="0 0 0 .3 0 0"/>
    <body name="b" pos=".3 0 0"><joint axis="0 1 0"/><geom fromto="0 0 0 .2 0 -.4"/></body></body>
  <body name="c" pos=".8 0 1"><joint axis="0 1 0"/><geom fromto="0 0 0 -.3 0 -.4"/></body></worldbody>
  <equality><connect body1="b" body2="c" anchor=".2 0 -.4"/></equality></mujoco>"""
MIXED = f"""<mujoco><option timestep="0.005"/><worldbody>{FLOOR}
  <body name="box" pos="0 0 .1"><freejoint/><geom name="box" type="box" size=".1 .08 .06" mass="1"/></body>
  <body name="ball" pos=".3 0 .1"><freejoint/><geom name="ball" size=".07" mass=".5"/></body>
  <body name="rod" pos="0 .4 .1"><freejoint/><geom name="rod" type="capsule" size=".05 .1" mass=".8"/></body>
  <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0" range="-30 20" limited="true" frictionloss=".3"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".6" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
"""Three free bodies on a floor, which can also touch each other, and a hinge with dry friction at its limit."""


def plate(timestep: float) -> str:
    """A small fast ball above a thin plate, without gravity."""
    return f"""<mujoco><option timestep="{timestep}" gravity="0 0 0"/><worldbody>
      <geom type="box" size=".3 .3 .0025"/><body pos="0 0 .4"><freejoint/><geom size=".01" mass="1"/></body>
      </worldbody></mujoco>"""


def changed(model: Model, values: dict) -> Model:
    """The model with other values at some paths."""
    for path, value in values.items():
        model = paths.write(model, path, value if isinstance(value, jax.Array) else np.asarray(value, dtype=float))
    return model


def rigid(model: Model, **options) -> Simulator:
    """The simulator with rigid contact."""
    return Simulator.of(model, contact=RigidContact.of(model, **options))


def tilted(degrees: float, heading: float) -> np.ndarray:
    """Gravity on a slope that falls in the direction `heading` [rad]."""
    slope = math.radians(degrees)
    flat = math.sin(slope) * np.array([math.cos(heading), math.sin(heading)])
    return 9.81 * np.append(flat, -math.cos(slope))


class Runner:
    """Runs a scene for some steps as one kernel; numbers of the model and the state may change from run to run."""

    def __init__(self, simulator: Simulator, steps: int):
        self.simulator = _arrays(simulator)
        model = simulator.model
        start = simulator.initial_state()
        self.q, self.v = np.array(start.q), np.zeros(model.nv)

        def run(simulator, q, v, command):
            state = State(q, v, jnp.zeros(()))
            commands = jnp.tile(command[None], (steps, 1))
            return rollout(simulator, state, commands, keep=lambda state, info: (state.q, state.v, info.contact))[1]

        self.kernel = native.compile(run, self.simulator, self.q, self.v, np.zeros(model.nu))

    def __call__(self, values=None, q=None, v=None, command=None):
        """Configurations, velocities and contact reports after each step."""
        model = self.simulator.model
        simulator = self.simulator.replace({path: np.asarray(x, float) for path, x in (values or {}).items()})
        q = self.q if q is None else np.asarray(q, dtype=float)
        v = self.v if v is None else np.asarray(v, dtype=float)
        command = np.zeros(model.nu) if command is None else np.asarray(command, dtype=float)
        return self.kernel(_arrays(simulator), q, v, command)


def _arrays(tree):
    return jax.tree.map(lambda x: np.asarray(x) if eqx.is_array(x) else x, tree)


def scene(xml: str) -> Model:
    """The model of a scene."""
    return loads(xml)
