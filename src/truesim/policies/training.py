"""Training of a policy for a task: budget, log, checkpoints, evaluation, and the folder of the result."""

import csv
import dataclasses
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.persistence.atomic import write_arrays
from truesim.core.persistence.journal import fingerprint
from truesim.core.precision import float32
from truesim.policies.environment import Environment
from truesim.policies.learners.base import Learner, LearnerOptions, LearningState
from truesim.policies.learners.ppo import PpoOptions
from truesim.policies.networks import Normalizer
from truesim.policies.physics import physics_of
from truesim.policies.policy import TrainedPolicy, describe
from truesim.policies.task import PolicyTask

CHECKPOINT_FILE, LOG_FILE = "checkpoint.npz", "progress.csv"
SECONDS_BETWEEN_CHECKPOINTS = 20.0
"""Time between checkpoints [s]; larger loses more when the process is killed."""
COMMON_COLUMNS = ("steps", "cpu_seconds", "return", "length", "terminated", "reward")
"""Columns of the log before those of the learner; the last one is `evaluated_return`."""


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Budget and reproducibility of training."""

    steps: int = 4_000_000
    """Control steps."""
    seed: int = 0
    threads: int = 1
    """Threads of the physics."""
    evaluate_every: int = 10
    """Iterations between evaluations of the mean action; 0 for none."""
    evaluated: int = 64
    """Episodes of an evaluation."""
    stop_at_goal: bool = True
    """True to stop when the mean action reaches the task's goal."""


class TrainProgress(NamedTuple):
    """Numbers of a running training."""

    steps: int
    total_steps: int
    cpu_seconds: float
    """CPU time of the process since training began, compilation aside [s]."""
    mean_return: float
    """Of the episodes that ended last."""
    evaluated_return: float
    """Of the mean action; NaN before the first evaluation."""
    steps_per_second: float
    """By wall clock."""


class TrainingResult(NamedTuple):
    """Result of training."""

    policy: TrainedPolicy
    steps: int
    cpu_seconds: float
    evaluated_return: float
    reached_goal: bool


def train(
    task: PolicyTask,
    out: str | Path,
    *,
    learner: LearnerOptions | None = None,
    options: TrainOptions | None = None,
    callback: Callable[[TrainProgress], None] | None = None,
) -> TrainingResult:
    """Train a policy and write its folder; an interrupted training continues from its checkpoint.

    Args:
        task: The task.
        out: Folder of the policy, of the log `progress.csv` and of the checkpoint.
        learner: Options of the learner; PPO by default.
        options: Budget, seed, evaluation.
        callback: Called after every iteration.
    """
    learner, options = learner or PpoOptions(), options or TrainOptions()
    with float32():
        return _Training(task, Path(out), learner, options).run(callback)


