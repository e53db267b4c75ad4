"""B5 and B8 on a planar hopper: unknown friction and payload, and a real system with another contact model.

Training has compliant contact. The real hopper has MuJoCo's, a slippery floor and a payload beyond the training
range, a weaker motor within it, half the time step, and latency. Contact alone leaves no gap on flat ground.
"""

import dataclasses

import numpy as np

from experiments.adaptation.rows import Row, Setting, make_row, stopwatch
from truesim.physics.contact.models.implicit_compliant import ImplicitCompliantContact
from truesim.physics.simulation import Simulator
from truesim.policies import PolicyTask, PpoOptions, Randomization, log_uniform, make_task, uniform
from truesim.policies.adaptation import (
    ConditionedTraining,
    LeaderboardOptions,
    OnlineLoop,
    OsiOptions,
    PolicyShelf,
    TaskBench,
    gap_closed,
    held_out_task,
    method_curve,
    train_robust,
)

WITHIN, REAL = "B5 UP-OSI, hopper with unknown friction", "B8 strategy optimization, hopper with another contact model"
FRICTION = "geoms/foot.friction[0],geoms/floor.friction[0]"
UNKNOWN = {
    FRICTION: log_uniform(0.4, 1.2),
    "bodies/torso.mass": uniform(0.8, 1.6, "scale"),
    "actuators/*.gain": uniform(0.8, 1.2, "scale"),
}
OUTSIDE = {"friction": 0.3, "torso": 1.8, "gain": 0.9}
"""Real friction, and factors on the mass of the torso and on the gains: the first two are beyond their ranges."""
LATENCY, REAL_LATENCY = (0.0, 0.008), (0.008, 0.016)
"""Ranges of the delay of actions in training and on the real system [s]."""
LEARNER = PpoOptions(activation="tanh", normalize=False, entropy=0.005)
COUNTS = (0, 10, 20, 50)
"""Real episodes after which searches are compared."""
EPISODES, HELD_OUT = 256, 777
"""Episodes of an evaluation within the range, and their seed."""


def compliant_hopper() -> PolicyTask:
    """The task in simulation."""
    task = make_task("hopper-hop", None, Randomization(UNKNOWN))
    model = task.simulator.model
    simulator = Simulator.of(model, contact=ImplicitCompliantContact.of(model))
    return dataclasses.replace(task, simulator=simulator, latency=LATENCY)


def real_hopper() -> PolicyTask:
    """The real system: MuJoCo's contact."""
    task = make_task("hopper-hop")
    read = lambda path: float(np.asarray(task.simulator.read(path)))  # noqa: E731
    values = dict.fromkeys(FRICTION.split(","), OUTSIDE["friction"])
    values["bodies/torso.mass"] = OUTSIDE["torso"] * read("bodies/torso.mass")
    gains = (f"actuators/{name}.gain" for name in task.simulator.model.actuators.names)
    values |= {path: OUTSIDE["gain"] * read(path) for path in gains}
    return held_out_task(task, values, finer=2, latency=REAL_LATENCY)


def one_seed(quick: bool, seed: int) -> dict[str, np.ndarray]:
    """Returns within the range, and on the real system."""
    task, spent = compliant_hopper(), []
    training = ConditionedTraining(LEARNER, 30_000 if quick else 6_000_000, seed)
    osi = OsiOptions(rounds=1, epochs=1, seed=seed) if quick else OsiOptions(seed=seed)
    options = LeaderboardOptions(COUNTS[:2] if quick else COUNTS, 1 if quick else 5, training=training, osi=osi)
    shelf, bench = PolicyShelf(task, options), TaskBench(real_hopper(), seed, 16 if quick else 256)
    with stopwatch(spent):
        online = shelf.online("universal")
    loop = OnlineLoop(online.policy, online.network, EPISODES)
    found = {name: loop.returns(online.weights, HELD_OUT, truth=name == "told") for name in ("told", "UP-OSI")}
    robust = train_robust(task, training)
    nominal = train_robust(dataclasses.replace(task, randomization=Randomization()), training)
    fixed = {"nominal": nominal, "uniform randomization": robust, "oracle": train_robust(bench.task, training)}
    fixed |= {"UP-OSI": online}
    found |= {f"real, {name}": np.array([bench.evaluate(policy).mean()]) for name, policy in fixed.items()}
    print(f"seed {seed}:", {name: round(float(x.mean()), 2) for name, x in found.items()}, flush=True)
    for method in ("so-cma", "so-random"):
        curve = method_curve(method, shelf, bench)
        found |= {f"real, {method}, {count} episodes": curve.returns[:, k] for k, count in enumerate(curve.counts)}
    print(f"seed {seed}:", {name: round(float(x.mean()), 2) for name, x in found.items()}, flush=True)
    return found | {"CPU s": np.array(spent)}


def run(setting: Setting) -> list[Row]:
    """Rows of both benchmarks."""
    seeds = setting.over_seeds(one_seed, setting.quick)
    seconds = float(np.mean([each["CPU s"] for each in seeds]))
    rows = [make_row(WITHIN, name, [each[name] for each in seeds]) for name in ("told", "UP-OSI")]
    ratio = [1 - (each["told"] - each["UP-OSI"]) / each["told"].mean() for each in seeds]
    rows.append(make_row(WITHIN, "UP-OSI, part of told", ratio, required=0.95, seconds=seconds))
    for name in [name for name in seeds[0] if name.startswith("real, ")]:
        short = name.removeprefix("real, ")
        rows.append(make_row(REAL, f"{short} [return]", [each[name] for each in seeds]))
        if not setting.quick and short not in ("nominal", "oracle"):
            ends = [(float(each["real, nominal"].mean()), float(each["real, oracle"].mean())) for each in seeds]
            closed = [gap_closed(each[name], *pair) for each, pair in zip(seeds, ends, strict=True)]
            rows.append(make_row(REAL, f"{short} [gap closed]", closed))
    return rows
