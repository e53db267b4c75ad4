"""Damping of a double pendulum, learned by two networks of one weight each from joint angles.

`python -m experiments.neural_damping`. The true damping is 0.2 and 0.1 N m s/rad, over 5 s in steps of 1/500 s (Heiden
et al., NeuralSim, joint-damping example); the model has none. The paper uses basin hopping for a minute from zero;
Levenberg-Marquardt on short segments converges from there.
"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.recorded import show
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.fit import Fit
from truesim.identification.pipeline import identify
from truesim.physics.blueprint import MLP, Blueprint, Rule
from truesim.physics.simulation import Simulator, State, record

ROBOT = """
<mujoco model="double_pendulum"><option timestep="0.002" integrator="RK4"/><worldbody>
  <body name="upper" pos="0 0 2"><joint name="shoulder" axis="0 1 0" damping="{shoulder}"/>
    <inertial pos="0 0 -.5" mass="1" diaginertia=".083 .083 .001"/>
    <body name="lower" pos="0 0 -1"><joint name="elbow" axis="0 1 0" damping="{elbow}"/>
      <inertial pos="0 0 -.5" mass="1" diaginertia=".083 .083 .001"/></body></body></worldbody></mujoco>"""
TRUTH = {"shoulder": 0.2, "elbow": 0.1}
"""Damping [N m s/rad]."""
SECONDS = 5.0
NETWORKS = Blueprint(
    (Rule("joint.damping_torque", ("joint.velocity",), MLP((), bias=False), sharing="each", name="damping"),)
)
"""A linear map of each joint's velocity, without an offset."""


def recorded(noise: float = 0.0) -> Log:
    """Angles of the real pendulum, with noise of the encoders [rad]."""
    simulator = Simulator.of(loads(ROBOT.format(**TRUTH)))
    start = State(jnp.array([1.2, -0.5]), jnp.zeros(2), jnp.zeros(()))
    motion = record(simulator, start, jnp.zeros((round(SECONDS / 0.002), 0)))
    rng = np.random.default_rng(0)
    angles = np.asarray(motion.q) + rng.normal(0.0, noise, motion.q.shape)
    return Log(np.asarray(motion.time), {f"qpos/{name}": angles[:, k] for k, name in enumerate(TRUTH)}, "pendulum")


def fit(log: Log) -> Fit:
    """Fit of the networks' weights."""
    return identify(loads(ROBOT.format(shoulder=0, elbow=0)), [log], [], blueprint=NETWORKS)


def weights(found: Fit) -> np.ndarray:
    """Learned weight of each joint [N m s/rad]."""
    return found.solution.theta


def main() -> None:
    """Learn from exact and from noisy angles, and print."""
    jax.config.update("jax_enable_x64", True)
    rows = []
    for noise in (0.0, 1e-3):
        found = fit(recorded(noise))
        std = np.sqrt(np.diag(found.uncertainty.values))
        for k, (name, damping) in enumerate(TRUTH.items()):
            rows.append((noise, name, -damping, weights(found)[k], weights(found)[k] + damping, std[k]))
        print(f"noise {noise:g} rad: {found.status}, {found.solution.solve_seconds:.1f} s")
    show("Learned damping [N m s/rad]", ("noise [rad]", "joint", "truth", "weight", "error", "std"), rows)


if __name__ == "__main__":
    main()
