"""B5 and B6: online adaptation within an episode, UP-OSI and RMA, on a cart-pole swing-up with unknown parameters."""

import dataclasses

import jax
import numpy as np

from experiments.adaptation.rows import Row, Setting, make_row, stopwatch
from truesim.core.precision import float32
from truesim.policies import PlayOptions, PolicyTask, Randomization, log_uniform, make_task, play, uniform
from truesim.policies.adaptation import (
    ConditionedTraining,
    OnlineLoop,
    OnlinePolicy,
    OsiOptions,
    RmaOptions,
    train_encoded,
    train_osi,
    train_rma,
    train_robust,
    train_universal,
)

OSI, RMA = "B5 UP-OSI, cart-pole swing-up", "B6 RMA, cart-pole swing-up with changing parameters"
UNKNOWN = {
    "bodies/pole.mass": log_uniform(0.5, 3.0, "scale"),
    "actuators/motor.gain": log_uniform(0.4, 2.0, "scale"),
    "joints/rail.damping": uniform(0.0, 2.0),
    "joints/hinge.damping": uniform(0.0, 0.1),
}
"""Mass and gain relative to the robot's; damping [N s/m, N m s/rad]."""
CHANGE_INTERVAL = 2.5
"""Mean time between changes in B6, and in the training of estimators [s]."""
EPISODES, HELD_OUT = 512, 777
"""Episodes of an evaluation, and their seed, which no training uses."""
JUMPS, AFTER = {"early": (40, "while it swings up"), "late": (300, "while it is held up")}, 100
"""Control steps before parameters jump, and after it."""
STEPS, QUICK_STEPS = 8_000_000, 100_000
"""Control steps of a training."""


def unknown_cart_pole(change_interval: float = float("inf")) -> PolicyTask:
    """The swing-up with unknown parameters."""
    task = make_task("cart-pole-swingup", None, Randomization(UNKNOWN))
    return dataclasses.replace(task, change_interval=change_interval)


def after_jump(loop: OnlineLoop, weights, jump: int, *, truth: bool):
    """Reward over the steps after parameters jump for each episode, and the error of each estimate that follows it.

    Args:
        loop: Episodes.
        weights: Weights of the estimator.
        jump: Control steps before the jump.
        truth: True if the policy is told the true parameters.
    """
    with float32():
        key = jax.random.key(HELD_OUT)
        state, _ = loop.play(weights, loop.start(HELD_OUT), jump, key, truth=truth)
        other = loop.start(HELD_OUT + 1).episodes.parameters
        state = state._replace(episodes=dataclasses.replace(state.episodes, parameters=other))
        _, steps = loop.play(weights, state, AFTER, key, truth=truth)
    ended = np.asarray(steps.ended)
    alive = np.cumsum(ended, axis=0) - ended == 0
    error = np.sqrt(np.mean((np.asarray(steps.estimate) - np.asarray(steps.target)) ** 2, axis=1))
    return np.sum(np.asarray(steps.reward) * alive, axis=0), error[1:]  # what was seen at the jump came before it


def settling_steps(errors: np.ndarray) -> float:
    """Steps until errors of estimates stay within a tenth of their fall above their last level, shape (steps, size).

    Only parameters that the motion shows count: those whose error falls by a third. NaN if it shows none.
    """
    last = errors[-20:].mean(axis=0)
    shown = last < 2 / 3 * errors[0]
    if not shown.any():
        return np.nan
    error, level = errors[:, shown].mean(axis=1), last[shown].mean()
    return float(np.flatnonzero(error > level + 0.1 * (error[0] - level))[-1] + 1)


def relative_to_told(online: OnlinePolicy) -> dict[str, np.ndarray]:
    """Figures of an online policy: returns, and rewards after a jump, with estimates and told the truth."""
    loop = OnlineLoop(online.policy, online.network, EPISODES)
    found = {name: loop.returns(online.weights, HELD_OUT, truth=name == "told") for name in ("told", "online")}
    for jump, (step, _) in JUMPS.items():
        for name in ("told", "online"):
            found[f"{name}, {jump}"], error = after_jump(loop, online.weights, step, truth=name == "told")
        found[f"settling, {jump}"] = np.array([settling_steps(error)])
    return found


