"""Quadrupeds that follow a joystick: training as by `truesim train`, and a test in plain MuJoCo at the file's own step.

`python -m experiments.policies.joystick FILE ... [--seeds 1] [--first-seed 0] [--episodes 20] [--out DIR]`

The test has 20 ms of latency, the mean action and a new command every 4 s; no training or choice has seen its episodes.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from experiments.recorded import show
from truesim.cli.trained_policies import use_compilation_cache
from truesim.policies import TrainOptions, load_policy, make_task, play, train
from truesim.policies.play import PlayOptions
from truesim.policies.tasks import find_task

TASK = "go2-joystick"
FIRST_EPISODE = 9000
"""Seed of the episodes of the test."""


def walked(robot: Path, seed: int, folder: Path, episodes: int) -> tuple:
    """Row of a robot and a seed: CPU time, control steps, falls and errors of commands."""
    entry, task = find_task(TASK), make_task(TASK, robot)
    options = TrainOptions(steps=entry.steps, longest=entry.longest, seed=seed)
    found = train(task, folder, learner=entry.learner, options=options)
    test = PlayOptions(episodes=episodes, seed=FIRST_EPISODE)
    played = play(load_policy(folder), task, engine="mujoco", options=test)
    assert played.tracking is not None, "the task has commands"
    errors = ", ".join(f"{100 * x:.0f}" for x in played.tracking) + " %"
    passed = "yes" if found.reached_goal else "no"
    name = f"{robot.parent.name}/{robot.name}"
    return (name, seed, found.cpu_seconds, f"{found.steps / 1e6:.1f} M", passed, int(played.terminated.sum()), errors)


def main() -> None:
    """Train, test and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", type=Path, nargs="+", help="robot files, such as unitree_go2/scene.xml")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each robot")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=20, help="episodes of 20 s in the test")
    parser.add_argument("--out", type=Path, help="folder of the policies")
    options = parser.parse_args()
    use_compilation_cache()
    out, rows = options.out or Path(tempfile.mkdtemp()), []
    for robot in options.robots:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            row = walked(robot, seed, out / f"{robot.parent.name}-{robot.stem}-{seed}", options.episodes)
            print(*row, flush=True)
            rows.append(row)
    header = ("robot", "seed", "CPU s", "steps", "trial passed", f"falls of {options.episodes}", "forward, left, yaw")
    show("Test in plain MuJoCo", header, rows)
    print(f"median {np.median([row[2] for row in rows]):.1f} CPU s")


if __name__ == "__main__":
    main()
