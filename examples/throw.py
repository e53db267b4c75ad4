"""A throw: torques and speeds within limits, free release time; checked in MuJoCo. Writes the picture throw.html."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import plotly.graph_objects as go

import truesim as ts
from truesim.control import Command, Cost, CustomQuantity, JointVelocity, Knot, Limit, PlanOptions, Posture
from truesim.control.quantities import frame_pose, frame_velocity
from truesim.files.robots import loads

jax.config.update("jax_enable_x64", True)
XML = """<mujoco><compiler angle="radian"/><option timestep="0.01"><flag contact="disable"/></option>
<default><motor ctrllimited="true"/></default><worldbody>
  <body name="turret" pos="0 0 .6"><joint name="yaw" axis="0 0 1" damping=".1"/>
    <inertial pos="0 0 0" mass="2" diaginertia=".02 .02 .02"/>
    <body name="upper"><joint name="shoulder" axis="0 1 0" damping=".1"/>
      <inertial pos="0 0 .2" mass="1.5" diaginertia=".02 .02 .002"/>
      <body name="fore" pos="0 0 .4"><joint name="elbow" axis="0 1 0" damping=".1"/>
        <inertial pos="0 0 .15" mass=".8" diaginertia=".008 .008 .001"/><site name="hand" pos="0 0 .35"/>
</body></body></body></worldbody>
<actuator><motor name="a" joint="yaw" ctrlrange="-20 20"/><motor name="b" joint="shoulder" ctrlrange="-40 40"/>
  <motor name="c" joint="elbow" ctrlrange="-25 25"/></actuator></mujoco>"""
TARGET = np.array([2.0, 0.5, 0.0])
SPEED = 8.0  # rad/s


def landing(p, v):
    """Point at which a ball that leaves `p` with `v` reaches the height of the target."""
    time = (v[2] + jnp.sqrt(jnp.maximum(v[2] ** 2 + 2 * 9.81 * (p[2] - TARGET[2]), 1e-9))) / 9.81
    return p[:2] + v[:2] * time


def miss(knot: Knot):
    """Distance of the landing from the target [m]."""
    model, state = knot.simulator.model, knot.state
    hand = frame_pose(model, "hand", state.q).translation
    return landing(hand, frame_velocity(model, "hand", state.q, state.v)) - TARGET[:2]


simulator = ts.Simulator.of(loads(XML))
back = np.array([0.0, -1.2, -1.0])
task = ts.Task(
    simulator,
    60,
    costs={"effort": Cost(Command(), 1e-3), "posture": Cost(Posture(back), 1e-2)},
    limits={
        "miss": Limit(CustomQuantity(miss), 0.0, 0.0, "final"),
        "speed": Limit(JointVelocity(), -SPEED, SPEED, "always"),
    },
    start=simulator.initial_state(q=back),
    design={"timestep": (0.005, 0.02)},  # the time of the release is free
)
plan = ts.plan(task, options=PlanOptions(iterations=600, tolerance=1e-6))
print(f"{plan.message} Release after {plan.time[-1]:.3f} s, largest speed {np.abs(plan.v).max():.2f} rad/s")

m = mujoco.MjModel.from_xml_string(XML)
m.opt.timestep = plan.design["timestep"]
d = mujoco.MjData(m)
d.qpos[:] = back
for command in plan.commands:
    d.ctrl[:] = command
    mujoco.mj_step(m, d)
mujoco.mj_forward(m, d)
spatial = np.zeros(6)
mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_SITE, 0, spatial, 0)
hit = np.asarray(landing(jnp.asarray(d.site_xpos[0]), jnp.asarray(spatial[3:])))
print(f"In MuJoCo the ball lands {1e3 * np.linalg.norm(hit - TARGET[:2]):.2f} mm from the target")

hands = np.array([frame_pose(plan.model, "hand", jnp.asarray(q)).translation for q in plan.q])
t = np.linspace(0, 1, 60)[:, None]
flight = hands[-1] + spatial[3:] * t + np.array([0, 0, -9.81 / 2]) * t**2
flight = flight[flight[:, 2] > 0]
lines = {"hand": hands.T, "flight": flight.T, "target": TARGET[:, None]}
figure = go.Figure([go.Scatter3d(x=x, y=y, z=z, name=name) for name, (x, y, z) in lines.items()])
figure.write_html("throw.html")
