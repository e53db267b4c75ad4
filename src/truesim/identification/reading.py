"""Robots and logs of an identification: read, prepared and checked, with anomalies told to an observer."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float
from truesim.files.logs import Log, read_episodes
from truesim.files.logs.command_checks import DEAD_ENCODER
from truesim.files.logs.read_many import distinguish
from truesim.files.robots import load
from truesim.files.robots.gears import with_gear
from truesim.files.robots.hold import unrecorded_joints, with_held_joints
from truesim.identification.options import IdentifyOptions
from truesim.identification.problem.build import prepare_logs
from truesim.identification.problem.problem import Problem
from truesim.identification.solve.levenberg_marquardt import Progress
from truesim.optimize.basin_hopping import SearchResult
from truesim.physics.model import paths
from truesim.physics.model.actuator_models import with_actuator_model, with_servo
from truesim.physics.model.columns import joint_position_columns
from truesim.physics.model.kinds import FREE
from truesim.physics.model.model import Model
from truesim.physics.model.source import Finding
from truesim.physics.model.targets import matches_pattern

DEGREES = "looks like degrees"
"""Part of the message of a finding for which a log is refused, unless a mapping file says what its columns mean."""
HOPELESS = (DEAD_ENCODER,)
"""Parts of messages of findings for which a log is refused if the channel is compared."""
RobotLike = Model | str | os.PathLike[str]
LogLike = Log | str | os.PathLike[str]


@runtime_checkable
class Observer(Protocol):
    """Receives the progress of an identification; every method may do nothing."""

    def warning(self, log: str, finding: Finding) -> None:
        """A log has an anomaly."""

    def stage(self, name: str, problem: Problem) -> None:
        """A stage begins: `resume`, `search`, `compile`, `solve` or `diagnose`."""

    def searched(self, found: SearchResult) -> None:
        """Solves of a search have ended."""

    def iterated(self, progress: Progress) -> None:
        """The solver has done an iteration."""


class Silent:
    """Observer that shows nothing."""

    def warning(self, log: str, finding: Finding) -> None:
        """Ignore an anomaly."""

    def stage(self, name: str, problem: Problem) -> None:
        """Ignore a stage."""

    def searched(self, found: SearchResult) -> None:
        """Ignore solves of a search."""

    def iterated(self, progress: Progress) -> None:
        """Ignore an iteration."""


def read_robot(robot: RobotLike, options: IdentifyOptions) -> Model:
    """The robot with the actuator models and start values of the options."""
    model = robot if isinstance(robot, Model) else load(robot, floating_base=options.floating_base)
    for joint, values in options.gears.items():
        model = with_gear(model, joint, **values)
    for actuator, name in options.actuator_models.items():
        model = with_actuator_model(model, actuator, name)
    for pattern, gains in options.servos.items():
        model = with_servo(model, pattern, **gains)
    for path, value in options.values.items():
        model = paths.write(model, path, value)
    return model


def read_raw(logs: Sequence[LogLike], options: IdentifyOptions) -> list[Log]:
    """Logs as they were recorded; episodes of a data set are logs of their own."""
    read = [[log] if isinstance(log, Log) else read_episodes(log, mapping=options.mapping) for log in logs]
    return distinguish([log for episodes in read for log in episodes])


def hold_unrecorded(
    model: Model, logs: Sequence[Log], options: IdentifyOptions, observer: Observer
) -> tuple[Model, IdentifyOptions]:
    """The robot, and options, with joints held at zero of which no log knows anything, such as a gripper's."""
    joints = unrecorded_joints(model, logs)
    if not joints:
        return model, options
    text = "the logs have neither positions nor commands of it: it is held at zero."
    for name in joints:
        observer.warning(logs[0].name, Finding(name, text, "warning"))
    return with_held_joints(model, joints), dataclasses.replace(options, held=(*options.held, *joints))


def read_logs(
    model: Model,
    logs: Sequence[LogLike],
    options: IdentifyOptions,
    observer: Observer,
    raw: Sequence[Log] | None = None,
) -> list[Log]:
    """Logs read and prepared once; anomalies are reported, and angles in degrees refused unless a mapping is given.

    Args:
        model: The robot.
        logs: Logs or log files.
        options: Options, of which the mapping counts.
        observer: Receives the anomalies.
        raw: The same logs from `read_raw`, if they were read already.
    """
    own = [log for log in logs if isinstance(log, Log)]
    raw = read_raw(logs, options) if raw is None else raw
    if not raw:
        return []
    prepared = prepare_logs(model, raw)
    for log, origin in zip(prepared, raw, strict=True):
        for finding in log.findings:
            if finding.severity != "warning":
                continue
            if DEGREES in finding.message and options.mapping is None and not any(origin is given for given in own):
                raise TruesimError(f"{log.name}, {finding}")
            if any(text in finding.message for text in HOPELESS) and _is_compared(finding.subject, options):
                raise TruesimError(f"{log.name}, {finding}")
            observer.warning(log.name, finding)
    return prepared


def _is_compared(column: str, options: IdentifyOptions) -> bool:
    """True if a column is among the channels that are compared."""
    patterns = options.problem.channels
    return not patterns or any(matches_pattern(column, pattern) for pattern in patterns)


def check_motion(model: Model, logs: Sequence[Log], options: IdentifyOptions) -> None:
    """Raise an error if the logs tell nothing of a motion, or do not tell where a floating base is."""
    _check_changes(logs)
    _check_base(model, logs, options)


def _check_changes(logs: Sequence[Log]) -> None:
    """Raise an error if nothing changes in any of the logs: no measurement and no command."""
    still = [log for log in logs if all(_is_constant(x) for n, x in log.columns.items() if n not in log.derived)]
    if logs and len(still) == len(logs):
        names = ", ".join(log.name for log in still)
        raise TruesimError(f"Nothing changes in {names}: every column is constant, so that nothing can be identified.")


def _check_base(model: Model, logs: Sequence[Log], options: IdentifyOptions) -> None:
    """Raise an error if the base of a robot floats, and neither a log nor a contact tells where it is."""
    base = next((j for j, kind in enumerate(model.joints.kinds) if kind == FREE), None)
    if base is None or not logs or options.problem.contact != "none":
        return
    felt = [name for log in logs for name in log.columns if name.startswith("sensor/")]
    moved = [name for log in logs for name in joint_position_columns(model, base) if name in log.columns]
    if not felt and not moved:
        name = model.joints.names[base]
        column = joint_position_columns(model, base)[0]
        raise TruesimError(
            f"The base of the robot floats (joint {name!r}), but no log tells where it is, so that it would fall. If "
            f"it hangs on a stand, take the free joint out of the robot file; else log {column} and so on, or choose "
            "the contact with --contact."
        )


def check_per_log(options: IdentifyOptions, logs: Sequence[Log]) -> None:
    """Raise an error if the options name a log that is not there."""
    names = {log.name for log in logs} | {Path(log.name).stem for log in logs}
    for name in options.problem.per_log:
        if name != "*" and name not in names:
            raise unknown_name("log", name, names)


def _is_constant(values: Float[np.ndarray, " samples"]) -> bool:
    known = values[np.isfinite(values)]
    return not len(known) or bool(np.ptp(known) == 0)
