"""Robots of MuJoCo Menagerie with all contacts: MuJoCo's own motion and its derivatives, by the routines and by MuJoCo.

"Stand": at rest. "Move": position targets walk at random by some 0.3 rad around the first keyframe; torque motors are
made position servos. The files are read from `$TRUESIM_DATA/menagerie`, or from the data beside the repository.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

from benchmarks.timing import Measured
from truesim.core.errors import TruesimError
from truesim.files.robots import load
from truesim.physics.contact import MujocoContact
from truesim.physics.routines.engine import Engine
from truesim.physics.routines.from_mujoco import from_mujoco
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.step_routine import StepRoutine

BATCH, STEPS, SETTLING = 1024, 60, 300
"""Instances, steps of a measurement, and steps before it in which the robot comes to rest."""
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
CUBE, FINGERTIPS = 0.04, 0.1034
"""Edge of the cube, and distance of the Panda's fingertips from its hand [m]."""
DERIVED = ("go2", "anymal", "h1", "g1", "shadow", "panda")
"""Robots of which derivatives are measured, and the number of their steps and instances."""
GRADIENT_STEPS, JACOBIANS, DIFFERENCES = 20, 256, 20
"""Steps of a gradient, instances of step Jacobians, and calls of MuJoCo's differences."""


@dataclass(frozen=True)
class MenagerieRobot:
    """A scene of Menagerie, and gains that make position servos of torque motors (0: the file's own servos)."""

    scene: str
    kp: float = 0.0
    kd: float = 0.0
    holds_cube: bool = False
    """True for the Panda with a cube between its fingers."""

    @property
    def path(self) -> Path:
        """The file."""
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        path = Path(os.environ.get("TRUESIM_DATA", beside)) / "menagerie" / self.scene
        if not path.exists():
            raise TruesimError(f"{path} does not exist; set TRUESIM_DATA to the data folder")
        return path

    def compile(self) -> mujoco.MjModel:
        """The compiled model."""
        spec = mujoco.MjSpec.from_file(str(self.path))
        if self.holds_cube:
            _add_cube(spec)
        for a in spec.actuators if self.kp else ():
            a.gainprm[0], a.biastype, a.ctrllimited = self.kp, mujoco.mjtBias.mjBIAS_AFFINE, 0
            a.biasprm[:3] = [0, -self.kp, -self.kd]
        return spec.compile()


def _add_cube(spec: mujoco.MjSpec) -> None:
    """Put a cube of 4 cm between the fingers of a Panda, which close on it in the first keyframe."""
    m = spec.compile()
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    mujoco.mj_kinematics(m, d)
    hand, at = m.body("hand").id, m.jnt_qposadr[m.body("left_finger").jntadr[0]]
    center = d.xpos[hand] + FINGERTIPS * d.xmat[hand].reshape(3, 3)[:, 2]
    qpos, ctrl = np.concatenate([d.qpos, center, d.xquat[hand]]), np.array(d.ctrl)
    qpos[at : at + 2], ctrl[-1] = CUBE / 2, 0.0
    for key in list(spec.keys):
        spec.delete(key)
    cube = spec.worldbody.add_body(name="cube", pos=center, quat=d.xquat[hand])
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[CUBE / 2] * 3, mass=0.1)
    spec.add_key(name="holds", qpos=qpos, ctrl=ctrl)


ROBOTS = {
    "go2": MenagerieRobot("unitree_go2/scene.xml", 40, 1),
    "anymal": MenagerieRobot("anybotics_anymal_c/scene.xml"),
    "go1": MenagerieRobot("unitree_go1/scene.xml"),
    "barkour": MenagerieRobot("google_barkour_vb/scene.xml"),
    "h1": MenagerieRobot("unitree_h1/scene.xml", 200, 5),
    "t1": MenagerieRobot("booster_t1/scene.xml"),
    "g1": MenagerieRobot("unitree_g1/scene.xml"),
    "shadow": MenagerieRobot("shadow_hand/scene_right.xml"),
    "allegro": MenagerieRobot("wonik_allegro/scene_right.xml"),
    "panda": MenagerieRobot("franka_emika_panda/scene.xml"),
    "panda-cube": MenagerieRobot("franka_emika_panda/scene.xml", holds_cube=True),
    "kinova": MenagerieRobot("kinova_gen3/scene.xml"),
}


class Motion:
    """States at rest and random targets of a batch."""

    def __init__(self, robot: MenagerieRobot, amplitude: float, batch: int = BATCH, steps: int = STEPS):
        self.model = m = robot.compile()
        self.data = d = mujoco.MjData(m)
        if m.nkey:
            mujoco.mj_resetDataKeyframe(m, d, 0)
        if robot.kp:
            d.ctrl[:] = d.qpos[7:]
        for _ in range(SETTLING):
            mujoco.mj_step(m, d)
        self.start = tuple(x.copy() for x in (d.qpos, d.qvel, d.qacc_warmstart))
        self.state = np.zeros(mujoco.mj_stateSize(m, FULL))
        mujoco.mj_getState(m, d, self.state, FULL)
        rng = np.random.default_rng(0)
        self.ctrl, walk = np.zeros((batch, steps, m.nu)), np.zeros((batch, m.nu))
        for t in range(steps):
            walk = 0.98 * walk + 0.2 * amplitude * (2 * rng.random((batch, m.nu)) - 1)
            self.ctrl[:, t] = d.ctrl + walk

    @cached_property
    def engine(self) -> Engine:
        """The table-driven step."""
        return Engine(from_mujoco(self.model), self.model)

    def ours(self) -> np.ndarray:
        """Positions by the table-driven step, shape (batch, steps, nq)."""
        batch = len(self.ctrl)
        return self.engine.rollout(*(np.tile(x, (batch, 1)) for x in self.start), self.ctrl).qpos

    def mujocos(self) -> np.ndarray:
        """Positions by MuJoCo."""
        states, _ = mujoco_rollout.rollout(
            self.model, self.data, self.state, self.ctrl, initial_warmstart=self.start[2]
        )
        return states[..., 1 : 1 + self.model.nq]


