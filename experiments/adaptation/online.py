"""B5 and B6: online adaptation within an episode, UP-OSI and RMA, on a cart-pole swing-up with unknown parameters."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from experiments.adaptation.rows import Row, Setting, make_row, stopwatch
from truesim.core.precision import float32
from truesim.policies import (
    Memory,
    Observation,
    PlayOptions,
    PolicyTask,
    Randomization,
    log_uniform,
    make_task,
    play,
    uniform,
)
from truesim.policies.adaptation import (
    ConditionedPolicy,
    ConditionedTraining,
    OnlineLoop,
    OnlinePolicy,
    OsiOptions,
    ParameterCoordinates,
    RmaNetwork,
    RmaOptions,
    train_encoded,
    train_osi,
    train_rma,
    train_robust,
    train_universal,
)
from truesim.policies.adaptation.conditioned_task import TOLD_PARAMETERS

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
EPISODES, CHANGING_EPISODES, HELD_OUT = 512, 2048, 777
"""Episodes of an evaluation of B5 and of B6, where differences are small, and their seed, which no training uses."""
RMA_OPTIONS = RmaOptions(
    RmaNetwork(28, 16, ((4, 2), (4, 1), (4, 1))), iterations=150, epochs=4, rate=3e-3, last_rate=0.0
)
"""A history of half a second, as published, in 28 steps of 50 Hz."""
DELAYS = (5, 10, 20)
"""Control steps after which the expert is told the truth, for comparison."""
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


def robust_returns(task: PolicyTask, training: ConditionedTraining, episodes: int = EPISODES) -> np.ndarray:
    """Returns of a policy that is told nothing, in the same episodes."""
    policy = train_robust(task, training)
    return play(policy, task, options=PlayOptions(episodes, HELD_OUT, noise=True, randomize=True)).returns


@dataclasses.dataclass(frozen=True)
class LateTruth(ConditionedPolicy):
    """A policy that is told the truth some control steps late: what an estimator can reach that needs as many."""

    delay: int = 0

    @property
    def told_task(self) -> PolicyTask:
        """The task in which parameters are told late; those of the start are told at once."""
        coordinates = ParameterCoordinates(self.task)
        told = lambda now: coordinates(now.parameters, now.latency)  # noqa: E731
        memory = Memory(
            lambda now, draw: jnp.tile(told(now), (self.delay, 1)),
            lambda now: jnp.concatenate([now.memory[1:], told(now)[None]]),
        )
        late = {TOLD_PARAMETERS: Observation(lambda now: now.memory[0])}
        return dataclasses.replace(self.task, memory=memory, observations={**self.task.observations, **late})


def late_returns(online: OnlinePolicy, delay: int) -> np.ndarray:
    """Returns of a policy that is told the truth late, in the place of its estimates."""
    fields = {field.name: getattr(online.policy, field.name) for field in dataclasses.fields(online.policy)}
    loop = OnlineLoop(LateTruth(**fields, delay=delay), online.network, CHANGING_EPISODES)
    return loop.returns(online.weights, HELD_OUT, truth=True)


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
    """Returns of RMA, of the expert that is told its latent, at once or late, and of a policy that is told nothing."""
    task, spent = unknown_cart_pole(CHANGE_INTERVAL), []
    training = ConditionedTraining(steps=QUICK_STEPS if quick else STEPS, seed=seed)
    with stopwatch(spent):
        policy = train_encoded(task, latent=4, training=training)
        options = dataclasses.replace(RMA_OPTIONS, seed=seed)
        online = train_rma(policy, dataclasses.replace(options, iterations=2) if quick else options)
    loop = OnlineLoop(policy, online.network, CHANGING_EPISODES)
    late = {f"expert, told {delay} steps late": late_returns(online, delay) for delay in DELAYS}
    return {
        "robust": robust_returns(task, training, CHANGING_EPISODES),
        "expert": loop.returns(online.weights, HELD_OUT, truth=True),
        **late,
        "RMA": loop.returns(online.weights, HELD_OUT),
        "CPU s": np.array(spent),
    }


def rma_rows(setting: Setting) -> list[Row]:
    """Rows of B6; figures are returns, and parts of the way from robust to expert."""
    figures = setting.over_seeds(rma_seed, setting.quick)
    names = [name for name in figures[0] if name != "CPU s"]
    rows = [make_row(RMA, name, [f[name] for f in figures]) for name in names]

    def way(name: str) -> list[np.ndarray]:
        return [1 - (f["expert"] - f[name]) / (f["expert"].mean() - f["robust"].mean()) for f in figures]

    rows += [make_row(RMA, f"{name} [way]", way(name)) for name in names if "late" in name]
    seconds = float(np.mean([f["CPU s"] for f in figures]))
    return [*rows, make_row(RMA, "RMA [way from robust to expert]", way("RMA"), required=0.9, seconds=seconds)]
