"""B7 and the leaderboard: every method that needs few or no real episodes, on a cart-pole swing-up.

R0 has other parameters within the training range. R1 has two of them a quarter beyond it, half the time step, latency,
noise and offsets of the encoders.
"""

import dataclasses

import numpy as np

from experiments.adaptation.online import unknown_cart_pole
from experiments.adaptation.rows import Row, Setting, make_row
from truesim.policies import PolicyTask, Randomization
from truesim.policies.adaptation import (
    ADAPTATION_METHODS,
    ConditionedTraining,
    LeaderboardOptions,
    OsiOptions,
    ParameterCoordinates,
    PolicyShelf,
    RmaOptions,
    TaskBench,
    gap_closed,
    held_out_task,
    method_curve,
    train_robust,
)

NAME = "B7 leaderboard, cart-pole swing-up on {} [gap closed]"
INSIDE = {
    "bodies/pole.mass": 0.4,
    "actuators/motor.gain": 0.7,
    "joints/rail.damping": 1.0,
    "joints/hinge.damping": 0.05,
}
OUTSIDE = {
    "bodies/pole.mass": 0.75,
    "actuators/motor.gain": 1.0,
    "joints/rail.damping": 2.5,
    "joints/hinge.damping": 0.05,
}
"""Mass and damping of the rail are a quarter above their training ranges."""


def held_out(level: str) -> PolicyTask:
    """The real system of a level."""
    task = unknown_cart_pole()
    if level == "R0":
        return held_out_task(task, INSIDE)
    offset = np.array([0.02, 0.02])
    return held_out_task(task, OUTSIDE, finer=2, latency=(0.01, 0.02), offset=offset, noise=2e-3)


def references(bench: TaskBench, training: ConditionedTraining) -> dict[str, np.ndarray]:
    """Returns of policies that do not adapt: nominal, uniform randomization, and trained on the real system itself."""
    task = unknown_cart_pole()
    nominal = dataclasses.replace(task, randomization=Randomization())
    policies = {"nominal": nominal, "uniform randomization": task, "oracle": bench.task}
    return {name: bench.evaluate(train_robust(each, training)) for name, each in policies.items()}


def told_return(shelf: PolicyShelf, values: dict[str, float], bench: TaskBench) -> np.ndarray:
    """Returns of the latent policy that is told the truth, within the range."""
    policy = shelf.policy("latent")
    told = np.clip(ParameterCoordinates(policy.task).of_values(values), -1.0, 1.0)
    return bench.evaluate(policy.conditioned(np.asarray(policy.condition(told.astype(np.float32)))))


def level_seed(shared: tuple[str, bool], seed: int) -> dict[str, np.ndarray]:
    """Gap closed by each reference and method on a level, with the policies of one seed."""
    level, quick = shared
    values = INSIDE if level == "R0" else OUTSIDE
    methods = ["latent-bayesian"] if quick or level == "R0" else list(ADAPTATION_METHODS)
    training = ConditionedTraining(steps=50_000 if quick else 6_000_000, seed=seed)
    options = LeaderboardOptions(
        counts=(0, 5) if quick else (0, 5, 10, 20, 50),
        searches=1 if quick else 5,
        training=training,
        osi=OsiOptions(seed=seed),
        rma=RmaOptions(iterations=200, seed=seed),
    )
    bench = TaskBench(held_out(level), seed)
    fixed = references(bench, training)
    ends = float(fixed["nominal"].mean()), float(fixed["oracle"].mean())
    if quick:
        ends = ends[0], ends[0] + abs(ends[0])
    shelf = PolicyShelf(unknown_cart_pole(), options)
    fixed["latent, told the truth"] = told_return(shelf, values, bench)
    found = {name: gap_closed(np.array([returns.mean()]), *ends) for name, returns in fixed.items()}
    for method in methods:
        curve = method_curve(method, shelf, bench)
        for k, count in enumerate(curve.counts):
            found[f"{method}, {count} episodes"] = gap_closed(curve.returns[:, k], *ends)
    print(f"{level}, training {seed}: nominal {ends[0]:.3g}, oracle {ends[1]:.3g}", flush=True)
    print({name: round(float(value.mean()), 3) for name, value in found.items()}, flush=True)
    return found


def run(setting: Setting) -> list[Row]:
    """Rows of both levels; intervals are over trainings, and over searches within each."""
    rows = []
    for level in ("R0", "R1"):
        seeds = setting.over_seeds(level_seed, (level, setting.quick))
        rows += [make_row(NAME.format(level), name, [each[name] for each in seeds]) for name in seeds[0]]
    return rows
