"""Pendulums of point masses on spherical joints: recordings by MuJoCo, and trajectories by truesim.

Unit heading vectors of the links are compared at 25 Hz; only headings are noisy.
The real pendulum is integrated by MuJoCo at 1 kHz, ours at 100 Hz, both by Runge-Kutta.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.core.typing import Array, Float
from truesim.files.robots import loads
from truesim.physics.dynamics.kinematics import link_poses
from truesim.physics.simulation import Simulator, State

RATE, STEPS = 25, 10
"""Sampling rate [Hz], and number of samples of a recording after its start."""
SUBSTEPS, FINE = 4, 40
"""Steps of truesim and of the real pendulum per sample."""
NOISE = 2e-3
"""Standard deviation of the noise of headings [rad]: one millimeter at half a meter."""
BOB = 4e-4
"""Moment of inertia of each mass about its own center [kg m^2]: a ball of 1 kg and 3 cm radius."""


def text(lengths: Sequence[float], coms: Sequence[float] | None = None) -> str:
    """The pendulum's MJCF: masses of 1 kg at the ends of links of these lengths, or at other distances [m]."""
    body, close = "", ""
    for k, length in enumerate(lengths):
        place = 0.0 if k == 0 else -lengths[k - 1]
        com = -(length if coms is None else coms[k])
        body += f'<body name="link{k}" pos="0 0 {place}"><joint name="joint{k}" type="ball"/>'
        body += f'<inertial pos="0 0 {com}" mass="1" diaginertia="{BOB} {BOB} {BOB}"/>'
        close += "</body>"
    option = f'<option timestep="{1 / (RATE * FINE)}" integrator="RK4"><flag contact="disable"/></option>'
    return f'<mujoco><compiler angle="radian"/>{option}<worldbody>{body}{close}</worldbody></mujoco>'


@dataclasses.dataclass(frozen=True)
class Recording:
    """Initial configuration of a pendulum released from rest, and measured headings."""

    q: Float[np.ndarray, " nq"]
    """Quaternions at the start, known exactly."""
    headings: Float[np.ndarray, "steps links 3"]
    """Measured unit vectors along the links."""


def recorded(mjcf: str, seed: int, steps: int = STEPS) -> Recording:
    """Release the real pendulum from a random tilt and record it.

    Args:
        mjcf: The real pendulum.
        seed: Seed of tilt and noise.
        steps: Number of samples.
    """
    rng = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    axes, angles = _unit(rng.normal(size=(model.njnt, 3)) * [1, 1, 0.2]), rng.uniform(0.6, 1.4, model.njnt)
    for k in range(model.njnt):
        mujoco.mju_axisAngle2Quat(data.qpos[4 * k : 4 * k + 4], axes[k], angles[k])
    start, seen = data.qpos.copy(), np.empty((steps, model.nbody - 1, 3))
    for step in range(steps):
        for _ in range(FINE):
            mujoco.mj_step(model, data)
        mujoco.mj_kinematics(model, data)
        seen[step] = -data.xmat[1:].reshape(-1, 3, 3)[:, :, 2]
    return Recording(start, _unit(seen + NOISE * rng.normal(size=seen.shape)))


def trajectory(recording: Recording, geometry: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], Array]:
    """Headings as a function of parameters, of the shape of the recording's.

    Args:
        recording: Recording with the initial configuration.
        geometry: From parameters to the lengths of the links and the distances of their centers of mass [m].
    """
    steps, links, _ = recording.headings.shape
    simulator = Simulator.of(loads(text([1.0] * links)), timestep=1 / (RATE * SUBSTEPS))

    def predict(theta: Any) -> Array:
        lengths, coms = geometry(theta)
        zero = jnp.zeros((links, 2))
        places = jnp.concatenate([zero, -jnp.concatenate([jnp.zeros(1), lengths[:-1]])[:, None]], axis=1)
        centers = jnp.concatenate([zero, -coms[:, None]], axis=1)
        own = eqx.tree_at(lambda s: (s.model.bodies.position, s.model.bodies.com), simulator, (places, centers))

        def advance(state: State, _: None) -> tuple[State, Array]:
            state, _ = own.step(state, jnp.zeros(0))
            return state, -jnp.stack([X.rotation[:, 2] for X in link_poses(own.model, state.q)])

        start = own.initial_state(jnp.asarray(recording.q))
        _, headings = jax.lax.scan(advance, start, length=SUBSTEPS * steps)
        return headings[SUBSTEPS - 1 :: SUBSTEPS]

    return predict


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
