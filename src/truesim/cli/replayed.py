"""Replays of `truesim evaluate --engine mujoco`."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from truesim.bridges.mujoco_replay import replay_errors, replay_in_mujoco
from truesim.cli.console import results
from truesim.files.logs import Log
from truesim.identification.fit_folder import mujoco_file


def print_replay(fit_or_robot: Path, logs: Sequence[Log], as_json: bool) -> None:
    """Print the errors of whole logs in plain MuJoCo.

    Args:
        fit_or_robot: MJCF file, or folder of a fit.
        logs: Logs of the robot.
        as_json: Print JSON instead of a table.
    """
    robot = mujoco_file(fit_or_robot) if fit_or_robot.is_dir() else fit_or_robot
    found = replay_errors(replay_in_mujoco(robot, logs))
    if as_json:
        print(json.dumps({row: dataclasses.asdict(e) for row, e in found.items()}, indent=1))
        return
    table = Table("channel", "rmse", "logs", box=None, title=f"Error over whole logs of {robot.name} in MuJoCo")
    for row, e in found.items():
        table.add_row(escape(row), f"{e.rmse:.4g}", str(e.windows))
    results().print(table)
