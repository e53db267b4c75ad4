"""Identification of the robot from its logs: what a user types, as one call."""

from collections.abc import Sequence
from pathlib import Path

import truesim as ts
from truesim.identification.fit import Fit
from truesim.policies.tasks.furuta import FURUTA_ROBOT

FREE = (
    "bodies/*.mass",
    "joints/*.damping",
    "joints/arm.frictionloss",
    "actuators/motor.gain",
    "actuators/motor.delay",
)
"""Parameters that the logs decide."""


def identify_robot(logs: Sequence[Path], folder: Path) -> Fit:
    """Fit the file of the Qube to the logs, and keep the fit in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    robot = folder / "qube.xml"
    robot.write_text(FURUTA_ROBOT, encoding="utf-8")
    return ts.identify(robot, [str(log) for log in logs], list(FREE), out=folder / "fit")