def _best_cpu_seconds(f: Callable[[], object], patience: float) -> float:
    """Shortest CPU time of a call [s], after one to warm up."""
    f()
    best, begin = np.inf, time.perf_counter()
    while best == np.inf or time.perf_counter() - begin < patience:
        start = time.process_time()
        f()
        best = min(best, time.process_time() - start)
    return float(best)


def measure_rollout(robot: str, is_gradient: bool, patience: float) -> Measured:
    """CPU time of a step of a rollout inside `jax.jit`, with its gradient by all controls or without it."""
    jax.config.update("jax_enable_x64", True)
    motion = Motion(ROBOTS[robot], 0.3, BATCH, GRADIENT_STEPS)
    routine, states = _routine_at_rest(robot, motion, BATCH)
    commands = jnp.asarray(motion.ctrl)

    def heights(commands: jax.Array) -> jax.Array:
        return jnp.sum(jax.vmap(routine.rollout)(states, commands)[1].q ** 2)

    run = jax.jit(jax.grad(heights) if is_gradient else heights)
    seconds = _best_cpu_seconds(lambda: jax.block_until_ready(run(commands)), patience)
    return Measured(seconds / (BATCH * GRADIENT_STEPS))


def measure_jacobian(robot: str, is_ours: bool, batch: int, patience: float) -> Measured:
    """CPU time of the Jacobians of one step by state and control, exact or by MuJoCo's centered differences."""
    jax.config.update("jax_enable_x64", True)
    motion = Motion(ROBOTS[robot], 0.0, batch, 1)
    m, d = motion.model, motion.data
    if is_ours:
        routine, states = _routine_at_rest(robot, motion, batch)
        commands = jnp.asarray(motion.ctrl[:, 0])
        run = jax.jit(jax.vmap(lambda state, command: routine.linearize(state, command)[1:]))
        return Measured(_best_cpu_seconds(lambda: jax.block_until_ready(run(states, commands)), patience) / batch)
    A, B = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))

    def differences() -> None:
        for _ in range(DIFFERENCES):
            mujoco.mjd_transitionFD(m, d, 1e-6, True, A, B, None, None)

    return Measured(_best_cpu_seconds(differences, patience) / DIFFERENCES)


def _routine_at_rest(robot: str, motion: Motion, batch: int) -> tuple[StepRoutine, State]:
    """Routines of the robot's file, and equal states of a batch at rest."""
    model = load(ROBOTS[robot].path)
    routine = StepRoutine.of(Simulator.of(model, contact=MujocoContact.of(model)))
    q, v, acceleration = (jnp.tile(x, (batch, 1)) for x in motion.start)
    return routine, State(q, v, jnp.zeros(batch), acceleration=acceleration)


def measure(robot: str, amplitude: float, is_ours: bool, patience: float) -> Measured:
    """CPU time of a step of one instance, one thread."""
    motion = Motion(ROBOTS[robot], amplitude)
    f = motion.ours if is_ours else motion.mujocos
    return Measured(_best_cpu_seconds(f, patience) / (BATCH * STEPS))


MEASUREMENTS = {
    f"{side}-{robot}-{kind}": partial(measure, robot, amplitude, side == "ours")
    for robot in ROBOTS
    for kind, amplitude in (("stand", 0.0), ("move", 0.3))
    for side in ("ours", "mujoco")
}
MEASUREMENTS |= {
    f"{name}-{robot}": partial(f, robot, *choices)
    for robot in DERIVED
    for name, f, choices in (
        ("rollout", measure_rollout, (False,)),
        ("gradient", measure_rollout, (True,)),
        ("jacobian", measure_jacobian, (True, JACOBIANS)),
        ("one-jacobian", measure_jacobian, (True, 1)),
        ("differences", measure_jacobian, (False, 1)),
    )
}


def parity() -> None:
    """Print, for every robot, how far both motions are apart after 200 steps, and both times."""
    print(f"{'robot':9} {'motion':6} {'MuJoCo us':>9} {'ours us':>8} {'ratio':>6} {'median':>8} {'p90':>8}")
    for name, robot in ROBOTS.items():
        for kind, amplitude in (("stand", 0.0), ("move", 0.3)):
            motion = Motion(robot, amplitude, 256, 200)
            count = motion.ctrl.shape[0] * motion.ctrl.shape[1]
            error = np.abs(motion.ours()[:, -1] - motion.mujocos()[:, -1]).max(axis=1)
            ours, theirs = (1e6 * _best_cpu_seconds(f, 0.0) / count for f in (motion.ours, motion.mujocos))
            print(
                f"{name:9} {kind:6} {theirs:9.1f} {ours:8.2f} {theirs / ours:6.1f} "
                f"{np.median(error):8.0e} {np.quantile(error, 0.9):8.0e}",
                flush=True,
            )


if __name__ == "__main__":
    parity()
