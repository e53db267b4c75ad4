"""CPU time of a control step with a policy, against `mujoco.rollout` and gymnasium's vector environment.

`python -m experiments.policies.throughput [--menagerie DIR] [--cart-pole] [--rounds 5]`

All take four time steps of 5 ms in a control step, and have a policy of 64 x 64 units: ours in XLA inside of one `jit`,
theirs in NumPy. That of ours has observation, noise, latency, reward, end and automatic reset too; `mujoco.rollout` has
physics only. Measurements take turns in one process, and the shortest CPU time of each counts, all threads together.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from experiments.policies.peers import GymnasiumPeer, RolloutPeer
from experiments.recorded import show
from truesim.cli.trained_policies import use_compilation_cache
from truesim.core.precision import float32
from truesim.physics.simulation import Simulator
from truesim.policies import Environment, PolicyTask, PpoOptions, Randomization, make_task
from truesim.policies.physics import physics_of
from truesim.policies.tasks import find_task

BATCH, STEPS = 1024, 24
"""Episodes that are played at once, and control steps of a measurement."""
PEER_BATCH, PEER_STEPS, VECTOR_BATCH = 256, 8, 16
"""The same for the peers, which take longer."""
HEADER = ("control step with policy", "us", "mujoco.rollout us", "gymnasium us", "times", "times")


class Timed(NamedTuple):
    """A function to measure, and the control steps that it makes."""

    run: Callable[[], object]
    steps: int


def playing(task: PolicyTask, threads: int = 1, batch: int = BATCH) -> Timed:
    """Control steps of ours with a policy that is sampled, as a learner collects them."""
    learner = PpoOptions(episodes=batch, horizon=STEPS, activation="tanh", normalize=False)
    environment = Environment(task, batch, physics=physics_of(task, batch, threads), threads=threads)
    learning = learner.make(environment)
    state = learning.start(0)
    act = jax.jit(learning.network.step)

    def one(carry: tuple, key: jax.Array) -> tuple[tuple, jax.Array]:
        episodes, outcome, memory = carry
        memory, mean = act(state.weights["actor"], memory, outcome.observation)
        episodes, outcome = environment.step(episodes, mean + jax.random.normal(key, mean.shape))
        return (episodes, outcome, memory), outcome.reward

    play = environment.compiled_play(lambda carry, keys: environment.scan(one, carry, keys))
    keys = jax.random.split(jax.random.PRNGKey(0), STEPS)
    carry = (state.episodes, state.outcome, state.memory)
    return Timed(lambda: jax.block_until_ready(play(carry, keys)), batch * STEPS)


def training(task: PolicyTask, learner: PpoOptions) -> Timed:
    """Iterations of PPO: control steps and updates."""
    learning = learner.make(Environment(task, learner.episodes, physics=physics_of(task, learner.episodes)))
    start = learning.start(0)
    return Timed(lambda: jax.block_until_ready(learning.iterate(start)[0]), learning.steps_per_iteration)


def shortest(measured: dict[str, Timed], rounds: int) -> dict[str, float]:
    """CPU time of a control step [us], the shortest of some rounds in which all take turns."""
    best = dict.fromkeys(measured, np.inf)
    for each in measured.values():
        each.run()
    for _ in range(rounds):
        for name, each in measured.items():
            begin = time.process_time()
            each.run()
            best[name] = min(best[name], (time.process_time() - begin) / each.steps * 1e6)
    return best


def peers(task: PolicyTask) -> dict[str, Timed]:
    """`mujoco.rollout` and gymnasium on a task."""
    rolled, vector = RolloutPeer(task, PEER_BATCH), GymnasiumPeer(task, VECTOR_BATCH)
    return {
        "mujoco.rollout": Timed(lambda: rolled.play(PEER_STEPS), PEER_BATCH * PEER_STEPS),
        "gymnasium": Timed(lambda: vector.play(PEER_STEPS), VECTOR_BATCH * PEER_STEPS),
    }


def soft(task: PolicyTask) -> PolicyTask:
    """A task in the physics of its rehearsal."""
    assert task.rehearsal is not None, "quadrupeds have one"
    return dataclasses.replace(task, simulator=task.rehearsal)


def finer(task: PolicyTask, timestep: float) -> PolicyTask:
    """A task without contact at another time step [s]."""
    return dataclasses.replace(task, simulator=Simulator.of(task.simulator.model, timestep=timestep, contact=None))


def constant(task: PolicyTask) -> PolicyTask:
    """A task whose parameters are the same in every episode."""
    return dataclasses.replace(task, randomization=Randomization())


def against_peers(tasks: dict[str, tuple[PolicyTask, int]], peer_of: PolicyTask, rounds: int) -> list[tuple]:
    """Rows of our variants of a task beside the peers.

    Args:
        tasks: Our tasks, and the threads of each.
        peer_of: Task whose robot the peers simulate.
        rounds: Rounds of which the shortest counts.
    """
    found = shortest({name: playing(*each) for name, each in tasks.items()} | peers(peer_of), rounds)
    theirs = found["mujoco.rollout"], found["gymnasium"]
    return [(name, found[name], *theirs, *(x / found[name] for x in theirs)) for name in tasks]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--menagerie", type=Path, help="folder of MuJoCo Menagerie, for Go2")
    parser.add_argument("--cart-pole", action="store_true", help="measure only the cart-pole against its peers")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions, of which the shortest counts")
    options = parser.parse_args()
    use_compilation_cache()
    with float32():
        cart_pole, quadruped = finer(make_task("cart-pole-swingup"), 0.005), make_task("quadruped-joystick")
        rows = against_peers({"cart-pole": (cart_pole, 1)}, cart_pole, options.rounds)
        if options.cart_pole:
            show("CPU time of a control step", HEADER, rows)
            return
        rows += against_peers({"own quadruped, compliant": (soft(quadruped), 1)}, quadruped, options.rounds)
        if options.menagerie is not None:
            go2 = make_task("go2-joystick", options.menagerie / "unitree_go2" / "scene.xml")
            ours = {"Go2, contact of the file, 2 threads": (go2, 2), "Go2, compliant, 2 threads": (soft(go2), 2)}
            rows += against_peers(ours, go2, options.rounds)
        show("CPU time of a control step", HEADER, rows)
        within = {"randomized": playing(soft(quadruped)), "constant": playing(constant(soft(quadruped)))}
        within |= {"exact, randomized": playing(quadruped), "exact, constant": playing(constant(quadruped))}
        learner = find_task("cart-pole-swingup").learner
        within |= {
            kind: training(cart_pole, dataclasses.replace(learner, network=kind, hidden=hidden))
            for kind, hidden in (("mlp", (64, 64)), ("gru", (64,)))
        }
        us = shortest(within, options.rounds)
    pairs = (
        ("parameters of each episode, compliant contact", "randomized", "constant"),
        ("parameters of each episode, contact of the file", "exact, randomized", "exact, constant"),
        ("training of a GRU of 64 units against an MLP of 64 x 64", "gru", "mlp"),
    )
    table = [(name, us[a], us[b], us[a] / us[b]) for name, a, b in pairs]
    show("Cost of what is added", ("what", "us", "us without", "times"), table)


if __name__ == "__main__":
    main()
