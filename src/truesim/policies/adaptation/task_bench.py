"""A held-out variant of a task in the place of the real system: compiled, so that episodes take milliseconds.

It is for comparing methods. For a robot use `RealEnv`, for a stand-in that is no part of truesim `StandInEnv`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.policies.adaptation.online import OnlinePolicy
from truesim.policies.environment import Environment
from truesim.policies.networks import apply_layers
from truesim.policies.physics import physics_of
from truesim.policies.policy import TrainedPolicy
from truesim.policies.randomization import Randomization
from truesim.policies.task import Instant, PolicyTask


def held_out_task(
    task: PolicyTask,
    values: Mapping[str, float],
    *,
    finer: int = 1,
    latency: tuple[float, float] | None = None,
    offset: Float[np.ndarray, " nq"] | None = None,
    noise: float = 0.0,
) -> PolicyTask:
    """The task on another robot.

    Args:
        task: The task.
        values: Parameters of the robot by path.
        finer: Time steps of the robot for each time step of the task.
        latency: Range of the delay of actions [s]; none by default.
        offset: Offsets of the encoders, one for each coordinate [rad, m].
        noise: Standard deviation of measured positions [rad, m].
    """
    simulator = dataclasses.replace(task.simulator, timestep=task.simulator.timestep / finer).replace(dict(values))
    size = task.simulator.model.nq
    shift = np.zeros(size) if offset is None else np.asarray(offset, float)

    def instruments(now: Instant, draw: Any) -> Instant:
        q = now.q + jnp.asarray(shift, now.q.dtype) + draw.normal(0.0, noise, (size,))
        return dataclasses.replace(now, state=dataclasses.replace(now.state, q=q))

    return dataclasses.replace(
        task,
        simulator=simulator,
        randomization=Randomization(),
        latency=latency or (0.0, 0.0),
        change_interval=np.inf,
        instruments=instruments,
    )


class TaskBench:
    """Episodes of a task that count (`episode`), and evaluations that do not (`evaluate`)."""

    def __init__(self, task: PolicyTask, seed: int = 0, evaluated: int = 256):
        """Compile.

        Args:
            task: The held-out task.
            seed: Seed of the episodes that count.
            evaluated: Episodes of an evaluation, which are always the same.
        """
        self.task, self.seed, self.evaluated = task, seed, evaluated
        self.played = 0
        """Episodes that counted so far."""
        with float32():
            self._one, self._many = (Environment(task, n, physics=physics_of(task, n)) for n in (1, evaluated))
        self._single = self._one.compiled_play(lambda layers, start: _total(self._one, layers, start))
        self._batch = self._many.compiled_play(lambda layers, start: _total(self._many, layers, start))

    def episode(self, policy: TrainedPolicy) -> float:
        """Return of one episode, which counts."""
        self.played += 1
        with float32():
            seed = int(np.random.SeedSequence([self.seed, self.played]).generate_state(1)[0])
            start = self._one.reset(seed)
            return float(self._single(policy.layers, start)[0])

    def evaluate(self, policy: TrainedPolicy | OnlinePolicy) -> Float[np.ndarray, " episodes"]:
        """Returns of all episodes of an evaluation."""
        with float32():
            start = self._many.reset(2**21)
            if isinstance(policy, TrainedPolicy):
                return np.asarray(self._batch(policy.layers, start), float)
            return self._play(policy.runner(self.evaluated), start)

    def _play(self, runner: Any, start: tuple[Any, Any]) -> Float[np.ndarray, " episodes"]:
        """Returns of a policy with a memory, step by step."""
        episodes, outcome = start
        total, alive = np.zeros(self.evaluated), np.ones(self.evaluated)
        for _ in range(self.task.steps):
            episodes, outcome = self._many.step(episodes, runner.act(np.asarray(outcome.observation)))
            total += alive * np.asarray(outcome.reward)
            alive = alive * ~(np.asarray(outcome.terminated) | np.asarray(outcome.truncated))
        return total


@jax.jit
def _act(layers: Any, observation: Array) -> Array:
    return apply_layers(layers, observation, "tanh")


def _total(environment: Environment, layers: Any, start: tuple[Any, Any]) -> Array:
    """Returns of a perceptron with tanh, over one episode each."""

    def one(carry: Any, _: None) -> tuple[Any, None]:
        episodes, outcome, total, alive = carry
        episodes, outcome = environment.step(episodes, _act(layers, outcome.observation))
        total = total + alive * outcome.reward
        return (episodes, outcome, total, jnp.where(outcome.terminated | outcome.truncated, 0.0, alive)), None

    episodes, outcome = start
    carry = (episodes, outcome, jnp.zeros(environment.batch), jnp.ones(environment.batch))
    return environment.scan(one, carry, length=environment.task.steps)[0][2]
