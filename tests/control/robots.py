"""Small robots and tasks for the tests of control."""

import numpy as np

from truesim.control import Command, Cost, JointVelocity, Posture, Task
from truesim.files.robots import loads
from truesim.physics.simulation import Simulator

CART_POLE = """
<mujoco><compiler angle="radian"/><option timestep="0.02"><flag contact="disable"/></option><worldbody>
  <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
    <body name="pole"><joint name="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -.5" mass=".1" diaginertia="1e-4 1e-4 1e-4"/><site name="tip" pos="0 0 -.5"/></body></body>
</worldbody><actuator><motor name="push" joint="slide" ctrlrange="-10 10" ctrllimited="true"/></actuator></mujoco>"""

MASSES = """
<mujoco><option timestep="0.05" gravity="0 0 0"><flag contact="disable"/></option><worldbody>
  <body name="a"><joint name="x" type="slide" axis="1 0 0" stiffness="3" damping=".2"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/>
    <body name="b"><joint name="y" type="slide" axis="1 0 0" stiffness="1" damping=".1"/>
      <inertial pos="0 0 0" mass=".5" diaginertia=".1 .1 .1"/></body></body></worldbody>
  <actuator><motor name="first" joint="x"/><motor name="second" joint="y" gear="2"/></actuator></mujoco>"""
"""Two masses on springs: a linear system without bounds."""


PUSHER = """<mujoco><option timestep="0.02"/><worldbody>
  <body name="pusher"><joint name="push" type="slide" axis="1 0 0"/>
    <geom type="sphere" size=".1" mass="1" friction="0"/></body>
  <body name="puck" pos=".5 0 0"><joint name="puck" type="slide" axis="1 0 0" damping="1"/>
    <geom type="sphere" size=".1" mass=".5" friction="0"/></body></worldbody>
  <actuator><motor name="motor" joint="push" ctrlrange="-20 20" ctrllimited="true"/></actuator></mujoco>"""
"""A pusher and a puck, 0.3 m apart."""


def cart_pole(steps: int = 80, **changes) -> Task:
    """Swing-up of a cart-pole in a short time."""
    up = [0.0, np.pi]
    costs = {
        "effort": Cost(Command(), 1e-2),
        "posture": Cost(Posture(up), 0.1),
        "end": Cost(Posture(up), 100.0, "final"),
        "rest": Cost(JointVelocity(), 10.0, "final"),
    }
    return Task(**{"simulator": Simulator.of(loads(CART_POLE)), "steps": steps, "costs": costs} | changes)


def masses(steps: int = 30) -> Task:
    """Regulation of two masses: a linear-quadratic problem."""
    simulator = Simulator.of(loads(MASSES))
    costs = {
        "effort": Cost(Command(), 0.1),
        "posture": Cost(Posture([0.0, 0.0]), [1.0, 2.0], "always"),
        "velocity": Cost(JointVelocity(), 0.5, "always"),
    }
    start = simulator.initial_state(q=np.array([1.0, -0.5]), v=np.array([0.2, 0.3]))
    return Task(simulator, steps, costs, start=start)


def pendulum(actuator: str) -> Task:
    """A heavy pendulum is lifted by a weak drive within a second; the cost does not count commands."""
    model = loads(f"""<mujoco><compiler angle="radian"/><option timestep="0.02"><flag contact="disable"/></option>
      <worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping=".05"/>
        <inertial pos="0 0 -.5" mass="1" diaginertia=".02 .02 .02"/></body></worldbody>
      <actuator>{actuator}</actuator></mujoco>""")
    costs = {
        "posture": Cost(Posture([1.2]), 0.1),
        "slow": Cost(JointVelocity(), 0.01),
        "end": Cost(Posture([1.2]), 100.0, "final"),
        "rest": Cost(JointVelocity(), 10.0, "final"),
    }
    return Task(Simulator.of(model), 50, costs)
