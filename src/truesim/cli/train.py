"""`truesim train`: a policy for a task."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import OutputFolder, ReplaceFolder, Seed, Threads
from truesim.cli.console import messages
from truesim.cli.outputs import check_folder

TaskName = Annotated[
    str,
    typer.Argument(
        help="Task: pendulum-swingup, cart-pole-balance, cart-pole-bias, cart-pole-swingup, furuta-swingup, "
        "acrobot-swingup, arm-reach, hopper-hop, drive-command, point-navigation, point-corners, point-rotation, "
        "quadruped-joystick, or go2-joystick (needs --robot).",
        metavar="TASK",
        show_default=False,
    ),
]
RobotOfTask = Annotated[
    Path | None,
    typer.Option(
        "--robot",
        help="Robot file, or the folder of a fit; by default the task's own robot.",
        metavar="FILE|FIT",
        show_default=False,
    ),
]
RandomizeBy = Annotated[
    Path | None,
    typer.Option(
        "--randomize",
        help="Randomization (TOML), the folder of `truesim posterior`, or of a fit, whose posterior is used.",
        metavar="FILE|FIT",
        show_default=False,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", min=1, help="Control steps of training; by default the task's.", show_default=False),
]
ShowLive = Annotated[
    bool,
    typer.Option("--live", help="Show returns and losses in a browser while it trains, on this machine only."),
]
LearnerName = Annotated[
    str | None,
    typer.Option(
        "--learner",
        help="Learner: ppo, shac (gradients through the simulator), ars (random search of a linear policy), distill "
        "(needs --teacher), or clone (needs --demonstrations); by default the task's.",
        metavar="NAME",
        show_default=False,
    ),
]
NetworkKind = Annotated[
    str | None,
    typer.Option(
        "--network",
        help="Network of the policy: mlp, or with a memory gru or lstm; by default the task's.",
        metavar="KIND",
        show_default=False,
    ),
]
TeacherPolicy = Annotated[
    Path | None,
    typer.Option(
        "--teacher", help="Policy to distill: the new one learns to act like it.", metavar="POLICY", show_default=False
    ),
]
RecordedEpisodes = Annotated[
    Path | None,
    typer.Option(
        "--demonstrations",
        help="Episodes to clone: a file of `truesim play --record`, a log of the robot, or a folder of logs.",
        metavar="FILE",
        show_default=False,
    ),
]
IsPrivileged = Annotated[
    bool,
    typer.Option(
        "--privileged", help="Let the policy see all observations without noise and all parameters: a teacher."
    ),
]


def train(
    task: TaskName,
    out: OutputFolder,
    robot: RobotOfTask = None,
    randomize: RandomizeBy = None,
    learner: LearnerName = None,
    network: NetworkKind = None,
    teacher: TeacherPolicy = None,
    demonstrations: RecordedEpisodes = None,
    privileged: IsPrivileged = False,
    steps: Steps = None,
    seed: Seed = 0,
    threads: Threads = 1,
    live: ShowLive = False,
    force: ReplaceFolder = False,
) -> None:
    """Train a policy for TASK, and write it as a folder: weights, description, and a runner for NumPy alone.

    An interrupted training continues from its checkpoint when the same command is given again. progress.csv has one
    row for every iteration. docs/policies.md has an example from logs to a policy.

    A teacher that knows what a robot cannot measure, and a student with a memory that learns from it:
    truesim train cart-pole-bias --privileged --out teacher
    truesim train cart-pole-bias --teacher teacher --network gru --out student
    """
    check_folder(out, force, own="checkpoint.npz")
    budget = lazy.trained_policies.TrainBudget(
        steps, seed, threads, force, learner, network, teacher, demonstrations, privileged
    )
    log = out / "progress.csv"
    with lazy.live_pages.follow_log(log, task, messages()) if live else contextlib.nullcontext():
        lazy.trained_policies.train_policy(task, out, robot, randomize, budget)
