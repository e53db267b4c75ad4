"""CPU time until the cart-pole swing-up is solved: PPO, short-horizon gradients, and PPO of Stable-Baselines3.

`python -m experiments.policies.swing_up [--seeds 5] [--stable-baselines] [--most-seconds 120]`

All learn the same task in the same compiled environment, until the mean action returns the goal of the task. The time
of Stable-Baselines3 is without that of its tests; ours is with it. It needs `pip install stable-baselines3`.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from experiments.policies.results import Learned
from experiments.recorded import show
from truesim.cli.trained_policies import use_compilation_cache
from truesim.policies import TrainOptions, make_task, train
from truesim.policies.tasks import learner_named

TASK = "cart-pole-swingup"
LEARNERS = {"ppo": 6_000_000, "shac": 3_000_000}
"""Our learners, and their largest budgets of control steps."""


def ours(name: str, seed: int) -> Learned:
    """Train until the goal is reached."""
    with tempfile.TemporaryDirectory() as folder:
        options = TrainOptions(steps=LEARNERS[name], seed=seed, evaluate_every=4)
        found = train(make_task(TASK), Path(folder), learner=learner_named(TASK, name), options=options)
    return Learned(name, seed, found.cpu_seconds, found.steps, found.evaluated_return, found.reached_goal)


def main() -> None:
    """Print a row of every training, and the ratios of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each of our learners")
    parser.add_argument("--stable-baselines", action="store_true", help="measure Stable-Baselines3 too")
    parser.add_argument("--most-seconds", type=float, default=120.0, help="CPU time after which it is stopped")
    options = parser.parse_args()
    use_compilation_cache()
    found = {name: [ours(name, seed) for seed in range(options.seeds)] for name in LEARNERS}
    if options.stable_baselines:
        from experiments.policies.stable_baselines import SETTINGS, learn

        task = make_task(TASK)
        assert task.goal is not None, "the task has one"
        for setting in SETTINGS:
            found[setting] = [learn(task, setting, 0, task.goal, options.most_seconds)]
    rows = [
        (x.learner, x.seed, x.cpu_seconds, x.steps, x.value, "yes" if x.reached else "no")
        for each in found.values()
        for x in each
    ]
    show(f"{TASK}: until the goal", ("learner", "seed", "CPU s", "steps", "return", "reached"), rows)
    medians = {name: float(np.median([x.cpu_seconds for x in each])) for name, each in found.items()}
    others = [seconds for name, seconds in medians.items() if name not in LEARNERS]
    if others:
        table = [(name, medians[name], min(others) / medians[name]) for name in LEARNERS]
        show("Against the fastest setting of Stable-Baselines3", ("learner", "median CPU s", "times less"), table)


if __name__ == "__main__":
    main()
