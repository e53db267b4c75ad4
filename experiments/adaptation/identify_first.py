"""Identify first, then adapt what is left: one logged episode tells a universal policy its parameters.

The real system is MuJoCo behind `RealEnv`, with parameters beyond the training range, another integrator, half the time
step, latency with jitter, noise and offsets. Searches that skip identification begin at the nominal parameters.
"""

import tempfile
from pathlib import Path

import numpy as np

import truesim as ts
from experiments.adaptation.latent import OUTSIDE
from experiments.adaptation.online import UNKNOWN, unknown_cart_pole
from experiments.adaptation.rows import Row, Setting, make_row
from truesim.bridges.real import RealEffects, RealEnv, StandInEnv
from truesim.policies import PolicyTask
from truesim.policies.adaptation import (
    AdaptOptions,
    ConditionedPolicy,
    ConditionedTraining,
    OsiOptions,
    ParameterCoordinates,
    adapt,
    play_real,
    train_osi,
    train_universal,
)

NAME = "identify first, cart-pole swing-up in MuJoCo [return]"
EVALUATED = 20
"""Episodes of an evaluation, which count for nobody."""


def stand_in(task: PolicyTask, robot: int = 0) -> StandInEnv:
    """The real system."""
    nominal = {path: float(np.asarray(task.simulator.read(path))) for path in OUTSIDE}
    factors = {path: OUTSIDE[path] / nominal[path] for path in OUTSIDE}
    effects = RealEffects(factors, "RK4", 2, (0.01, 0.02), position_noise=2e-3, velocity_noise=0.02, offset=0.02)
    return StandInEnv(task, effects, robot=robot)


def identified_condition(policy: ConditionedPolicy, real: RealEnv) -> tuple[np.ndarray, dict[str, float]]:
    """Condition of the parameters that the logs of a real system tell."""
    bounds = {"bodies/pole.mass": (0.02, 2.0), "actuators/motor.gain": (0.2, 3.0)}
    fit = ts.identify(policy.task.simulator.model, real.logs, [*UNKNOWN, "actuators/motor.delay"], bounds=bounds)
    values = {path: float(fit.values[path]) for path in UNKNOWN}
    told = np.clip(ParameterCoordinates(policy.task).of_values(values), -1.0, 1.0)
    return told, values


def one_seed(quick: bool, seed: int) -> dict[str, np.ndarray]:
    """Real returns of every way to find the condition of one universal policy."""
    task, found = unknown_cart_pole(), dict[str, np.ndarray]()
    searched = 12 if quick else 30
    policy = train_universal(task, ConditionedTraining(steps=50_000 if quick else 6_000_000, seed=seed))
    osi = OsiOptions(rounds=1, epochs=1, seed=seed) if quick else OsiOptions(seed=seed)

    def keep(name: str, fixed) -> None:
        held_out = stand_in(task)
        held_out.reset(seed=10_000)
        found[name] = np.array([play_real(held_out, fixed) for _ in range(2 if quick else EVALUATED)])
        print(f"seed {seed}: {name} {found[name].mean():.3f}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        robot = stand_in(task)
        robot.reset(seed=seed)
        real = RealEnv(robot, period=task.period, folder=Path(folder))
        play_real(real, policy.conditioned(policy.nominal))
        condition, values = identified_condition(policy, real)
        print(f"identified from one episode: {values}", flush=True)
        keep("nominal parameters, 0 episodes", policy.conditioned(policy.nominal))
        keep("UP-OSI, 0 episodes", train_osi(policy, osi).runner())
        keep("identified, 1 episode", policy.conditioned(condition))
        options = AdaptOptions(seed=seed)
        then = adapt(policy, real, method="bayesian", episodes=searched // 3, start=condition, options=options)
        keep(f"identified, then searched, {1 + searched // 3} episodes", then.policy)
        for method in ("bayesian", "cma-es"):
            skipped = adapt(policy, real, method=method, episodes=searched, options=options)
            for count in sorted({searched // 3, searched}):
                fixed = policy.conditioned(skipped.search.incumbents[:count][-1])
                keep(f"{method} without identification, {count} episodes", fixed)
        real.close()
    return found


def run(setting: Setting) -> list[Row]:
    """Rows of returns after identification, after a short adaptation, and of searches without identification."""
    seeds = setting.over_seeds(one_seed, setting.quick)
    return [make_row(NAME, name, [each[name] for each in seeds]) for name in seeds[0]]
