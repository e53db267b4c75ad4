"""Identify a robot from 20 s of logs, train around its posterior, play on the robot, and measure the gap.

`python -m experiments.whole_loop [--quick] [--seeds 3] [--steps 8000000] [--out DIR]`

The robot is a stand-in at level R2 (`robot.py`): MuJoCo with another integrator and time step, jittering latency,
noise, offsets, Stribeck friction, backlash and a sagging battery, a weak motor and a heavy pendulum. No real task
episode is used for training, other than by the oracle. Trainings that are in DIR already are not repeated.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from experiments.recorded import show
from experiments.whole_loop.fitting import identify_robot
from experiments.whole_loop.oracle import train_oracle
from experiments.whole_loop.robot import real_robot, record
from experiments.whole_loop.training import best_linear, trained
from truesim.policies import load_policy
from truesim.policies.gap import ROLES, RealReturns

REQUIRED = 0.8
"""Part of the gap that training around the posterior has to close."""
FIRST_EPISODE = 1000
"""Seed of the first episode that counts; no training and no choice has seen it."""


def real_returns(policy, episodes: int) -> np.ndarray:
    """Returns of a policy on the robot."""
    robot, found = real_robot(), []
    for k in range(episodes):
        observation, _ = robot.reset(seed=FIRST_EPISODE + k)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = robot.step(policy.act(observation))
            total, done = total + reward, terminated or truncated
        found.append(total)
    return np.array(found)


def fitted(out: Path) -> Path:
    """Folder of the fit; it is made if it is not there."""
    if not (out / "fit" / "fit.json").is_file():
        fit = identify_robot(record(out / "logs"), out)
        show("Identified from 20 s", ("parameter", "value"), [(name, float(x)) for name, x in fit.values.items()])
    return out / "fit"


def run(out: Path, seeds: int, steps: int, oracle_steps: int, episodes: int) -> RealReturns:
    """All roles, with `seeds` trainings each, and one oracle for every policy around the posterior."""
    fit, returns = fitted(out), dict[str, list[np.ndarray]]()
    for role in ("posterior", "nominal", "uniform"):
        for seed in range(seeds):
            policy = trained(role, fit, out / f"{role}_{seed}", seed, steps)
            returns.setdefault("policy" if role == "posterior" else role, []).append(real_returns(policy, episodes))
    for seed in range(seeds):
        folder = out / f"oracle_{seed}"
        train_oracle(out / f"posterior_{seed}", folder, seed, oracle_steps)
        returns.setdefault("oracle", []).append(real_returns(load_policy(folder), episodes))
    generations = 60 if steps > 100_000 else 2
    returns["fixed"] = [real_returns(best_linear(generations), episodes)]
    return RealReturns(returns)


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few updates of each training, to see that all runs")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each role")
    parser.add_argument(
        "--steps", type=int, default=8_000_000, help="control steps of a training, which stops at the goal"
    )
    parser.add_argument("--episodes", type=int, default=20, help="episodes of every policy on the robot")
    parser.add_argument("--out", type=Path, help="folder of the fit, of the policies and of results.json")
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp())
    if options.quick:
        options.seeds, options.steps, options.episodes = 1, 50_000, 2
    found = run(out, options.seeds, options.steps, 400_000 if options.steps > 100_000 else 8192, options.episodes)
    rows, document = [], {}
    for role in ROLES:
        mean, closed = found.mean(role), found.gap_closed(role)
        interval = "" if closed is None else f"[{closed.low:.2f}, {closed.high:.2f}]"
        part = None if closed is None or role in ("nominal", "oracle") else closed.value
        rows.append(
            (ROLES[role], mean.value, f"[{mean.low:.3g}, {mean.high:.3g}]", "" if part is None else part, interval)
        )
        document[role] = {"mean": mean._asdict(), "returns": [x.tolist() for x in found.by_role[role]]}
    show("Returns on the robot", ("policy", "mean", "95 %", "gap closed", "95 %"), rows)
    print(
        f"valid (the oracle exceeds all references by three standard errors): {found.is_valid()}; required {REQUIRED}"
    )
    (out / "results.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
