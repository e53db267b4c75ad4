"""B4b: SimOpt on the swing-up of a Furuta pendulum, from a prior that is 30 % off.

Each of five iterations trains a policy with the present distribution, plays three real rollouts, and takes three steps
of relative entropy policy search. The real pendulum has other masses and a weaker motor, another integrator, half the
time step, latency, noise and an offset of its encoders.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.adaptation.rows import Row, Setting, make_row
from truesim.core.precision import float32
from truesim.physics.simulation import RungeKutta4
from truesim.policies import Environment, PolicyTask, PpoOptions, TrainedPolicy, make_task
from truesim.policies.adaptation import (
    ConditionedTraining,
    Gaussian,
    SimOptOptions,
    TaskBench,
    discrepancy,
    gap_closed,
    held_out_task,
    independent,
    learn,
    reps_step,
    robust_policy,
    simopt_round,
    to_randomization,
)
from truesim.policies.episodes import instants, observe
from truesim.policies.networks import apply_layers
from truesim.policies.tasks.furuta import ARM_RANGE

NAME = "B4b SimOpt, swing-up of a Furuta pendulum"
FACTORS = {"bodies/arm.mass": 1.15, "bodies/pendulum.mass": 1.15, "actuators/motor.gain": 0.85}
"""Real values relative to the robot file."""
PRIOR = {"bodies/arm.mass": 1.3, "bodies/pendulum.mass": 0.7, "actuators/motor.gain": 1.3}
"""Means of the prior relative to the real values: a motor that is too strong for a pendulum that is too light. Errors
of pendulum and motor in the same direction cancel in their ratio, and leave no gap to close."""
PRIOR_STD, FLOOR, LEAST_STD = 0.1, 0.015, 0.01
"""Standard deviation of the prior, the smallest one, and what it has to exceed, relative to the means."""
ITERATIONS, ROLLOUTS = 5, 3
SECONDS, PIECE = 3.0, 50
"""Part of a rollout that is compared [s], and control steps until simulation begins again from what was measured."""
STEPS, QUICK_STEPS = (4_000_000, 1_000_000), (16_384, 16_384)
"""Control steps of the first training, and of every later one, which continues; references have as many together."""
LEARNER = PpoOptions(activation="tanh", normalize=False, entropy=0.01, critic_sees_parameters=False)
LATENCY = (0.0, 0.01)
"""Range of delays for which all policies are trained [s]."""


def furuta_task() -> PolicyTask:
    """The task in simulation."""
    return dataclasses.replace(make_task("furuta-swingup"), latency=LATENCY)


def real_task(task: PolicyTask) -> PolicyTask:
    """The real system."""
    values = {path: factor * float(np.asarray(task.simulator.read(path))) for path, factor in FACTORS.items()}
    offset = np.array([5e-3, -5e-3])
    real = held_out_task(task, values, finer=2, latency=(0.004, 0.012), offset=offset, noise=1e-3)
    return dataclasses.replace(real, simulator=dataclasses.replace(real.simulator, integrator=RungeKutta4()))


class Pieces(NamedTuple):
    """Recorded rollouts, cut in pieces of equal length; leading axis pieces."""

    q: np.ndarray
    """Measured positions at every control step and at the end, (pieces, steps + 1, nq)."""
    v: np.ndarray
    """Velocities."""
    before: np.ndarray
    """Action before each piece, (pieces, na)."""
    counts: np.ndarray
    """False for pieces in which the arm has been at the end of its cable, where a real rollout ends."""

    @property
    def measured(self) -> np.ndarray:
        """Positions and velocities after each control step."""
        return np.concatenate([self.q, self.v], axis=-1)[:, 1:]


def recorded(task: PolicyTask, policy: TrainedPolicy, seed: int) -> Pieces:
    """Rollouts of a policy on the real system."""
    steps = PIECE * int(SECONDS / task.period / PIECE)
    with float32():
        environment = Environment(dataclasses.replace(task, terminations={}), ROLLOUTS)
        look = jax.jit(jax.vmap(lambda episode: instants(task, episode)[1]))
        episodes, outcome = environment.reset(seed)
        rows, actions = [], [np.zeros((ROLLOUTS, task.action_map.size))]
        for _ in range(steps):
            shown = look(episodes)
            rows.append((np.asarray(shown.q), np.asarray(shown.v)))
            actions.append(np.clip(np.asarray(policy.act(np.asarray(outcome.observation))), -1.0, 1.0))
            episodes, outcome = environment.step(episodes, actions[-1])
        shown = look(episodes)
        rows.append((np.asarray(shown.q), np.asarray(shown.v)))
    q, v = (np.stack([row[k] for row in rows], axis=1) for k in range(2))
    before = np.stack(actions, axis=1)
    starts = range(0, steps, PIECE)
    cut = lambda x: np.concatenate([x[:, s : s + PIECE + 1] for s in starts])  # noqa: E731
    ended = np.maximum.accumulate(np.abs(q[..., 0]) > ARM_RANGE, axis=1)
    counts = np.concatenate([~ended[:, s + PIECE] for s in starts])
    if not counts.any():
        counts[:ROLLOUTS] = True
    return Pieces(cut(q), cut(v), np.concatenate([before[:, s] for s in starts]), counts)


class PieceCost:
    """Discrepancy between real pieces and what a policy does from their first instants in simulation."""

    def __init__(self, task: PolicyTask, samples: int):
        """Compile for a number of samples."""
        pieces = ROLLOUTS * int(SECONDS / task.period / PIECE)
        middle = float(np.mean(task.latency))
        step = float(task.simulator.timestep)
        held = round(middle / step) * step
        randomization = to_randomization(prior(task), list(PRIOR))
        own = dataclasses.replace(task, terminations={}, latency=(held, held), randomization=randomization)
        self.samples, self.pieces = samples, pieces
        with float32():
            self._environment = Environment(own, samples * pieces)
            self._begun = self._environment.reset(0)
            self._play = jax.jit(self._scan)

    def _scan(self, layers, episodes):
        """Positions and velocities after each control step, (steps, batch, nq + nv)."""
        see = jax.vmap(lambda episode: observe(self._environment.task, episode)[0])

        def one(now, _):
            action = jnp.clip(apply_layers(layers, see(now), "tanh"), -1.0, 1.0)
            after, _ = self._environment.step(now, action)
            return after, jnp.concatenate([after.state.q, after.state.v], axis=-1)

        return jax.lax.scan(one, episodes, None, length=PIECE)[1]

    def __call__(self, policy: TrainedPolicy, pieces: Pieces, xi: np.ndarray) -> np.ndarray:
        """Cost of each row of parameters."""
        rows = np.resize(xi, (self.samples, xi.shape[1]))
        episodes = self._begun[0]
        tiled = lambda x: np.tile(np.asarray(x, np.float32), (self.samples, 1))  # noqa: E731
        parameters = {
            path: np.repeat(rows[:, k], self.pieces).astype(np.float32).reshape(np.shape(episodes.parameters[path]))
            for k, path in enumerate(PRIOR)
        }
        state = dataclasses.replace(episodes.state, q=tiled(pieces.q[:, 0]), v=tiled(pieces.v[:, 0]))
        actions = np.repeat(tiled(pieces.before)[:, None], np.shape(episodes.actions)[1], axis=1)
        episodes = dataclasses.replace(episodes, state=state, actions=actions, parameters=parameters)
        with float32():
            played = np.asarray(self._play(policy.layers, episodes), float)
        simulated = np.moveaxis(played, 0, 1).reshape(self.samples, self.pieces, PIECE, -1)[: len(xi)]
        scales = pieces.measured[pieces.counts].std(axis=(0, 1))
        return discrepancy(simulated, pieces.measured, scales)[:, pieces.counts].mean(axis=-1)


def prior(task: PolicyTask) -> Gaussian:
    """The distribution before any rollout."""
    mean = np.array([PRIOR[p] * FACTORS[p] * float(np.asarray(task.simulator.read(p))) for p in PRIOR])
    return independent(mean, PRIOR_STD * mean)


def randomized(task: PolicyTask, distribution: Gaussian) -> PolicyTask:
    """The task with a distribution of parameters."""
    low = 0.2 * distribution.mean
    return dataclasses.replace(task, randomization=to_randomization(distribution, list(PRIOR), low=low))


class Practice:
    """Policies that are trained one after the other, each from the one before."""

    def __init__(self, training: ConditionedTraining, start=None):
        """Begin from a state of PPO, or anew."""
        self.training, self.state = training, start

    def policy(self, task: PolicyTask, steps: int) -> TrainedPolicy:
        """Policy after some more control steps on a task."""
        more = dataclasses.replace(self.training, steps=steps)
        self.state = learn(task, more, start=self.state)
        return robust_policy(task, more, self.state)


def one_seed(quick: bool, seed: int) -> dict[str, float]:
    """Figures of one run: returns on the real system, and discrepancies on rollouts of the last policy."""
    task, (first, more), count = furuta_task(), (QUICK_STEPS if quick else STEPS), 1 if quick else ITERATIONS
    real, begun = real_task(task), prior(task)
    training = ConditionedTraining(LEARNER, seed=seed)
    options = SimOptOptions(samples=20 if quick else 200, floor=tuple(FLOOR * begun.mean), seed=seed)
    bench, cost, found = TaskBench(real, seed), PieceCost(task, options.samples), dict[str, float]()

    def keep(name: str, policy: TrainedPolicy) -> None:
        found[name] = float(bench.evaluate(policy).mean())
        print(f"seed {seed}: {name} {found[name]:.3f}", flush=True)

    practice, distribution = Practice(training), begun
    policy = practice.policy(randomized(task, begun), first)
    start = practice.state
    for k in range(count):
        pieces = recorded(real, policy, 100 * seed + k)
        step = lambda d, rng, p=policy, x=pieces: reps_step(d, lambda xi: cost(p, x, xi), options, rng)  # noqa: E731
        distribution = simopt_round(distribution, step, options)
        print(f"seed {seed}: mean / truth {distribution.mean / begun.mean * list(PRIOR.values())}", flush=True)
        policy = practice.policy(randomized(task, distribution), more)
        keep(f"SimOpt, {ROLLOUTS * (k + 1)} rollouts", policy)
    held_out = recorded(real, policy, 100 * seed + 99)
    before, after = (cost(policy, held_out, d.mean[None])[0] for d in (begun, distribution))
    nominal = independent(begun.mean, 1e-6 * begun.mean)
    keep("nominal", Practice(training).policy(randomized(task, nominal), first + count * more))
    keep("uniform randomization", Practice(training, start).policy(randomized(task, begun), count * more))
    keep("oracle", Practice(training, start).policy(real, count * more))
    truth = begun.mean / list(PRIOR.values())
    found["discrepancy, part that is gone"] = 1.0 - after / before
    found["smallest standard deviation / mean"] = float((distribution.std / np.abs(distribution.mean)).min())
    found["largest error of the mean / truth"] = float(np.abs(distribution.mean / truth - 1.0).max())
    return found


def run(setting: Setting) -> list[Row]:
    """Rows of returns, of the part of the gap that is closed, and of the distribution."""
    seeds = setting.over_seeds(one_seed, setting.quick)
    rows = [make_row(NAME, name, [np.array([each[name]]) for each in seeds]) for name in seeds[0]]
    last = [name for name in seeds[0] if name.startswith("SimOpt")][-1]
    required = {"discrepancy, part that is gone": 0.8, "smallest standard deviation / mean": LEAST_STD}
    rows = [row._replace(required=required.get(row.method)) for row in rows]
    if not setting.quick:
        closed = [gap_closed(np.array([each[last]]), each["nominal"], each["oracle"]) for each in seeds]
        rows.append(make_row(NAME, "gap closed", closed, required=0.9, episodes=ITERATIONS * ROLLOUTS))
    return rows
