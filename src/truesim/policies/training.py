"""Training of a policy for a task: budget, log, checkpoints, evaluation, and the folder of the result."""

import csv
import dataclasses
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.persistence.atomic import write_arrays
from truesim.core.persistence.journal import fingerprint
from truesim.core.precision import float32
from truesim.policies.environment import Environment
from truesim.policies.evaluation import Evaluation, TrialResult, hold_trial
from truesim.policies.learners.base import LearnerOptions, LearningState, carry_over
from truesim.policies.learners.ppo import PpoOptions
from truesim.policies.physics import physics_of
from truesim.policies.policy import POLICY_FILE, TrainedPolicy, describe, load_policy
from truesim.policies.task import PolicyTask

CHECKPOINT_FILE, LOG_FILE = "checkpoint.npz", "progress.csv"
REHEARSAL = 2 / 3
"""Part of a training in cheaper physics; larger takes less time, and leaves less for the contact that is asked for."""
SECONDS_BETWEEN_CHECKPOINTS = 20.0
"""Time between checkpoints [s]; larger loses more when the process is killed."""
COMMON_COLUMNS = ("steps", "cpu_seconds", "return", "length", "terminated", "reward")
"""Columns of the log before those of the learner; the last one is `evaluated_return`."""


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Budget and reproducibility of training."""

    steps: int = 4_000_000
    """Control steps."""
    longest: int | None = None
    """Control steps up to which training goes on until the trial of the task is passed; `steps` by default. If it never
    is, the policy of the best trial is the result."""
    seed: int = 0
    threads: int = 1
    """Threads of the physics."""
    evaluate_every: int = 10
    """Iterations between evaluations of the mean action; 0 for none."""
    evaluated: int = 64
    """Episodes of an evaluation."""
    stop_at_goal: bool = True
    """True to stop when the mean action reaches the task's goal."""
    rehearsal: float = REHEARSAL
    """Part of the control steps in the simulator of the task's rehearsal, if it has one."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.rehearsal <= 1.0:
            raise TruesimError(f"The part of training in the rehearsal is {self.rehearsal:g}; it must be in [0, 1].")
        if self.longest is not None and self.longest < self.steps:
            raise TruesimError(f"Training takes {self.steps} steps, and at the longest {self.longest}, which is less.")


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
    trial: TrialResult | None = None
    """Of the trial that was held after these steps, if there was one."""


class TrainingResult(NamedTuple):
    """Result of training."""

    policy: TrainedPolicy
    steps: int
    cpu_seconds: float
    evaluated_return: float
    reached_goal: bool
    trial: TrialResult | None = None
    """Trial of the policy, if the task has one."""


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
        self.fingerprint = fingerprint(
            task.name, task.robot, task.privileged, task.randomization.paths, learner, options.seed
        )
        self.trial = None if options.longest is None else task.trial
        self.most_steps = options.steps if self.trial is None else options.longest or options.steps
        self.kept: tuple[TrainedPolicy, TrialResult] | None = None
        """Policy of the best trial so far."""
        rehearsed = 0.0 if task.rehearsal is None else options.rehearsal * options.steps
        self._stages = [(rehearsed, task.rehearsal), (self.most_steps, None)]
        """Control steps at the end of each stage of training, and its simulator; None for the task's own."""
        self._enter(0 if rehearsed else 1)

    def _enter(self, stage: int) -> None:
        """Make the environment and the learner of a stage."""
        task, threads, simulator = self.task.for_training, self.options.threads, self._stages[stage][1]
        practice = task if simulator is None else dataclasses.replace(task, simulator=simulator)
        physics = physics_of(practice, self.learner.episodes, threads)
        self.stage = stage
        self.environment = Environment(practice, self.learner.episodes, physics=physics, threads=threads)
        self.learning = self.learner.make(self.environment)
        self.evaluate = None
        if self.options.evaluate_every and self.environment.is_traceable and simulator is None:
            self.evaluate = Evaluation(self.task, self.options.evaluated, self.learning)

    def run(self, callback: Callable[[TrainProgress], None] | None) -> TrainingResult:
        """Iterate until the budget is spent or the goal reached."""
        self.out.mkdir(parents=True, exist_ok=True)
        state, cpu_before = self._started()
        self._write_checkpoint(state, cpu_before)
        clock, o, evaluated, last, reached = _Clock(cpu_before), self.options, np.nan, np.nan, self._has_passed()
        with _CsvLog(self.out / LOG_FILE, self.learning.columns, int(state.steps)) as log:
            while int(state.steps) < self.most_steps and not reached:
                if int(state.steps) >= self._stages[self.stage][0]:
                    self._enter(self.stage + 1)
                    state = carry_over(state, self.learning.start(o.seed))
                    clock.pause()
                state, metrics = self.learning.iterate(state)
                numbers = {name: float(x) for name, x in metrics.items()}
                self._check(state, numbers)
                iteration = int(state.steps) // self.learning.steps_per_iteration
                clock.tick(int(state.steps))
                if self.evaluate is not None and iteration % o.evaluate_every == 0:
                    evaluated = float(np.mean(self.evaluate(state)))
                    reached = o.stop_at_goal and self.task.goal is not None and evaluated >= self.task.goal
                trial = self._tried(state)
                reached = reached or self._has_passed()
                if numbers.get("ended"):
                    last = numbers["return"] / numbers["ended"]
                log.write(int(state.steps), clock.cpu_seconds, numbers, evaluated)
                if callback is not None:
                    total = o.steps if int(state.steps) < o.steps else self.most_steps
                    speed = clock.steps_per_second(int(state.steps))
                    callback(TrainProgress(int(state.steps), total, clock.cpu_seconds, last, evaluated, speed, trial))
                if clock.is_time_to_save():
                    self._write_checkpoint(state, clock.cpu_seconds)
        self._write_checkpoint(state, clock.cpu_seconds)
        policy, trial = self.kept or (self.policy(state), None)
        policy.save(self.out)
        return TrainingResult(policy, int(state.steps), clock.cpu_seconds, evaluated, reached, trial)

    def _tried(self, state: LearningState) -> TrialResult | None:
        """Hold a trial if it is time for one; the policy is saved if it is the best so far."""
        steps, o = int(state.steps), self.options
        if self.trial is None or steps < o.steps:
            return None
        before = steps - self.learning.steps_per_iteration
        count, count_before = ((n - o.steps) // self.trial.every for n in (steps, before))
        if count == count_before and steps < self.most_steps:
            return None
        found = hold_trial(self.task, self.trial, self.learning, state)
        if self.kept is None or found.is_better_than(self.kept[1]):
            self.kept = self.policy(state, found), found
            self.kept[0].save(self.out)
        return found

    def _has_passed(self) -> bool:
        """True if a policy has passed the trial."""
        return self.trial is not None and self.kept is not None and self.kept[1].passes(self.trial)

    def policy(self, state: LearningState, trial: TrialResult | None = None) -> TrainedPolicy:
        """The policy at a state, with the trial that it was given."""
        weights, normalizer = jax.tree.map(np.asarray, self.learning.policy(state))
        training = {
            "steps": int(state.steps),
            "seed": self.options.seed,
            "learner": {"name": type(self.learner).__name__, **dataclasses.asdict(self.learner)},
            "randomized": list(self.task.randomization.paths),
            "trial": None if trial is None else trial._asdict(),
        }
        network = self.learner.policy_network
        layers, cell = (weights["layers"], weights["cell"]) if network.is_recurrent else (weights, [])
        description = describe(self.task, network.activation, layers, training, network)
        return TrainedPolicy(layers, normalizer, network.activation, description, network.kind, cell)

    def _started(self) -> tuple[LearningState, float]:
        """State to continue from, and the CPU time already spent."""
        path = self.out / CHECKPOINT_FILE
        if not path.is_file():
            return self.learning.start(self.options.seed), 0.0
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["fingerprint"]) != self.fingerprint:
                    raise TruesimError(
                        f"{self.out} holds the checkpoint of another training; give another folder, or --force."
                    )
                if int(file["stage"]) != self.stage:
                    self._enter(int(file["stage"]))
                self.kept = self._kept_before()
                leaves, structure = jax.tree.flatten(self.learning.start(self.options.seed))
                stored = [file[f"leaf{k}"] for k in range(len(leaves))]
                return jax.tree.unflatten(structure, stored), float(file["cpu_seconds"])
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise FileError(f"The checkpoint {path} cannot be read; delete it to begin anew ({error}).") from error

    def _kept_before(self) -> tuple[TrainedPolicy, TrialResult] | None:
        """Policy of the best trial that an interrupted training has held."""
        if self.trial is None or not (self.out / POLICY_FILE).is_file():
            return None
        policy = TrainedPolicy.of_runner(load_policy(self.out))
        held = policy.description["training"].get("trial")
        return None if held is None else (policy, TrialResult(**held))

    def _write_checkpoint(self, state: LearningState, spent: float) -> None:
        arrays = {f"leaf{k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(state))}
        arrays |= {"fingerprint": np.array(self.fingerprint), "cpu_seconds": np.array(spent)}
        arrays["stage"] = np.array(self.stage)
        write_arrays(self.out / CHECKPOINT_FILE, arrays)

    def _check(self, state: LearningState, numbers: dict[str, float]) -> None:
        """Refuse to go on with numbers that are not finite."""
        if all(np.isfinite(x) for x in numbers.values()):
            return
        bad = self.environment.bad_terms(state.episodes)
        named = f": {', '.join(bad)} of the task {self.task.name}" if bad else ""
        raise TruesimError(f"Training stopped, since rewards or observations are not finite{named}.")


class _Clock:
    """CPU time of a training, without the compilation of its first iteration, and its speed by wall clock."""

    def __init__(self, before: float):
        self._cpu, self._saved, self._begun = time.process_time() - before, time.monotonic(), (0.0, -1)
        self._before: float | None = before
        """CPU time until compilation began, while it goes on."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time so far [s]."""
        return time.process_time() - self._cpu if self._before is None else self._before

    def pause(self) -> None:
        """Leave out the next iteration, which compiles."""
        self._before = self.cpu_seconds

    def tick(self, steps: int) -> None:
        """End an iteration."""
        if self._before is not None:
            self._cpu, self._begun = time.process_time() - self._before, (time.monotonic(), steps)
            self._before = None

    def steps_per_second(self, steps: int) -> float:
        """Control steps per second since the last compilation."""
        when, first = self._begun
        return (steps - first) / max(time.monotonic() - when, 1e-9)

    def is_time_to_save(self) -> bool:
        """True if the last checkpoint is old."""
        if time.monotonic() - self._saved <= SECONDS_BETWEEN_CHECKPOINTS:
            return False
        self._saved = time.monotonic()
        return True


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
        ended = numbers.get("ended", 0.0) or np.nan
        values = {name: numbers.get(name, np.nan) for name in self._columns}  # cloning plays no episodes
        values |= {name: values[name] / ended for name in ("return", "length", "terminated")}
        values |= {"steps": steps, "cpu_seconds": round(cpu_seconds, 3), "evaluated_return": evaluated}
        self._writer.writerow([values[name] if name == "steps" else f"{values[name]:.6g}" for name in self._columns])
        self._file.flush()
