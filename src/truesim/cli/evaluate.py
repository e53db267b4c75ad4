"""`truesim evaluate`: open-loop prediction errors on logs."""

import dataclasses
import json
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import (
    AsJson,
    Channel,
    Contact,
    FloatingBase,
    Logs,
    Mapping,
    PerLogFile,
    RobotOrFit,
    Smoothing,
    Threads,
)
from truesim.core.errors import TruesimError, unknown_name

EVALUATION_ENGINES = ("truesim", "mujoco")


def evaluate(
    fit_or_robot: RobotOrFit,
    logs: Logs,
    window: Annotated[float, typer.Option("--window", help="Length of the windows, in s.")] = 0.5,
    engine: Annotated[
        str,
        typer.Option(
            "--engine", help="truesim, or mujoco: replay whole logs in plain MuJoCo with the robot file alone."
        ),
    ] = "truesim",
    band: Annotated[
        float, typer.Option("--band", help="Band of positions and torques in which torque errors are taken, in Hz.")
    ] = 6.0,
    channel: Channel = None,
    per_log: PerLogFile = None,
    mapping: Mapping = None,
    contact: Contact = None,
    smoothing: Smoothing = None,
    floating_base: FloatingBase = False,
    threads: Threads = 1,
    as_json: AsJson = False,
) -> None:
    """Show the open-loop prediction error of every measured channel over consecutive windows of the logs.

    Arms with joint torques in their logs also get the relative torque error of every joint while it moves.

    The initial state of a window is estimated from the samples before it, without using later ones.
    """
    if not window > 0:
        raise TruesimError(f"--window is {window:g} s; it must be positive.")
    if not band > 0:
        raise TruesimError(f"--band is {band:g} Hz; it must be positive.")
    if engine not in EVALUATION_ENGINES:
        raise unknown_name("engine", engine, EVALUATION_ENGINES)
    robot = lazy.subject.read_subject(fit_or_robot, floating_base)
    model, recorded = lazy.log_warnings.read_held(robot.model, logs, mapping or robot.mapping)
    if engine == "mujoco":
        lazy.replayed.print_replay(fit_or_robot, recorded, as_json)
        return
    options = robot.options_for(recorded, per_log, channel, contact, smoothing)
    if lazy.torques.inapplicable(model, recorded) is None:
        model = lazy.effort_limits.lift_limits(model, recorded)
    found = lazy.evaluation.evaluate(model, recorded, window=window, options=options)
    torque = lazy.torque_errors.torque_errors(model, recorded, band)
    if as_json:
        errors = {row: dataclasses.asdict(e) for row, e in found.items()}
        joints = {joint: dataclasses.asdict(e) for joint, e in torque.items()}
        print(json.dumps(errors | ({"torque": {"band": band, "joints": joints}} if joints else {}), indent=1))
    else:
        lazy.fit_tables.print_errors(found, window)
        if torque:
            lazy.fit_tables.print_torque_errors(torque, band)
