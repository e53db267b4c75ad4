"""Replay of logs in plain MuJoCo: `mujoco.mj_step` on a robot file, with the recorded commands and nothing of truesim.

It shows what a user of the written robot file gets: numbers that only the sidecar holds do not act.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.files.robots.compiled import from_compiled
from truesim.files.robots.messages import errors_as_sentences
from truesim.files.robots.supported import simulated_actuators
from truesim.identification.diagnose.evaluation import Errors
from truesim.identification.problem.build import prepare_logs
from truesim.physics.model.columns import command_columns, position_columns, velocity_columns
from truesim.physics.model.model import Model


@dataclasses.dataclass(frozen=True)
class MujocoReplay:
    """Motion of a whole log in MuJoCo, from its first sample on."""

    log: str
    columns: tuple[str, ...]
    """Measured positions, `qpos/<joint>`."""
    time: Float[np.ndarray, " samples"]
    """[s]"""
    measured: Float[np.ndarray, "samples columns"]
    """[rad, m]"""
    simulated: Float[np.ndarray, "samples columns"]
    """[rad, m]"""

    @property
    def rmse(self) -> dict[str, float]:
        """Root-mean-square error of each column over the samples that were recorded [rad, m]."""
        errors = np.sqrt(np.nanmean((self.simulated - self.measured) ** 2, axis=0))
        return dict(zip(self.columns, errors.tolist(), strict=True))


def replay_in_mujoco(robot: Path, logs: Sequence[Log]) -> list[MujocoReplay]:
    """Replay logs in MuJoCo from their first measured state, with commands held between samples.

    The robot has been at rest with its first command before a log begins, which is what delayed actuators receive.

    Args:
        robot: MJCF file.
        logs: Logs of the robot, with the positions of all joints.
    """
    if robot.suffix == ".urdf":
        raise FileError(f"{robot.name} is a URDF, which has no actuators; give the MJCF file beside it.")
    with errors_as_sentences(robot):
        compiled = mujoco.MjModel.from_xml_path(str(robot))
    model = from_compiled(compiled, None)
    return [_replay(compiled, model, log) for log in prepare_logs(model, logs)]


def replay_errors(replays: Sequence[MujocoReplay]) -> dict[str, Errors]:
    """Errors of each column over whole logs."""
    out = {}
    for name in dict.fromkeys(name for replay in replays for name in replay.columns):
        each = [replay.rmse[name] for replay in replays if name in replay.columns]
        counts = [len(replay.time) for replay in replays if name in replay.columns]
        rmse = float(np.sqrt(np.average(np.square(each), weights=counts)))
        out[name] = Errors(rmse, float(np.median(each)), len(each))
    return out


def _replay(compiled: mujoco.MjModel, model: Model, log: Log) -> MujocoReplay:
    positions, actuators = position_columns(model), simulated_actuators(compiled)
    missing = [name for name in positions if name not in log.columns]
    if missing:
        raise TruesimError(f"{log.name} has no {missing[0]}; a replay starts from the positions of all joints.")
    data = mujoco.MjData(compiled)
    time = log.time - log.time[0]
    measured = log.interpolate(positions, log.time)
    data.qpos = measured[0]
    data.qvel = log.interpolate(velocity_columns(model), log.time)[0]
    steps = int(np.ceil(time[-1] / compiled.opt.timestep)) + 1
    commands = log.hold(command_columns(model), log.time[0] + np.arange(steps) * compiled.opt.timestep)
    _remember(compiled, data, actuators, commands[0])
    q = np.empty((steps + 1, compiled.nq))
    q[0] = data.qpos
    for k, command in enumerate(commands):
        data.ctrl[actuators] = command
        mujoco.mj_step(compiled, data)
        q[k + 1] = data.qpos
    grid = np.arange(steps + 1) * compiled.opt.timestep
    simulated = np.stack([np.interp(time, grid, q[:, k]) for k in range(compiled.nq)], axis=1)
    recorded = log.present(positions)
    return MujocoReplay(log.name, tuple(positions), time, np.where(recorded, measured, np.nan), simulated)


def _remember(compiled: mujoco.MjModel, data: mujoco.MjData, actuators: Sequence[int], command: np.ndarray) -> None:
    """Fill the histories of delayed actuators with the first command."""
    for own, value in zip(actuators, command, strict=True):
        samples = int(compiled.actuator_history[own, 0])
        if samples:
            stamps = (np.arange(samples) - samples) * compiled.opt.timestep
            mujoco.mj_initCtrlHistory(compiled, data, int(own), stamps, np.full((samples, 1), value))
