"""Trajectory optimization against crocoddyl: `python -m benchmarks.control --peer PYTHON`.

PYTHON is an interpreter that has crocoddyl, such as that of an environment made by `pip install crocoddyl==3.2.1
pin==4.0.0 libpinocchio==4.0.0`. Both sides solve the same problem from the same guess: the Panda of
`example-robot-data` reaches a point within a torque box. Times are CPU time on one thread, to a cost within 1e-4 of the
best, the least of several runs.
"""

import argparse
import json
import re
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from truesim.control import Command, Cost, FramePosition, JointVelocity, PlanOptions, Posture, Task, TaskKernels, plan
from truesim.control.planning import prepare
from truesim.files.robots import load
from truesim.physics.simulation import MujocoJointModel, Simulator

REPEATS, BATCH = 5, 64
START = (0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8)
TARGET = (0.4, 0.4, 0.4)
BOUNDS = tuple(0.6 * x for x in (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0))
WEIGHTS = {"effort": 1e-4, "posture": 0.1, "velocity": 0.01, "reach": 1e3, "stop": 1.0}
STEPS, TIMESTEP, FRAME = 100, 0.01, "panda_hand"


def panda(folder: Path) -> Path:
    """Seven-joint URDF without meshes, fingers and damping, which both sides read."""
    share = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"
    text = (share / "panda_description/urdf/panda.urdf").read_text(encoding="utf-8")
    text = re.sub(r"<(visual|collision)>.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"<dynamics[^>]*/>", "", text).replace('type="prismatic"', 'type="fixed"')
    path = folder / "panda.urdf"
    path.write_text(text, encoding="utf-8")
    return path


def reach(urdf: Path, target: tuple[float, ...] = TARGET) -> Task:
    """The problem for truesim."""
    model = load(urdf)
    simulator = Simulator.of(model, timestep=TIMESTEP, joint_model=MujocoJointModel(friction=(), limits=()))
    costs = {
        "effort": Cost(Command(), WEIGHTS["effort"]),
        "posture": Cost(Posture(START), WEIGHTS["posture"]),
        "velocity": Cost(JointVelocity(), WEIGHTS["velocity"]),
        "reach": Cost(FramePosition(FRAME, target), WEIGHTS["reach"], "final"),
        "stop": Cost(JointVelocity(), WEIGHTS["stop"], "final"),
    }
    bounds = np.stack([-np.array(BOUNDS), np.array(BOUNDS)], axis=1)
    return Task(simulator, STEPS, costs, start=simulator.initial_state(q=np.array(START)), bounds=bounds)


def ours(task: Task) -> dict:
    """Best cost, and time to within 1e-4 of it."""
    kernels = TaskKernels(task)
    best = plan(task, kernels=kernels, options=PlanOptions(tolerance=1e-12))
    seconds = []
    for _ in range(REPEATS):
        batch, _ = prepare(kernels, [task], [None], PlanOptions(tolerance=1e-12), False)
        begun = time.process_time()
        while batch.active.any() and (batch.defect[0] > 1e-9 or batch.cost[0] > best.cost * (1 + 1e-4)):
            batch.iterate()
        seconds.append(time.process_time() - begun)
    return {"cost": best.cost, "iterations": int(batch.iterations[0]), "seconds": min(seconds), "us": best.commands}


def batched(urdf: Path) -> float:
    """CPU time per problem and iteration of a batch, line search included [s]."""
    rng = np.random.default_rng(0)
    targets = rng.uniform([0.2, -0.6, 0.2], [0.6, 0.6, 0.8], (BATCH, 3))
    tasks = [reach(urdf, tuple(target)) for target in targets]
    kernels, seconds = TaskKernels(tasks[0]), []
    for _ in range(2):
        batch, _ = prepare(kernels, tasks, [None] * BATCH, PlanOptions(), False)
        begun = time.process_time()
        batch.solve()
        seconds.append((time.process_time() - begun) / batch.iterations.sum())
    return min(seconds)


def main() -> None:
    """Measure both sides and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, help="Python that has crocoddyl")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        urdf = panda(Path(name))
        own = ours(reach(urdf))
        print(
            f"truesim: cost {own['cost']:.8f}, {own['iterations']} iterations, {1e3 * own['seconds']:.1f} ms",
            flush=True,
        )
        if options.peer is None or not options.peer.exists():
            print("crocoddyl: missing; give --peer PYTHON")
            peer = None
        else:
            problem = {"urdf": str(urdf), "start": START, "target": TARGET, "bounds": BOUNDS, "weights": WEIGHTS}
            problem |= {"steps": STEPS, "timestep": TIMESTEP, "frame": FRAME}
            file = Path(name) / "problem.json"
            file.write_text(json.dumps(problem), encoding="utf-8")
            program = Path(__file__).parent / "peers" / "crocoddyl_reach.py"
            done = subprocess.run([options.peer, "-P", program, file], capture_output=True, text=True, check=True)
            peer = json.loads(done.stdout.splitlines()[-1])
            print(
                f"crocoddyl: cost {peer['cost']:.8f}, {peer['iterations']} iterations, {1e3 * peer['seconds']:.1f} ms"
            )
            print(f"ratio of times {peer['seconds'] / own['seconds']:.2f}, of costs {peer['cost'] / own['cost']:.8f}")
            print(f"largest difference of commands {np.abs(np.array(peer['us']) - own['us']).max():.2g}")
        each = batched(urdf)
        print(f"batch of {BATCH}: {1e6 * each:.0f} us a problem and iteration", end="")
        print("" if peer is None else f", crocoddyl / ours {peer['seconds'] / peer['iterations'] / each:.1f}")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