def robust_returns(task: PolicyTask, training: ConditionedTraining) -> np.ndarray:
    """Returns of a policy that is told nothing, in the same episodes."""
    policy = train_robust(task, training)
    return play(policy, task, options=PlayOptions(EPISODES, HELD_OUT, noise=True, randomize=True)).returns


def run(setting: Setting) -> list[Row]:
    """Rows of both benchmarks."""
    return osi_rows(setting) + rma_rows(setting)


def osi_seed(quick: bool, seed: int) -> dict[str, np.ndarray]:
    """Figures of UP-OSI, of the policy that is told the truth, and of one that is told nothing."""
    task, spent = unknown_cart_pole(), []
    training = ConditionedTraining(steps=QUICK_STEPS if quick else STEPS, seed=seed)
    with stopwatch(spent):
        options = OsiOptions(change_interval=CHANGE_INTERVAL, seed=seed)
        options = dataclasses.replace(options, rounds=1, epochs=1) if quick else options
        online = train_osi(train_universal(task, training), options)
    return {**relative_to_told(online), "robust": robust_returns(task, training), "CPU s": np.array(spent)}


def osi_rows(setting: Setting) -> list[Row]:
    """Rows of B5; figures of UP-OSI are relative to the policy that is told the truth."""
    figures = setting.over_seeds(osi_seed, setting.quick)
    rows = [make_row(OSI, name, [f[name] for f in figures]) for name in ("told", "online", "robust")]

    def ratio(name: str) -> list[np.ndarray]:  # of the same episodes, so that their differences count
        return [1 - (f[f"told{name}"] - f[f"online{name}"]) / f[f"told{name}"].mean() for f in figures]

    seconds = float(np.mean([f["CPU s"] for f in figures]))
    rows.append(make_row(OSI, "online, part of told", ratio(""), required=0.95, seconds=seconds))
    for jump, (_, when) in JUMPS.items():
        rows.append(make_row(OSI, f"part of told in 100 steps after a jump {when}", ratio(f", {jump}"), required=0.9))
        settling = [f[f"settling, {jump}"] for f in figures]
        if np.all(np.isfinite(settling)):
            rows.append(make_row(OSI, f"steps until estimates settle after a jump {when}", settling, required=20))
    return rows


def rma_seed(quick: bool, seed: int) -> dict[str, np.ndarray]:
    """Returns of RMA, of the expert that is told its latent, and of a policy that is told nothing."""
    task, spent = unknown_cart_pole(CHANGE_INTERVAL), []
    training = ConditionedTraining(steps=QUICK_STEPS if quick else STEPS, seed=seed)
    with stopwatch(spent):
        options = RmaOptions(iterations=2 if quick else 600, seed=seed)
        online = train_rma(train_encoded(task, latent=4, training=training), options)
    loop = OnlineLoop(online.policy, online.network, EPISODES)
    return {
        "robust": robust_returns(task, training),
        "expert": loop.returns(online.weights, HELD_OUT, truth=True),
        "RMA": loop.returns(online.weights, HELD_OUT),
        "CPU s": np.array(spent),
    }


def rma_rows(setting: Setting) -> list[Row]:
    """Rows of B6; the figure is the part of the way from robust to expert."""
    figures = setting.over_seeds(rma_seed, setting.quick)
    rows = [make_row(RMA, name, [f[name] for f in figures]) for name in ("robust", "expert", "RMA")]
    way = [1 - (f["expert"] - f["RMA"]) / (f["expert"].mean() - f["robust"].mean()) for f in figures]
    seconds = float(np.mean([f["CPU s"] for f in figures]))
    return [*rows, make_row(RMA, "way from robust to expert", way, required=0.9, seconds=seconds)]
