"""The stroke that sends a ball to a pocket by way of others: Gauss-Newton from 64 random strokes at once.

Writes billiards.html, a picture of the paths of all balls.
"""

import jax
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go

import truesim as ts
from truesim.files.robots import loads
from truesim.physics.simulation.kernels import compile  # noqa: A004

jax.config.update("jax_enable_x64", True)
PLACES = ((0.0, 0.0), (1.0, 0.05), (1.5, 0.25), (1.6, -0.3))
LAST, TARGET = 2, np.array([2.4, 1.0])
RADIUS, STEPS, STARTS, ROUNDS = 0.1, 120, 64, 12
ball = """<body name="ball{k}" pos="{x} {y} {r}"><joint name="x{k}" type="slide" axis="1 0 0" damping=".02"/>
  <joint name="y{k}" type="slide" axis="0 1 0" damping=".02"/>
  <geom name="ball{k}" type="sphere" size="{r}" mass=".2" friction="0"/>
  </body>"""
bodies = "".join(ball.format(k=k, x=x, y=y, r=RADIUS) for k, (x, y) in enumerate(PLACES))
model = loads(f'<mujoco><option timestep="0.02" gravity="0 0 0"/><worldbody>{bodies}</worldbody></mujoco>')
simulator = ts.Simulator.of(model, contact=ts.RigidContact.of(model, bounces=True))
simulator = simulator.replace({"geoms/*.restitution": 0.95})


def path(velocity):
    """Places of all balls over time, after the cue ball got this velocity."""
    start = simulator.initial_state(v=jnp.zeros(model.nv).at[:2].set(velocity))
    _, q = ts.rollout(simulator, start, jnp.zeros((STEPS, 0)), keep=lambda state, info: state.q)
    return q.reshape(STEPS, -1, 2) + jnp.asarray(PLACES)[None]


def miss(velocity):
    """Distance of the last place of a ball from the target, and its derivatives."""
    value = path(velocity)[-1, LAST] - TARGET
    return value, value


solve = compile(jax.jacfwd(miss, has_aux=True), np.zeros(2))
rng = np.random.default_rng(0)
angle, speed = rng.uniform(-0.15, 0.15, STARTS), rng.uniform(1.0, 4.0, STARTS)
strokes = np.stack([speed * np.cos(angle), speed * np.sin(angle)], axis=1)
J, r = solve(strokes)
damping = np.full(STARTS, 1e-3)
for _ in range(ROUNDS):
    H = np.einsum("bij,bik->bjk", J, J) + damping[:, None, None] * np.eye(2)
    step = np.linalg.solve(H, -np.einsum("bij,bi->bj", J, r)[..., None])[..., 0]
    trial = strokes + np.clip(step, -0.5, 0.5)
    new = solve(trial)
    better = np.linalg.norm(new[1], axis=1) < np.linalg.norm(r, axis=1)
    strokes[better], J[better], r[better] = trial[better], new[0][better], new[1][better]
    damping = np.where(better, damping / 5, damping * 10)
lowest = np.linalg.norm(r, axis=1)
winner = strokes[np.argmin(lowest)]
print(f"stroke {winner.round(4)} m/s: the ball ends {1e3 * lowest.min():.2f} mm from the target")
print(f"{np.sum(lowest < 0.01)} of {STARTS} starts end within 1 cm")

paths = np.array(path(winner)).transpose(1, 2, 0)
figure = go.Figure([go.Scatter(x=x, y=y, name=f"ball {k}") for k, (x, y) in enumerate(paths)])
figure.add_scatter(x=TARGET[:1], y=TARGET[1:], mode="markers", name="target")
figure.update_yaxes(scaleanchor="x").write_html("billiards.html")
