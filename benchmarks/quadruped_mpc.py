"""A quadruped that stands against pushes: `python -m benchmarks.quadruped_mpc [--peer] [--delay 0.02] [--threads 2]`.

A `PredictiveController` plans half a second ahead with the contact of the robot file, 50 steps of 10 ms, and controls
MuJoCo itself at the file's own time step, with actuators that act late. Pushes come from eight directions, each from
rest. Beside it, with `--peer`, the same controller whose steps and derivatives are those of MuJoCo, by
`mj_step` and the finite differences of `mjd_transitionFD`, as the planner of MJPC takes them.

The robot is read from `$TRUESIM_DATA/menagerie`, or from the data beside the repository.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import jax
import mujoco
import numpy as np

from benchmarks.peers.mujoco_differences import MujocoSteps
from experiments.recorded import folder
from truesim.bridges.mujoco import MujocoPlant
from truesim.control import Command, Cost, JointVelocity, PlanOptions, Posture, PredictiveController, Task
from truesim.files.robots import load
from truesim.physics.contact import MujocoContact
from truesim.physics.simulation import Simulator

SCENES = {"go2": "unitree_go2/scene.xml", "go1": "unitree_go1/scene.xml", "anymal": "anybotics_anymal_c/scene.xml"}
STEPS, TIMESTEP, PERIOD = 50, 0.01, 0.02
PUSH_SECONDS, SECONDS = 0.1, 3.0
UPRIGHT = 0.7
"""Cosine of the tilt of the trunk above which the robot stands."""


def stand(path: Path, delay: float, contact: bool = True) -> Task:
    """Task of standing at the file's first keyframe."""
    model = load(path)
    key = model.keyframes[0]
    simulator = Simulator.of(
        model, timestep=TIMESTEP, contact=MujocoContact.of(model) if contact else None, max_delay=delay
    )
    simulator = simulator.replace({"actuators/*.delay": delay}) if delay else simulator
    joints = np.ones(model.nv - 6)
    q = np.array(key.q)
    costs = {
        "posture": Cost(Posture(q), np.concatenate([[10, 10, 100, 20, 20, 20], 1.0 * joints])),
        "velocity": Cost(JointVelocity(), np.concatenate([[1, 1, 1, 0.3, 0.3, 0.3], 0.01 * joints])),
        "effort": Cost(Command(), 2e-4),
        "end": Cost(Posture(q), np.concatenate([[10, 10, 100, 20, 20, 20], 0.1 * joints]), "final"),
        "rest": Cost(JointVelocity(), np.concatenate([[5, 5, 5, 1, 1, 1], 0.01 * joints]), "final"),
    }
    return Task(simulator, STEPS, costs, start=simulator.initial_state(q=q))


@dataclass
class Outcome:
    """One push."""

    stands: bool
    moved: float
    """Largest horizontal distance of the trunk from its place [m]."""
    ticks: np.ndarray
    """CPU time of each tick [s]."""
    walls: np.ndarray
    """Duration of each tick [s]."""


def push(controller: PredictiveController, path: Path, impulse: np.ndarray, delay: float) -> Outcome:
    """Push the trunk of the standing robot, and control it for some seconds."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    start = controller.task.initial_state()
    data.qpos[:] = start.q
    controller.reset(start)
    substeps = round(PERIOD / model.opt.timestep)
    plant = MujocoPlant(model, data, substeps=substeps, delay=delay)
    trunk = model.jnt_bodyid[0]
    ticks, walls, moved = [], [], 0.0
    for k in range(round(SECONDS / PERIOD)):
        pushed = 0.5 <= k * PERIOD < 0.5 + PUSH_SECONDS
        data.xfrc_applied[trunk, :3] = impulse / PUSH_SECONDS if pushed else 0.0
        state, begun, wall = plant.observe(), time.process_time(), time.perf_counter()
        command = controller(*state)
        ticks.append(time.process_time() - begun)
        walls.append(time.perf_counter() - wall)
        plant.apply(command)
        moved = max(moved, float(np.hypot(*(data.qpos[:2] - np.asarray(start.q)[:2]))))
    up = 1 - 2 * float(np.square(data.qpos[4:6]).sum())
    stands = up > UPRIGHT and data.qpos[2] > 0.7 * float(start.q[2])
    return Outcome(bool(stands), moved, np.array(ticks), np.array(walls))


def main() -> None:
    """Push and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=sorted(SCENES), default="go2")
    parser.add_argument("--delay", type=float, default=0.02, help="delay of the actuators [s]")
    parser.add_argument("--unknown", action="store_true", help="the controller does not know of the delay")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1, help="iterations of a tick")
    parser.add_argument("--impulses", type=float, nargs="+", default=[5.0, 10.0, 15.0], help="[N s]")
    parser.add_argument("--directions", type=int, default=8)
    parser.add_argument("--peer", action="store_true", help="also with MuJoCo's steps and finite differences")
    options = parser.parse_args()
    path = folder("menagerie") / SCENES[options.robot]
    task = stand(path, 0.0 if options.unknown else options.delay)
    for name in ("truesim", "MuJoCo, finite differences") if options.peer else ("truesim",):
        begun = time.perf_counter()
        controller = PredictiveController(
            task, iterations=options.iterations, options=PlanOptions(threads=options.threads, iterations=30)
        )
        if name != "truesim":
            controller.kernels.use_steps(
                MujocoSteps(mujoco.MjModel.from_xml_path(str(path)), TIMESTEP, options.threads)
            )
        print(f"{name}: prepared in {time.perf_counter() - begun:.1f} s", flush=True)
        for size in options.impulses:
            angles = 2 * np.pi * np.arange(options.directions) / options.directions
            found = [
                push(controller, path, size * np.array([np.cos(a), np.sin(a), 0.0]), options.delay) for a in angles
            ]
            ticks, walls = (np.concatenate([getattr(x, kind) for x in found]) for kind in ("ticks", "walls"))
            print(
                f"{name}, {size:g} N s: stands after {sum(x.stands for x in found)} of {len(found)} pushes, moved by "
                f"{np.mean([x.moved for x in found]):.2f} m; a tick {1e3 * np.median(ticks):.1f} ms of CPU time, "
                f"{1e3 * np.percentile(ticks, 95):.1f} at 95 %; {1e3 * np.median(walls):.1f} ms of wall time",
                flush=True,
            )


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