class _Training:
    """A running training."""

    def __init__(self, task: PolicyTask, out: Path, learner: LearnerOptions, options: TrainOptions):
        self.task, self.out, self.learner, self.options = task, out, learner, options
        threads = options.threads
        practice = task.for_training
        self.environment = Environment(
            practice, learner.episodes, physics=physics_of(practice, learner.episodes, threads), threads=threads
        )
        self.learning = learner.make(self.environment)
        self.fingerprint = fingerprint(task.name, task.robot, task.randomization.paths, learner, options.seed)
        self.evaluate = None
        if options.evaluate_every and self.environment.is_traceable:
            self.evaluate = Evaluation(task, options.evaluated, self.learning)

    def run(self, callback: Callable[[TrainProgress], None] | None) -> TrainingResult:
        """Iterate until the budget is spent or the goal reached."""
        self.out.mkdir(parents=True, exist_ok=True)
        state, cpu_before = self._started()
        o, evaluated, last, reached = self.options, np.nan, np.nan, False
        self._write_checkpoint(state, cpu_before)
        cpu, wall, saved, first_steps = time.process_time() - cpu_before, time.monotonic(), time.monotonic(), None
        with _CsvLog(self.out / LOG_FILE, self.learning.columns, int(state.steps)) as log:
            while int(state.steps) < o.steps and not reached:
                state, metrics = self.learning.iterate(state)
                numbers = {name: float(x) for name, x in metrics.items()}
                self._check(state, numbers)
                iteration = int(state.steps) // self.learning.steps_per_iteration
                if first_steps is None:  # what came before was compilation
                    cpu, wall, first_steps = time.process_time() - cpu_before, time.monotonic(), int(state.steps)
                if self.evaluate is not None and iteration % o.evaluate_every == 0:
                    evaluated = float(np.mean(self.evaluate(state)))
                    reached = o.stop_at_goal and self.task.goal is not None and evaluated >= self.task.goal
                if numbers["ended"]:
                    last = numbers["return"] / numbers["ended"]
                spent = time.process_time() - cpu
                log.write(int(state.steps), spent, numbers, evaluated)
                speed = (int(state.steps) - first_steps) / max(time.monotonic() - wall, 1e-9)
                if callback is not None:
                    callback(TrainProgress(int(state.steps), o.steps, spent, last, evaluated, speed))
                if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
                    saved = time.monotonic()
                    self._write_checkpoint(state, spent)
        spent = time.process_time() - cpu
        self._write_checkpoint(state, spent)
        policy = self.policy(state)
        policy.save(self.out)
        return TrainingResult(policy, int(state.steps), spent, evaluated, reached)

    def policy(self, state: LearningState) -> TrainedPolicy:
        """The policy at a state."""
        weights, normalizer = jax.tree.map(np.asarray, self.learning.policy(state))
        training = {
            "steps": int(state.steps),
            "seed": self.options.seed,
            "learner": {"name": type(self.learner).__name__, **dataclasses.asdict(self.learner)},
            "randomized": list(self.task.randomization.paths),
        }
        network = self.learner.policy_network
        layers, cell = (weights["layers"], weights["cell"]) if network.is_recurrent else (weights, [])
        description = describe(self.task, network.activation, layers, training, network)
        return TrainedPolicy(layers, normalizer, network.activation, description, network.kind, cell)

    def _started(self) -> tuple[LearningState, float]:
        """State to continue from, and the CPU time already spent."""
        state, path = self.learning.start(self.options.seed), self.out / CHECKPOINT_FILE
        if not path.is_file():
            return state, 0.0
        leaves, structure = jax.tree.flatten(state)
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["fingerprint"]) != self.fingerprint:
                    raise TruesimError(
                        f"{self.out} holds the checkpoint of another training; give another folder, or --force."
                    )
                stored = [file[f"leaf{k}"] for k in range(len(leaves))]
                return jax.tree.unflatten(structure, stored), float(file["cpu_seconds"])
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise FileError(f"The checkpoint {path} cannot be read; delete it to begin anew ({error}).") from error

    def _write_checkpoint(self, state: LearningState, spent: float) -> None:
        arrays = {f"leaf{k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(state))}
        arrays |= {"fingerprint": np.array(self.fingerprint), "cpu_seconds": np.array(spent)}
        write_arrays(self.out / CHECKPOINT_FILE, arrays)

    def _check(self, state: LearningState, numbers: dict[str, float]) -> None:
        """Refuse to go on with numbers that are not finite."""
        if all(np.isfinite(x) for x in numbers.values()):
            return
        bad = self.environment.bad_terms(state.episodes)
        named = f": {', '.join(bad)} of the task {self.task.name}" if bad else ""
        raise TruesimError(f"Training stopped, since rewards or observations are not finite{named}.")


class Evaluation:
    """Returns of the mean action over one episode of each of a batch, always the same initial states."""

    def __init__(self, task: PolicyTask, episodes: int, learner: Learner, seed: int = 2**20):
        self._environment, self._learner = Environment(task, episodes, physics=physics_of(task, episodes)), learner
        self._start = self._environment.reset(seed)
        self._memory = learner.network.memory(episodes)
        self._step = jax.jit(learner.network.step)
        self._play = self._environment.compiled_play(lambda weights, start: self._returns(task.steps, weights, start))

    def __call__(self, state: LearningState) -> np.ndarray:
        """Returns of all episodes."""
        return np.asarray(self._play(self._learner.policy(state), self._start))

    def _returns(self, steps: int, policy: tuple[Any, Normalizer], start: Any) -> Any:
        weights, normalizer = policy

        def one(carry: Any, _: None) -> tuple[Any, None]:
            episodes, outcome, memory, total, alive = carry
            memory, action = self._step(weights, memory, normalizer(outcome.observation))
            episodes, outcome = self._environment.step(episodes, action)
            total = total + alive * outcome.reward
            alive = jnp.where(outcome.terminated | outcome.truncated, 0.0, alive)
            return (episodes, outcome, memory, total, alive), None

        episodes, outcome = start
        carry = (episodes, outcome, self._memory, 0.0 * outcome.reward, jnp.ones(outcome.reward.shape))
        return self._environment.scan(one, carry, length=steps)[0][3]


class _CsvLog:
    """Table of the progress, one row per iteration; a continued training drops rows beyond its checkpoint."""

    def __init__(self, path: Path, own: tuple[str, ...], steps: int):
        self._columns = (*COMMON_COLUMNS, *own, "evaluated_return")
        rows: list[list[str]] = []
        if steps and path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                rows = [row for row in list(csv.reader(file))[1:] if row and int(row[0]) <= steps]
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        self._writer.writerows([self._columns, *rows])

    def __enter__(self) -> "_CsvLog":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, steps: int, cpu_seconds: float, numbers: dict[str, float], evaluated: float) -> None:
        """Append a row and hand it to the operating system."""
        ended = numbers["ended"] or np.nan
        values = {**numbers, **{name: numbers[name] / ended for name in ("return", "length", "terminated")}}
        values |= {"steps": steps, "cpu_seconds": round(cpu_seconds, 3), "evaluated_return": evaluated}
        self._writer.writerow([values[name] if name == "steps" else f"{values[name]:.6g}" for name in self._columns])
        self._file.flush()
