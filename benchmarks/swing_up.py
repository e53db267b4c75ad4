"""Swing-ups against crocoddyl and CasADi: `python -m benchmarks.swing_up --peer PYTHON [--guesses 100]`.

PYTHON is an interpreter with crocoddyl and casadi, such as that of an environment made by `pip install crocoddyl==3.2.1
pin==4.0.0 libpinocchio==4.0.0 casadi`. Both sides solve the same problems from the same guesses: a cart-pole within a
force box, and an acrobot without. Times are CPU times of one thread to a cost within 1e-4 of the one reached. A guess
is solved if the pole ends upright.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

from truesim.control import Command, Cost, JointVelocity, PlanOptions, Posture, Task, TaskKernels, plan
from truesim.control.planning import prepare
from truesim.files.robots import load
from truesim.physics.simulation import MujocoJointModel, Simulator

LINK = """<link name="{name}"><inertial><origin xyz="0 0 {com}"/><mass value="{mass}"/>
  <inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{a}"/><child link="{b}"/><origin xyz="0 0 {z}"/>
  <axis xyz="{axis}"/><limit lower="-100" upper="100" effort="1e6" velocity="1e6"/></joint>"""
CART_POLE = f"""<robot name="cart_pole"><link name="base"/>{LINK.format(name="cart", com=0, mass=1, i=0.1)}
{LINK.format(name="pole", com=-0.5, mass=0.1, i=1e-4)}
{JOINT.format(name="slide", kind="prismatic", a="base", b="cart", z=0, axis="1 0 0")}
{JOINT.format(name="hinge", kind="revolute", a="cart", b="pole", z=0, axis="0 1 0")}</robot>"""
ACROBOT = f"""<robot name="acrobot"><link name="base"/>{LINK.format(name="upper", com=-0.5, mass=1, i=0.08)}
{LINK.format(name="lower", com=-0.5, mass=1, i=0.08)}
{JOINT.format(name="shoulder", kind="revolute", a="base", b="upper", z=0, axis="0 1 0")}
{JOINT.format(name="elbow", kind="revolute", a="upper", b="lower", z=-1, axis="0 1 0")}</robot>"""
REPEATS = 10
UP = 0.2
"""Deviation from the target that counts as upright [rad]."""
PROBLEMS = {
    "cart-pole": {
        "text": CART_POLE,
        "driven": 0,
        "steps": 100,
        "timestep": 0.02,
        "bound": 10.0,
        "target": [0.0, np.pi],
        "weights": {"effort": 0.01, "posture": 0.1, "velocity": 0.0, "end": 100.0, "rest": 10.0},
    },
    "acrobot": {
        "text": ACROBOT,
        "driven": 1,
        "steps": 200,
        "timestep": 0.02,
        "bound": None,
        "target": [np.pi, 0.0],
        "weights": {"effort": 0.01, "posture": 0.01, "velocity": 0.001, "end": 100.0, "rest": 10.0},
    },
}


def task_of(problem: dict, folder: Path) -> Task:
    """The problem for truesim."""
    urdf = folder / "robot.urdf"
    urdf.write_text(problem["text"], encoding="utf-8")
    model = load(urdf)
    driven = problem["driven"]
    simulator = Simulator.of(
        model, timestep=problem["timestep"], joint_model=MujocoJointModel(friction=(), limits=()), contact=None
    )
    w, target = problem["weights"], problem["target"]
    costs = {
        "effort": Cost(Command(), w["effort"]),
        "posture": Cost(Posture(target), w["posture"]),
        "velocity": Cost(JointVelocity(), w["velocity"]),
        "end": Cost(Posture(target), w["end"], "final"),
        "rest": Cost(JointVelocity(), w["rest"], "final"),
    }
    bounds = np.zeros((model.nu, 2))  # joints without a drive
    bounds[driven] = (-1e5, 1e5) if problem["bound"] is None else (-problem["bound"], problem["bound"])
    return Task(simulator, problem["steps"], costs, bounds=bounds)


def ours(task: Task, problem: dict, guesses: np.ndarray) -> dict:
    """Costs and ends of all guesses as one batch, and the time of the first alone to within 1e-4 of its cost."""
    kernels, options = TaskKernels(task), PlanOptions(iterations=500, tolerance=1e-10)
    full = np.zeros((*guesses.shape, task.simulator.model.nu))
    full[..., problem["driven"]] = guesses
    alone = plan(task, guess=None, kernels=kernels, options=options)
    plans = plan([task] * len(full), guess=list(full), kernels=kernels, options=options)
    seconds = []
    for _ in range(REPEATS):
        batch, _ = prepare(kernels, [task], [None], options, False)
        begun = time.process_time()
        while batch.active.any() and (batch.defect[0] > 1e-9 or batch.cost[0] > alone.cost * (1 + 1e-4)):
            batch.iterate()
        seconds.append(time.process_time() - begun)
    upright = [bool(np.abs(p.q[-1] - problem["target"]).max() < UP) for p in plans]
    found = {"first": alone.cost, "iterations": int(batch.iterations[0]), "seconds": min(seconds)}
    return found | {"costs": [p.cost for p in plans], "upright": upright}


def peer(python: Path, program: str, problem: dict, folder: Path) -> dict:
    """Result of a program of `peers` in another Python."""
    file = folder / "problem.json"
    file.write_text(json.dumps({k: v for k, v in problem.items() if k != "text"}), encoding="utf-8")
    command = [python, "-P", Path(__file__).parent / "peers" / program, file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"missing": (done.stderr.splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def solved(costs: list[float], upright_cost: float) -> int:
    """Guesses whose cost is at most that of the worst upright motion."""
    return int(np.sum(np.array(costs) <= upright_cost))


def main() -> None:
    """Solve both problems on all sides and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="Python that has crocoddyl and casadi")
    parser.add_argument("--guesses", type=int, default=100, help="random guesses of each problem")
    parser.add_argument("--only", choices=sorted(PROBLEMS), help="one problem")
    options = parser.parse_args()
    for name in [options.only] if options.only else PROBLEMS:
        problem = dict(PROBLEMS[name])
        scale = problem["bound"] or 10.0
        rng = np.random.default_rng(0)
        guesses = 0.3 * scale * rng.normal(size=(options.guesses, problem["steps"]))
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            own = ours(task_of(problem, folder), problem, guesses)
            line = f"{1e3 * own['seconds']:.1f} ms, {own['iterations']} iterations, cost {own['first']:.5f}"
            print(f"{name}: truesim {line}; upright from {sum(own['upright'])} of {len(guesses)} guesses", flush=True)
            if options.peer is None:
                continue
            problem["urdf"] = str(folder / "robot.urdf")
            problem["guesses"] = [[0.0] * problem["steps"], *guesses.tolist()]
            found = peer(options.peer, "crocoddyl_swing_up.py", problem, folder)
            worst = max((c for c, up in zip(own["costs"], own["upright"], strict=True) if up), default=0.0)
            if "missing" in found:
                print(f"{name}: crocoddyl is missing: {found['missing']}")
            else:
                line = (
                    f"{1e3 * found['seconds']:.1f} ms, {found['iterations']} iterations, cost {found['costs'][0]:.5f}"
                )
                count = solved(found["costs"][1:], worst)
                print(f"{name}: crocoddyl {line}; as good from {count}; ratio {found['seconds'] / own['seconds']:.1f}")
            if name == "cart-pole":
                problem |= {"cart": 1.0, "pole": 0.1, "length": 0.5, "inertia": 1e-4, "gravity": 9.81}
                found = peer(options.peer, "casadi_cart_pole.py", problem, folder)
                line = found.get("missing") or f"{1e3 * found['seconds']:.1f} ms, cost {found['cost']:.5f}"
                ratio = "" if "missing" in found else f"; ratio {found['seconds'] / own['seconds']:.1f}"
                print(f"{name}: CasADi with IPOPT {line}{ratio}", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
