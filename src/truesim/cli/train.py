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
        help="Learner: ppo, shac (gradients through the simulator), or ars (random search of a linear policy); by "
        "default the task's.",
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


def train(
    task: TaskName,
    out: OutputFolder,
    robot: RobotOfTask = None,
    randomize: RandomizeBy = None,
    learner: LearnerName = None,
    network: NetworkKind = None,
    steps: Steps = None,
    seed: Seed = 0,
    threads: Threads = 1,
    live: ShowLive = False,
    force: ReplaceFolder = False,
) -> None:
    """Train a policy for TASK, and write it as a folder: weights, description, and a runner for NumPy alone.

    An interrupted training continues from its checkpoint when the same command is given again. progress.csv has one
    row for every iteration. docs/policies.md has an example from logs to a policy.
    """
    check_folder(out, force, own="checkpoint.npz")
    budget = lazy.trained_policies.TrainBudget(steps, seed, threads, force, learner, network)
    log = out / "progress.csv"
    with lazy.live_pages.follow_log(log, task, messages()) if live else contextlib.nullcontext():
        lazy.trained_policies.train_policy(task, out, robot, randomize, budget)
