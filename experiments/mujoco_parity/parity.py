"""Difference between truesim's motion and MuJoCo's for one scene, or the reason why there is no comparison."""

import collections
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import jax
import mujoco
import numpy as np
from mujoco import rollout

from truesim.core.errors import TruesimError
from truesim.files.robots import load
from truesim.physics.contact import MujocoContact
from truesim.physics.simulation import Simulator
from truesim.physics.simulation.findings import left_out
from truesim.physics.simulation.table_step import engine_of

STEPS, DECAY, AMPLITUDE = 200, 0.98, 0.06
"""Steps of a motion, and the random walk of the controls about those of the first keyframe."""


@dataclasses.dataclass(frozen=True)
class Parity:
    """Comparison of one scene."""

    scene: str
    median: float | None = None
    """Median over instances of the largest difference in qpos after the motion [rad, m]."""
    most: float | None = None
    """The 90 % quantile."""
    own: float | None = None
    """The 90 % quantile of MuJoCo against itself, from configurations that differ by 2e-16."""
    iterations: bool | None = None
    """True if the solver made as many iterations as MuJoCo's in every step of the first instance."""
    reason: str = ""
    """Reason why there is no comparison, or what is left out."""


def compare(scene: Path, instances: int, name: str, seed: int = 0) -> Parity:
    """Compare motions from the first keyframe under random controls."""
    try:
        model = load(scene)
    except TruesimError as error:
        return Parity(name, reason=str(error).replace(str(scene), scene.name).replace("\n", " "))
    missing = _condensed(left_out(model, contact=True))
    if not model.nq:
        return Parity(name, reason="nothing moves")
    simulator = Simulator.of(model, contact=MujocoContact.of(model))
    engine = engine_of(simulator)
    if isinstance(engine, str):
        return Parity(name, reason="; ".join([*missing, engine]))
    m = mujoco.MjModel.from_xml_path(str(scene))
    d = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, d, 0)
    controls = random_walk(d.ctrl, instances, seed)
    q, v = np.tile(d.qpos, (instances, 1)), np.tile(d.qvel, (instances, 1))
    assert model.source is not None, "it was loaded from a file"
    ours = engine.rollout(q, v, np.zeros_like(v), controls[..., list(model.source.rows.actuators)])
    theirs = _their_motion(m, d, controls)
    difference = np.abs(ours.qpos[:, -1] - theirs).max(axis=1)
    own = np.abs(_their_motion(m, d, controls, np.random.default_rng(seed)) - theirs).max(axis=1)
    same = bool(np.array_equal(ours.iterations[0], _their_iterations(m, controls[0])))
    most, itself = (float(np.quantile(x, 0.9)) for x in (difference, own))
    return Parity(name, float(np.median(difference)), most, itself, same, "; ".join(missing))


def _condensed(missing: Sequence[str]) -> list[str]:
    """Parts that are left out, each reason once, with the number of things that it concerns."""
    counts = collections.Counter(re.sub(r"^(\w+) '[^']*': ", r"\1: ", text) for text in missing)
    return [text if count == 1 else f"{text} ({count})" for text, count in counts.items()]


def random_walk(held: np.ndarray, instances: int, seed: int) -> np.ndarray:
    """Controls (instances, steps, nu) that walk at random about those of a keyframe."""
    random, offset, rows = np.random.default_rng(seed), np.zeros((instances, len(held))), []
    for _ in range(STEPS):
        offset = DECAY * offset + AMPLITUDE * (2 * random.random(offset.shape) - 1)
        rows.append(held + offset)
    return np.stack(rows, axis=1)


def _their_motion(
    m: mujoco.MjModel, d: mujoco.MjData, controls: np.ndarray, rounding: np.random.Generator | None = None
) -> np.ndarray:
    """Configurations of MuJoCo after the motion; `rounding` moves each coordinate of the start by 2e-16."""
    start = np.zeros(mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(m, d, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    starts = np.tile(start, (len(controls), 1))
    if rounding is not None:
        signs = rounding.choice([-1.0, 1.0], (len(starts), m.nq))
        starts[:, 1 : 1 + m.nq] += np.finfo(float).eps * signs
    states, _ = rollout.rollout(m, mujoco.MjData(m), starts, controls, initial_warmstart=np.zeros((len(starts), m.nv)))
    return states[:, -1, 1 : 1 + m.nq]


def _their_iterations(m: mujoco.MjModel, controls: np.ndarray) -> np.ndarray:
    """Newton iterations of MuJoCo in each step, summed over islands."""
    d = mujoco.MjData(m)
    if m.nkey:
        mujoco.mj_resetDataKeyframe(m, d, 0)
    counts = []
    for row in controls:
        d.ctrl[:] = row
        mujoco.mj_step(m, d)
        counts.append(d.solver_niter[: max(1, d.nisland)].sum() if d.nefc else 0)
    return np.array(counts)


def with_doubles() -> None:
    """Set JAX to 64-bit numbers."""
    jax.config.update("jax_enable_x64", True)
