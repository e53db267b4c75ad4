"""Small scenes with every kind of constraint, and MuJoCo's own problem at a state."""

import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.files.robots.load import loads
from truesim.math.soft_constraints.newton import NewtonOptions
from truesim.physics.contact import MujocoContact
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator

SIZES = {
    "sphere": ".1",
    "capsule": ".05 .08",
    "box": ".1 .08 .06",
    "cylinder": ".08 .05",
    "ellipsoid": ".1 .08 .06",
}
TUMBLING = """<mujoco>
  <option cone="{cone}" integrator="{integrator}" impratio="{impratio}" timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction=".7 .01 .002"/>
    <body name="base" pos="0 0 .12" euler="10 20 5">
      <freejoint/>
      <geom name="foot" type="{shape}" size="{size}" condim="{condim}" mass="1" friction=".5 .02 .003"
        solimp=".8 .95 .02 .4 3" margin="0.01" gap="0.003"/>
      <body name="arm" pos="0 0 .1">
        <joint name="elbow" axis="0 1 0" limited="true" range="-20 30" damping=".1" frictionloss=".05"/>
        <geom name="hand" type="sphere" size=".03" pos=".1 0 0" mass=".2"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="elbow" gear="2"/></actuator>
</mujoco>"""
TIED = """<mujoco>
  <option timestep="0.002" integrator="{integrator}" cone="elliptic"><flag contact="disable"/></option>
  <worldbody>
    <body name="a" pos="0 0 1" gravcomp=".4"><joint name="a" axis="0 1 0"/><geom size=".05" pos=".2 0 0" mass="1"/>
      <body name="b" pos=".4 0 0"><joint name="b" axis="0 1 0"/><geom size=".05" pos=".2 0 0" mass="1"/></body></body>
    <body name="c" pos="0 .5 1"><joint name="c" axis="1 0 0"/><joint name="d" type="slide" axis="0 0 1"/>
      <geom size=".05" pos="0 .2 .1" mass="1"/></body>
    <body name="e" pos="1 0 1"><freejoint/><geom type="box" size=".1 .05 .02" mass="1"/></body>
    <body name="f" pos="1.3 0 1"><joint name="f" type="ball" limited="true" range="0 20"/>
      <geom size=".05" pos=".1 0 -.1" mass="1"/></body>
  </worldbody>
  <tendon>
    <fixed name="t" limited="true" range="-.1 .05" stiffness="20" damping=".5" frictionloss=".3" springlength="0 .01">
      <joint joint="a" coef=".1"/><joint joint="c" coef="-.2"/></fixed>
    <fixed name="u"><joint joint="d" coef="1"/></fixed>
  </tendon>
  <equality>
    <connect body1="b" anchor=".4 0 0" solref=".05 1"/>
    <weld body1="e" body2="f" torquescale=".7"/>
    <joint joint1="d" joint2="c" polycoef="0 .1 .2 0 0"/>
    <tendon tendon1="u" tendon2="t" polycoef="0 .5 0 0 0" active="{tendon}"/>
  </equality>
  <actuator><position name="pull" tendon="t" kp="30" kv="2"/><motor name="push" joint="c"/></actuator>
</mujoco>"""


def tumbling(shape: str = "box", cone: str = "elliptic", condim: int = 3, integrator: str = "Euler") -> str:
    """A body with an arm that falls on a floor."""
    impratio = 3 if cone == "elliptic" else 1
    numbers = {"cone": cone, "condim": condim, "integrator": integrator, "impratio": impratio}
    return TUMBLING.format(shape=shape, size=SIZES[shape], **numbers)


def tied(integrator: str = "implicitfast", tendon: str = "true") -> str:
    """Closed chains, couplings, tendons and a limited ball joint, without contact."""
    return TIED.format(integrator=integrator, tendon=tendon)


def simulator_of(text: str, *, exact: bool = False) -> tuple[Model, Simulator]:
    """Model and simulator with the file's constraint model; `exact` solves to rounding instead of the file's rules."""
    model = loads(text)
    solver = NewtonOptions(100, 0.0, 50, 1e-8) if exact else None
    return model, Simulator.of(model, contact=MujocoContact.of(model, capacity=8, solver=solver))


def mujoco_of(text: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The same scene in MuJoCo, moving."""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.qvel[:] = np.random.default_rng(1).uniform(-1, 1, m.nv)
    return m, d


def dense_jacobian(m: mujoco.MjModel, d: mujoco.MjData) -> np.ndarray:
    """MuJoCo's constraint Jacobian as a full matrix."""
    if not mujoco.mj_isSparse(m):
        return d.efc_J.reshape(-1, m.nv)[: d.nefc].copy()
    J = np.zeros((d.nefc, m.nv))
    for i in range(d.nefc):
        own = slice(d.efc_J_rowadr[i], d.efc_J_rowadr[i] + d.efc_J_rownnz[i])
        J[i, d.efc_J_colind[own]] = d.efc_J[own]
    return J


def state_arrays(d: mujoco.MjData) -> tuple:
    """Configuration and velocity as JAX arrays."""
    return jnp.asarray(d.qpos), jnp.asarray(d.qvel)
