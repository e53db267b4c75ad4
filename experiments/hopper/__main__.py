"""The hopper runs at 2 m/s through rigid contact: `python -m experiments.hopper [--runs 10] [--out DIR]`.

Every run plans from a random guess and random commands around it, as elements of one batch, with derivatives of a
smoothed contact and motions of the rigid one. Beside it: the cross-entropy method with the same simulator, and the time
of a simulated step next to that of MuJoCo's `rollout` at equal steps. Times are CPU times of one thread.
"""

import argparse
import time
from pathlib import Path

import jax
import mujoco
import mujoco.rollout
import numpy as np

from experiments.hopper.scene import STEPS, TIMESTEP, hopper_xml, run_task
from experiments.line_chart import Line, draw_lines
from truesim.control import Plan, PlanOptions, SamplingOptions, SamplingPlanner, Task, TaskKernels, plan

STARTS, ITERATIONS, GUESS = 8, 40, 0.3
SMOOTHING = (1e-2,)
ENOUGH = 0.5
"""Cost that counts as running."""
BATCH = 512
"""Simulations whose time is measured."""


def planned(task: Task, kernels: TaskKernels, seed: int) -> tuple[Plan, float]:
    """Best plan from random guesses, and its CPU time [s]."""
    guess = np.random.default_rng(seed).uniform(-GUESS, GUESS, (STEPS, 3))
    options = PlanOptions(starts=STARTS, smoothing=SMOOTHING, iterations=ITERATIONS, seed=seed)
    begun = time.process_time()
    found = plan(task, guess=guess, options=options, kernels=kernels)
    return found, time.process_time() - begun


def sampled(task: Task, kernels: TaskKernels) -> list[tuple[str, float, float]]:
    """Cross-entropy method with 10,240 simulations and several numbers of nodes: name, cost and CPU time [s]."""
    rows = []
    for nodes in (5, 10, 17):
        for noise in (0.3, 0.6):
            options = SamplingOptions(samples=512, rounds=20, nodes=nodes, noise=noise)
            planner = SamplingPlanner(task, options, kernels)
            begun = time.process_time()
            cost = planner.plan().cost
            rows.append((f"{nodes} nodes, noise {noise}", cost, time.process_time() - begun))
    return rows


def step_times(task: Task, kernels: TaskKernels) -> tuple[float, float]:
    """CPU time of a simulated step, of truesim and of MuJoCo [s], the least of some repetitions."""
    rng = np.random.default_rng(0)
    commands = rng.uniform(-0.3, 0.3, (BATCH, STEPS, 3))
    planner = SamplingPlanner(task, SamplingOptions(samples=BATCH), kernels)
    z = planner._flat(task.initial_state())
    model = mujoco.MjModel.from_xml_string(hopper_xml())
    data = mujoco.MjData(model)
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    jobs = (
        lambda: kernels.cost(z, commands, planner._numbers),
        lambda: mujoco.rollout.rollout(model, data, initial_state=state, control=commands),
    )
    best = [np.inf, np.inf]
    for _ in range(5):
        for k, job in enumerate(jobs):
            begun = time.process_time()
            job()
            best[k] = min(best[k], time.process_time() - begun)
    return best[0] / (BATCH * STEPS), best[1] / (BATCH * STEPS)


def draw(folder: Path, motion: Plan) -> None:
    """Chart of the planned motion."""
    when = motion.time
    lines = [
        Line("forward speed [m/s]", when, motion.v[:, 0]),
        Line("height of the torso [m]", when, motion.q[:, 1]),
        Line("pitch [rad]", when, motion.q[:, 2]),
    ]
    draw_lines(folder / "hopper.svg", "Hopper, planned through rigid contact", ("time [s]", "state"), lines)


def main() -> None:
    """Plan, sample, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="number of runs, each from another random guess")
    parser.add_argument("--out", type=Path, help="folder of the chart")
    options = parser.parse_args()
    task = run_task()
    begun = time.process_time()
    kernels = TaskKernels(task)
    planned(task, kernels, 1000)
    print(f"compiled, and planned once: {time.process_time() - begun:.1f} CPU s")
    found = [planned(task, kernels, seed) for seed in range(options.runs)]
    costs, seconds = np.array([[motion.cost, spent] for motion, spent in found]).T
    print("planned costs:", *np.round(np.sort(costs), 3))
    reached = int(np.sum((costs < ENOUGH) & (seconds <= 1.0)))
    print(f"below {ENOUGH} within 1 CPU s: {reached} of {options.runs}; median {np.median(seconds):.2f} CPU s a run")
    rows = sampled(task, kernels)
    for name, cost, spent in rows:
        print(f"cross-entropy, {name}: {cost:.3f}, {spent:.2f} CPU s for 10,240 simulations")
    print(f"best planned / best sampled cost: {costs.min() / min(cost for _, cost, _ in rows):.2f}")
    ours, theirs = step_times(task, kernels)
    print(
        f"a step of {1e3 * TIMESTEP:g} ms: {1e6 * ours:.2f} us, MuJoCo {1e6 * theirs:.2f} us, ratio {theirs / ours:.1f}"
    )
    if options.out is not None:
        draw(options.out, found[int(np.argmin(costs))][0])


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
