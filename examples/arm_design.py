"""Length of an arm and stiffness of its elbow spring, optimized together with its motions to three targets.

Writes arm_design.html, a picture of the three motions with the designed arm.
"""

import jax
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go

import truesim as ts
from truesim.control import Command, Cost, FramePosition, JointVelocity, PlanOptions
from truesim.control.quantities import frame_pose
from truesim.files.robots import loads

jax.config.update("jax_enable_x64", True)
XML = """<mujoco><compiler angle="radian"/><option timestep="0.02"><flag contact="disable"/></option><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" damping=".2"/>
    <inertial pos="0 0 -.2" mass="1" diaginertia=".02 .02 .002"/>
    <body name="fore" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".2" stiffness="1" springref="-1.5"/>
      <inertial pos="0 0 -.15" mass=".7" diaginertia=".01 .01 .001"/><site name="hand" pos="0 0 -.3"/></body></body>
</worldbody><actuator><motor name="a" joint="shoulder"/><motor name="b" joint="elbow"/></actuator></mujoco>"""
TARGETS = ((0.5, 0.0, -0.1), (0.6, 0.0, -0.4), (0.3, 0.0, 0.1))
DESIGN = {"bodies/fore.position[2]": (-0.7, -0.2), "joints/elbow.stiffness": (0.0, 30.0)}

simulator = ts.Simulator.of(loads(XML))
tasks = [
    ts.Task(
        simulator,
        50,
        costs={
            "effort": Cost(Command(), 0.01),
            "reach": Cost(FramePosition("hand", target), 500.0, "final"),
            "hold": Cost(JointVelocity(), 5.0, "final"),
        },
        design=DESIGN,
    )
    for target in TARGETS
]
fixed = ts.plan([task.replace(design={}) for task in tasks])
plans = ts.plan(tasks, shared_design=True, options=PlanOptions(iterations=500))
before, after = (sum(plan.cost for plan in these) for these in (fixed, plans))
print(f"cost of the three motions: {before:.4f} with the arm as it is, {after:.4f} with the designed one")
for path, value in plans[0].design.items():
    print(f"{path} = {value:.4f}, was {float(simulator.read(path)):.4f}")
print(plans[0].message)

model = simulator.replace(plans[0].design).model
figure = go.Figure()
for target, plan in zip(TARGETS, plans, strict=True):
    hands = np.array([frame_pose(model, "hand", jnp.asarray(q)).translation for q in plan.q])
    figure.add_scatter(x=hands[:, 0], y=hands[:, 2], name=f"hand to {target}")
    figure.add_scatter(x=[target[0]], y=[target[2]], mode="markers", showlegend=False)
figure.update_layout(xaxis_title="x [m]", yaxis_title="z [m]", title="Three motions of the designed arm")
figure.write_html("arm_design.html")
