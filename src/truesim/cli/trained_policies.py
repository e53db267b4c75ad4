"""Work of `truesim train` and `truesim play`: the training with its progress, and printed results."""

import json
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from truesim import native
from truesim.cli.console import messages, results, titled_table
from truesim.cli.progress import SECONDS_BETWEEN_LINES
from truesim.core.errors import TruesimError
from truesim.identification.fit import Fit
from truesim.policies.demonstrations import RecordingPolicy
from truesim.policies.evaluation import TrialResult
from truesim.policies.learners import LearnerOptions
from truesim.policies.play import Played, PlayOptions, play
from truesim.policies.policy import check_policy, load_policy
from truesim.policies.privileged import privileged_task
from truesim.policies.randomization import Randomization, from_posterior
from truesim.policies.randomization_files import read_randomization
from truesim.policies.tasks import find_task, learner_named, make_task
from truesim.policies.training import CHECKPOINT_FILE, TrainOptions, TrainProgress, train


class TrainBudget(NamedTuple):
    """Choices of a training on the command line."""

    steps: int | None
    seed: int
    threads: int
    anew: bool
    """True to begin again where a checkpoint exists."""
    learner: str | None = None
    network: str | None = None
    teacher: Path | None = None
    demonstrations: Path | None = None
    privileged: bool = False


def train_policy(name: str, out: Path, robot: Path | None, randomize: Path | None, chosen: TrainBudget) -> None:
    """Train, with progress, and print what was reached."""
    entry, learner = find_task(name), _learner_of(name, chosen)
    use_compilation_cache()
    task = make_task(name, robot, None if randomize is None else randomization_of(randomize))
    task = privileged_task(task) if chosen.privileged else task
    if task.made_up:
        messages().print(f"Made up, as the robot's file has none: {escape(', '.join(task.made_up))}.", highlight=False)
    if chosen.anew:
        (out / CHECKPOINT_FILE).unlink(missing_ok=True)
    options = TrainOptions(
        steps=entry.steps if chosen.steps is None else chosen.steps,
        longest=entry.longest if chosen.steps is None and learner == entry.learner else None,
        seed=chosen.seed,
        threads=chosen.threads,
    )
    with _TrainingBar(messages()) as show:
        found = train(task, out, learner=learner, options=options, callback=show)
    console = results()
    reached = f", return of the mean action {found.evaluated_return:.3g}" if np.isfinite(found.evaluated_return) else ""
    goal = f" (goal {task.goal:g} reached)" if found.reached_goal and task.goal is not None else ""
    console.print(f"{found.steps} control steps in {found.cpu_seconds:.1f} CPU s{reached}{goal}.")
    if found.trial is not None:
        kept = "" if found.reached_goal else f" The policy is the best of its trials, after {found.trial.steps} steps."
        console.print(f"{_sentence(found.trial)}{kept}")
    console.print(f"Policy in {escape(str(out))}; try it with: truesim play {escape(str(out))} --in mujoco")


def _learner_of(name: str, chosen: TrainBudget) -> LearnerOptions:
    """Learner that the options ask for: a teacher is distilled, demonstrations are cloned."""
    if chosen.teacher is not None and chosen.demonstrations is not None:
        raise TruesimError("Give a teacher or demonstrations, not both: one policy imitates one of them.")
    learner, source = chosen.learner, chosen.teacher or chosen.demonstrations
    if source is not None and learner is None:
        learner = "distill" if chosen.teacher is not None else "clone"
    wrong = {"distill": chosen.demonstrations, "clone": chosen.teacher}.get(learner or "")
    if wrong is not None:
        raise TruesimError(
            "--learner distill imitates a policy (--teacher), clone recorded episodes (--demonstrations)."
        )
    return learner_named(name, learner, chosen.network, source=None if source is None else str(source.absolute()))


def play_policy(
    folder: Path, engine: str, robot: Path | None, options: PlayOptions, as_json: bool, record: Path | None = None
) -> None:
    """Play, print the result, and keep the episodes in a file if one is given."""
    policy = load_policy(folder)
    use_compilation_cache()
    said = policy.description
    task = make_task(said["task"], robot if robot is not None else said["robot"].get("robot"))
    task = privileged_task(task) if said.get("privileged") else task
    check_policy(policy, task)
    recording = RecordingPolicy(policy)
    played = play(recording, task, engine=engine, options=options)
    if record is not None:
        recording.demonstrations(played.steps(task.period)).save(record)
    if as_json:
        print(json.dumps(_document(played)))
        return
    _print_played(played, engine, task.goal)


def randomization_of(path: Path) -> Randomization:
    """Randomization of a TOML file, of a posterior's folder, or of a fit."""
    if (path / "fit.json").is_file():
        return from_posterior(Fit.load(path))
    return read_randomization(path)


def use_compilation_cache() -> None:
    """Keep what XLA compiles beside the native kernels, for this process."""
    jax.config.update("jax_compilation_cache_dir", str(native.cache_directory().parent / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _document(played: Played) -> dict[str, object]:
    tracking = {} if played.tracking is None else dict(zip(played.names, played.tracking.tolist(), strict=True))
    return {
        "returns": played.returns.tolist(),
        "seconds": played.seconds.tolist(),
        "terminated": played.terminated.tolist(),
        "tracking": tracking,
    }


def _print_played(played: Played, engine: str, goal: float | None) -> None:
    console, count = results(), len(played.returns)
    error = played.returns.std() / np.sqrt(count)
    console.print(
        f"{count} episodes in {engine}: return {played.returns.mean():.3g} ± {error:.2g}"
        + ("" if goal is None else f" (goal of the task {goal:g})")
    )
    fallen = int(played.terminated.sum())
    console.print(f"{fallen} of {count} ended early; the mean length is {played.seconds.mean():.3g} s.")
    if played.tracking is None:
        return
    table = titled_table("Commands", "command", "error relative to the command", right=True)
    for name, each in zip(played.names, played.tracking, strict=True):
        table.add_row(escape(name), f"{100 * each:.1f} %")
    console.print(table)


def _sentence(trial: TrialResult) -> str:
    """Sentence about a trial."""
    return (
        f"In a trial with randomized parameters {trial.terminated} of {trial.episodes} episodes ended early, and "
        f"commands were missed by up to {100 * trial.error:.0f} %."
    )


class _TrainingBar:
    """Progress of training: return, control steps per second and time left; lines where there is no terminal."""

    def __init__(self, console: Console):
        self._console, self._last = console, time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True)

    def __enter__(self) -> "_TrainingBar":
        if self._console.is_terminal:
            self._bar.start()
            self._bar.add_task("compiling", total=None)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def __call__(self, now: TrainProgress) -> None:
        """Show one iteration."""
        if now.trial is not None:
            self._console.print(f"{now.steps / 1e6:.2f} M steps: {_sentence(now.trial)}", highlight=False)
        rate = now.steps_per_second
        text = f"return {now.mean_return:.3g}" + (f", {rate / 1e3:.3g} k steps/s" if rate >= 1 else "")
        if self._console.is_terminal:
            self._bar.update(self._bar.task_ids[0], description=text, completed=now.steps, total=now.total_steps)
        elif time.monotonic() - self._last > SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            done = f"{now.steps / 1e6:.2f} of {now.total_steps / 1e6:.2f} M steps"
            left = f", {(now.total_steps - now.steps) / rate:.0f} s left" if rate >= 1 else ""
            self._console.print(f"{done}, {text}{left}", highlight=False)
