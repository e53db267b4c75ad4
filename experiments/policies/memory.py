"""What memory and randomization are worth: cart-pole swing-up without velocities, on robots with unknown parameters.

`python -m experiments.policies.memory [--seeds 1] [--robots 4] [--steps 4000000] [--quick]`

The policy sees the cart's place, the pole's angle and its own last action, with noise. The motor's gain is 0.5 to 2
times nominal (log-uniform), mass and center of mass of the pole 0.5 to 2 times, and actions arrive up to 3 control
steps late. Robots are MuJoCo at level R1 (other integrator, half the time step, jitter, noise, offsets) with parameters
and a latency of their own within these ranges. Policies have about as many weights. The oracle of a robot is trained in
its parameters and latency, and sees velocities. No episode on a robot is used for training.
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from experiments.recorded import show
from truesim.bridges.real.stand_in import real_task
from truesim.bridges.real.stand_in_physics import RealEffects, effects_of
from truesim.cli.trained_policies import use_compilation_cache
from truesim.core.typing import Array
from truesim.policies import Observation, PolicyTask, PpoOptions, Randomization, TrainOptions, make_task, play, train
from truesim.policies.gap import RealReturns
from truesim.policies.play import PlayOptions
from truesim.policies.policy import load_policy
from truesim.policies.randomization import log_uniform, uniform
from truesim.policies.task import Instant, Memory
from truesim.policies.tasks import find_task

GAIN, MASS, LENGTH = "actuators/motor.gain", "bodies/pole.mass", "bodies/pole.com"
"""Paths of the unknown parameters."""
LOW, HIGH = 0.5, 2.0
"""Range of their factors."""
LATENCY, JITTER = 0.06, 0.008
"""Longest latency, and the width of the range in which that of one robot varies [s]."""
HISTORY = 8
"""Control steps that the policy with a history sees."""
NOISE = 0.05
"""Half width of the noise of observations, relative to the cart's rail and to the pole's sine."""
FIRST_EPISODE = 5000
"""Seed of the episodes that count."""
HIDDEN = {"no randomization": (150, 150), "feed-forward": (150, 150), "history": (140, 140), "gru": (64,)}
"""Hidden layers of the policies: 23 to 26 thousand weights each."""


def measured(now: Instant) -> Array:
    """Place of the cart, direction of the pole and last action."""
    return jnp.concatenate([jnp.stack([now.q[0], jnp.cos(now.q[1]), jnp.sin(now.q[1])]), now.action])


def partial_task(randomized: bool, history: bool = False) -> PolicyTask:
    """The swing-up without velocities."""
    task = dataclasses.replace(make_task("cart-pole-swingup"), goal=None)
    seen = {"measured": Observation(measured, noise=NOISE)}
    memory = None
    if history:
        seen["before"] = Observation(lambda now: now.memory.ravel(), noise=NOISE)
        memory = Memory(
            lambda now, draw: jnp.tile(measured(now), (HISTORY - 1, 1)),
            lambda now: jnp.concatenate([measured(now)[None], now.memory[:-1]]),
        )
    hidden = {"velocity": dataclasses.replace(task.observations["velocity"], privileged=True)}
    ranges = {GAIN: log_uniform(LOW, HIGH, "scale")} | {x: uniform(LOW, HIGH, "scale") for x in (MASS, LENGTH)}
    return dataclasses.replace(
        task,
        observations=seen | hidden,
        memory=memory,
        randomization=Randomization(ranges if randomized else {}),
        latency=(0.0, LATENCY) if randomized else (0.0, 0.0),
    )


def robot_effects(number: int) -> RealEffects:
    """A robot: its factors and its latency."""
    rng = np.random.default_rng([number, 7])
    factors = {GAIN: float(np.exp(rng.uniform(np.log(LOW), np.log(HIGH))))}
    factors |= {path: float(rng.uniform(LOW, HIGH)) for path in (MASS, LENGTH)}
    late = float(rng.uniform(0.0, LATENCY - JITTER))
    return dataclasses.replace(
        effects_of(make_task("cart-pole-swingup"), "R1", number), factors=factors, latency=(late, late + JITTER)
    )


def oracle_task(effects: RealEffects) -> PolicyTask:
    """The swing-up with velocities, in the parameters and latency of a robot."""
    task = dataclasses.replace(make_task("cart-pole-swingup"), goal=None)
    simulator = task.simulator
    values = {path: jnp.asarray(simulator.read(path)) * factor for path, factor in effects.factors.items()}
    seen = {**task.observations, "last action": Observation(lambda now: now.action)}
    return dataclasses.replace(task, simulator=simulator.replace(values), observations=seen, latency=effects.latency)


def trained(task: PolicyTask, role: str, folder: Path, steps: int, seed: int) -> Path:
    """Folder of a policy."""
    learner: PpoOptions = dataclasses.replace(
        find_task("cart-pole-swingup").learner,
        network="gru" if role == "gru" else "mlp",
        hidden=HIDDEN.get(role, (64, 64)),
    )
    train(task, folder, learner=learner, options=TrainOptions(steps=steps, seed=seed, evaluate_every=0))
    return folder


def returns(folder: Path, task: PolicyTask, robots: dict[int, RealEffects], episodes: int) -> np.ndarray:
    """Returns on all robots, robot after robot."""
    policy, options = load_policy(folder), PlayOptions(episodes=episodes, seed=FIRST_EPISODE)
    return np.concatenate(
        [play(policy, real_task(task, effects, k), options=options).returns for k, effects in robots.items()]
    )


def run(
    out: Path, seeds: int, robots: dict[int, RealEffects], steps: int, episodes: int
) -> dict[str, list[np.ndarray]]:
    """Returns on the robots by policy, one array for each seed."""
    found = dict[str, list[np.ndarray]]()
    for role in HIDDEN:
        task = partial_task(role != "no randomization", role == "history")
        for seed in range(seeds):
            folder = trained(task, role, out / f"{role}-{seed}", steps, seed)
            found.setdefault(role, []).append(returns(folder, task, robots, episodes))
    own = []
    for k, effects in robots.items():
        task = oracle_task(effects)
        folder = trained(task, "oracle", out / f"oracle-{k}", steps, k)
        own.append(returns(folder, task, {k: effects}, episodes))
    return {**found, "oracle": [np.concatenate(own)]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each policy")
    parser.add_argument("--robots", type=int, default=4, help="robots, each with an oracle")
    parser.add_argument("--steps", type=int, default=4_000_000, help="control steps of a training")
    parser.add_argument("--episodes", type=int, default=12, help="episodes on each robot")
    parser.add_argument("--quick", action="store_true", help="a few updates of each training, to see that all runs")
    parser.add_argument("--out", type=Path, help="folder of the policies")
    options = parser.parse_args()
    if options.quick:
        options.robots, options.steps, options.episodes = 1, 40_000, 2
    use_compilation_cache()
    robots = {k: robot_effects(k) for k in range(options.robots)}
    found = run(options.out or Path(tempfile.mkdtemp()), options.seeds, robots, options.steps, options.episodes)
    rows = []
    for role, each in found.items():
        real = RealReturns({"policy": each, "nominal": found["no randomization"], "oracle": found["oracle"]})
        mean, closed = real.mean("policy"), real.gap_closed()
        parts = ("", "") if closed is None else (closed.value, f"[{closed.low:.2f}, {closed.high:.2f}]")
        rows.append((role, mean.value, f"[{mean.low:.2f}, {mean.high:.2f}]", *parts))
    show(f"Returns on {len(robots)} robots", ("policy", "mean", "95 %", "gap closed", "95 %"), rows)


if __name__ == "__main__":
    main()
