"""`truesim play`: a trained policy in simulation."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import AsJson, Seed
from truesim.cli.train import RobotOfTask

PolicyFolder = Annotated[
    Path, typer.Argument(help="Folder that `truesim train` wrote.", metavar="POLICY", show_default=False)
]
Engine = Annotated[
    str, typer.Option("--in", help="Simulator: truesim, or mujoco with the robot file's own time step.", metavar="NAME")
]
Episodes = Annotated[int, typer.Option("--episodes", min=1, help="Number of episodes.")]
Latency = Annotated[
    float | None,
    typer.Option("--latency", help="Delay of actions, in s; by default the longest of the task.", show_default=False),
]
Noise = Annotated[bool, typer.Option("--noise", help="Add the noise of training to observations.")]
Pushed = Annotated[bool, typer.Option("--pushes", help="Push the robot as in training.")]
RecordFile = Annotated[
    Path | None,
    typer.Option(
        "--record",
        help="Keep observations and actions in this file (NPZ), for `truesim train --demonstrations`.",
        metavar="FILE",
        show_default=False,
    ),
]


def play(
    policy: PolicyFolder,
    engine: Engine = "truesim",
    episodes: Episodes = 20,
    robot: RobotOfTask = None,
    latency: Latency = None,
    noise: Noise = False,
    pushes: Pushed = False,
    seed: Seed = 0,
    record: RecordFile = None,
    as_json: AsJson = False,
) -> None:
    """Play a trained policy with its mean action, and show returns, falls, and how well commands are followed.

    The policy runs by the NumPy runner of its folder.
    """
    lazy.trained_policies.play_policy(
        policy,
        engine,
        robot,
        lazy.policies.PlayOptions(episodes=episodes, seed=seed, noise=noise, pushes=pushes, latency=latency),
        as_json,
        record,
    )
