"""Quadruped of truesim's own, for the joystick task without a robot file."""

import dataclasses
from pathlib import Path

from truesim.policies.randomization import Randomization
from truesim.policies.task import PolicyTask
from truesim.policies.tasks.quadruped import go2_joystick

QUADRUPED_FILE = Path(__file__).with_name("quadruped.xml")


def quadruped_joystick(robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Task of `go2_joystick` with the quadruped of truesim's own, or with another file."""
    task = go2_joystick(QUADRUPED_FILE if robot is None else robot, randomization)
    return dataclasses.replace(task, name="quadruped-joystick", robot={} if robot is None else task.robot)
