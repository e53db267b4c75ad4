"""`truesim inspect`: the content of a robot file, or of logs of the robot."""

from pathlib import Path
from typing import Annotated

import typer

import truesim as ts
from truesim.cli import lazy
from truesim.cli.arguments import AsJson, FloatingBase, LogsIfAny, Mapping, ReplaceFile, Robot, Servo
from truesim.cli.outputs import check_file
from truesim.cli.pairs import servo_gains
from truesim.core.errors import TruesimError

WriteMapping = Annotated[
    Path | None,
    typer.Option(
        "--write-mapping",
        help="Guess which columns of the log are which, in which units, and write a mapping file.",
        metavar="FILE",
        show_default=False,
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        help="LeRobot's calibration file, for positions in percent of the calibrated range.",
        metavar="FILE",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="Columns that --write-mapping chooses from, such as 'left_*' of a log of two arms.",
        metavar="PATTERN…",
        show_default=False,
    ),
]


def inspect(
    robot: Robot,
    logs: LogsIfAny = None,
    mapping: Mapping = None,
    floating_base: FloatingBase = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            help="Show only parameters that match this pattern, such as 'joints/*.damping'.",
            metavar="PATTERN",
            show_default=False,
        ),
    ] = None,
    show_ports: Annotated[
        bool, typer.Option("--ports", help="Show the quantities that networks can read or change instead.")
    ] = False,
    servo: Servo = None,
    write_mapping: WriteMapping = None,
    calibration: Calibration = None,
    columns: Columns = None,
    show_all: Annotated[bool, typer.Option("--all", help="List all parameters of the robot.")] = False,
    force: ReplaceFile = False,
    as_json: AsJson = False,
) -> None:
    """Show the content of ROBOT: bodies, joints, actuators, sensors, all parameters, and what is not simulated.

    With logs, show their columns, sampling, gaps and anomalies instead, and which parameters they can identify.
    """
    model = ts.load(robot, floating_base=floating_base)
    for pattern, gains in servo_gains(servo).items():
        model = lazy.actuator_models.with_servo(model, pattern, **gains)
    if show_ports:
        lazy.inspect_ports.print_ports(model, as_json)
    elif write_mapping is not None:
        if not logs:
            raise TruesimError("--write-mapping needs a log to guess from.")
        check_file(write_mapping, force)
        choices = lazy.guessed_mapping.Choices(calibration, columns or (), servo or ())
        lazy.guessed_mapping.write_guess(model, robot, logs, write_mapping, choices)
    elif logs:
        lazy.inspect_logs.print_logs(model, ts.read_logs(logs, mapping=mapping), as_json)
    else:
        lazy.inspect_robot.print_robot(model, only, as_json, show_all)
