"""Small robots for tests of motion, and their numbers as one vector."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.files.robots.compiled import from_compiled
from truesim.physics.dynamics import reference_configuration
from truesim.physics.model.actuators import MODEL_FIELDS
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State

PENDULUM = """
<mujoco><compiler angle="radian"/><option timestep="0.002"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 2"><joint axis="0 1 0"/><inertial pos="0 0 -.25" mass="1" diaginertia=".02 .02 .001"/>
    <body pos="0 0 -.5"><joint axis="0 1 0"/><inertial pos="0 0 -.2" mass=".7" diaginertia=".01 .01 .001"/>
      <body pos="0 0 -.4"><joint axis="0 1 0"/><inertial pos="0 0 -.15" mass=".4" diaginertia=".004 .004 .001"/>
</body></body></body></worldbody></mujoco>"""
"""Three links without friction."""

SMOOTH = """
<mujoco><compiler angle="radian"/><option timestep="0.01"/><worldbody>
  <body pos="0 0 .3" quat="1 .1 0 .2">
    <joint name="a" axis="0 .6 .8" pos=".02 0 .1" damping=".5" armature=".1" ref=".2"/>
    <inertial pos=".02 0 .1" mass="2" fullinertia=".03 .03 .02 .001 .002 -.001"/>
    <body pos="0 0.1 .3" quat="1 0 .3 0"><joint name="b" type="slide" axis="0 1 0" damping="1" stiffness="5"
        springref=".4" armature=".2"/><inertial pos="0 .02 .15" mass="1.5" fullinertia=".03 .03 .005 .001 .002 -.001"/>
</body></body></worldbody><actuator>
  <position joint="a" kp="30" kv="3" gear="1.2"/><velocity joint="b" kv="4" gear="2"/>
  <general joint="b" gaintype="affine" gainprm="2 .5 -.3" biastype="affine" biasprm=".1 -8 -2"/>
</actuator></mujoco>"""
"""An arm with springs, dampers and servos."""

CONSTRAINED = """
<mujoco><compiler angle="radian"/><option timestep="0.005"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".02" frictionloss=".3" range="-.4 .3" limited="true"
      solimplimit=".8 .95 .3 .4 3" armature=".01"/>
    <inertial pos=".05 0 -.25" mass="1" fullinertia=".02 .021 .005 .001 .002 -.001"/>
    <body pos="0 0 -.5"><joint name="b" axis="0 1 .2" frictionloss=".05" range="-1 .5" limited="true" margin=".1"
        solimpfriction=".8 .9 .01 .4 3"/><inertial pos="0 .02 -.2" mass=".6" diaginertia=".008 .008 .001"/>
</body></body></worldbody><actuator><motor joint="a" gear="2"/><motor joint="b"/></actuator></mujoco>"""
"""Two links with dry friction that slips and sticks, and a limit that is reached."""

ROTATING = """
<mujoco><compiler angle="radian"/><option timestep="0.01" integrator="RK4"/><worldbody>
  <body pos="0 0 1" quat="1 .2 -.1 .3"><joint type="ball" pos="0 .1 .1" {damping} {stiffness}/>
    <inertial pos=".1 -.1 .2" mass="1" fullinertia=".06 .07 .08 .004 -.003 .002"/></body>
  <body pos="1 0 0" quat="1 0 0 .4"><freejoint/><inertial pos=".05 .02 0" mass="1" diaginertia=".04 .06 .05"/>
    <body pos=".2 0 0"><joint axis="0 1 1"/><inertial pos="0 .1 0" mass=".3" diaginertia=".02 .03 .04"/></body></body>
</worldbody></mujoco>"""
"""A ball joint, and a free body that carries a hinge."""

SPINNING = """
<mujoco><option timestep="0.01"/><worldbody><body pos="1 0 0" quat="1 0 0 .4"><joint type="free" damping=".1"/>
  <inertial pos=".05 .02 0" mass="1" diaginertia=".04 .06 .05"/></body></worldbody></mujoco>"""
"""A free body alone: the smallest robot with an orientation."""


def robot(text: str) -> Model:
    """Our model of an MJCF text."""
    text = text.replace("{damping}", 'damping=".05"').replace("{stiffness}", 'stiffness=".5"')
    return from_compiled(mujoco.MjModel.from_xml_string(text), None)


def start(model: Model, seed: int = 0, speed: float = 1.0) -> State:
    """A state in motion, near where the file draws the robot."""
    rng = np.random.default_rng(seed)
    at_rest = reference_configuration(model)
    q = jnp.concatenate(
        [
            link.kind.integrate(at_rest[link.q], 0.3 * rng.normal(size=link.kind.nv))
            for link in model.topology.links
            if link.joint >= 0
        ]
    )
    return State(q, jnp.asarray(speed * rng.normal(size=model.nv)), jnp.zeros(()))


def numbers(simulator: Simulator) -> Simulator:
    """The simulator's numbers that move the robot: neither geoms and sites, without contact, nor sensors do.

    Neither do delays, without a history, nor the numbers of laws that no actuator has.
    """
    kept = eqx.filter(jax.tree.map(_array, simulator), eqx.is_inexact_array)
    return eqx.tree_at(_bystanders, kept, (None,) * len(_bystanders(simulator)), is_leaf=lambda x: x is None)


def with_numbers(simulator: Simulator, replaced: Simulator) -> Simulator:
    """The simulator with these numbers instead of its own."""
    rest = eqx.tree_at(_bystanders, replaced, _bystanders(simulator), is_leaf=lambda x: x is None)
    return eqx.combine(rest, simulator)


def _bystanders(simulator: Simulator) -> tuple:
    model = simulator.model
    idle = (getattr(model.actuators, field) for field in ("delay", *MODEL_FIELDS))
    return model.geoms, model.sites, model.sensors, *idle


def _array(x):
    return jnp.asarray(x) if eqx.is_array_like(x) and not isinstance(x, bool | int) else x
