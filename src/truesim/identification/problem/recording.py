"""Recordings: commands, measurements and an initial guess of the states at each sample of a log."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Bool, Float
from truesim.files.logs import Log, motion, split_at_gaps
from truesim.identification.problem.channels import Channel
from truesim.identification.problem.locate import unmeasured
from truesim.physics.dynamics import reference_configuration
from truesim.physics.model.columns import command_columns
from truesim.physics.model.model import Model

MIN_SAMPLES = 8
"""Minimum number of samples of a log. Larger rejects longer logs."""


@dataclasses.dataclass(frozen=True)
class Recording:
    """Samples of one log, prepared for comparison with the simulator."""

    name: str
    time: Float[np.ndarray, " samples"]
    """[s]"""
    command: Float[np.ndarray, "samples nu"]
    """Control of each actuator, held until the next sample."""
    measured: Float[np.ndarray, "samples columns"]
    """Columns of all channels; gaps are interpolated and not `valid`."""
    valid: Bool[np.ndarray, "samples rows"]
    """Rows of the residual that were measured."""
    inputs: Float[np.ndarray, "samples inputs"]
    """Columns that give model parameters, such as a supply voltage."""
    q: Float[np.ndarray, "samples nq"]
    """Initial guess of the configuration."""
    v: Float[np.ndarray, "samples nv"]
    """Initial guess of the velocity."""
    pieces: tuple[tuple[int, int], ...]
    """First and last sample of each contiguous part."""
    lookahead: int = 0
    """Number of following samples that the longest sensor delay reaches."""
    has_unmeasured_joints: bool = False
    """True if positions of some joints were inferred from other sensors instead of measured."""
    unobserved: Bool[np.ndarray, " nv"] | None = None
    """Degrees of freedom without any measurement: the initial guess is rest at the reference configuration."""

    def with_lookahead(self, count: int) -> "Recording":
        """The recording for sensors whose delay reaches over `count` samples.

        A delayed measurement of the last samples of a piece lies beyond its end: they are not valid.
        """
        valid = self.valid.copy()
        for first, last in self.pieces:
            valid[max(last + 1 - count, first) : last + 1] = False
        return dataclasses.replace(self, lookahead=count, valid=valid)


def recording(log: Log, model: Model, channels: Sequence[Channel], inputs: Sequence[str] = ()) -> Recording:
    """The recording of a prepared log.

    Args:
        log: The log, from `prepare`.
        model: The model of the robot.
        channels: Channels of the residual.
        inputs: Columns that give model parameters.
    """
    commands = command_columns(model)
    for name in (*commands, *inputs):
        if not np.any(np.isfinite(log.column(name))):
            raise TruesimError(f"The column {name} of {log.name} has no values.")
    if len(log.time) < MIN_SAMPLES:
        raise TruesimError(f"{log.name} has {len(log.time)} samples; a fit needs at least {MIN_SAMPLES}.")
    raw = _stack(log, [name for channel in channels for name in channel.columns])
    present = np.isfinite(raw)
    moved = motion(log, model)
    found = split_at_gaps(log, needed=commands)
    return Recording(
        name=log.name,
        time=log.time,
        command=_fill(log.time, _stack(log, commands)),
        measured=_fill(log.time, raw),
        valid=np.stack([present[:, own].all(axis=1) for own in sources(channels)], axis=1),
        inputs=_fill(log.time, _stack(log, inputs)),
        q=_fill(log.time, moved.q, np.asarray(reference_configuration(model), float)),
        v=_fill(log.time, moved.v),
        pieces=tuple(_bounds(log, piece) for piece in found if len(piece.time) > 1),
        has_unmeasured_joints=bool(unmeasured(log, model)),
        unobserved=_unobserved(model, moved.q),
    )


def _unobserved(model: Model, q: Float[np.ndarray, "samples nq"]) -> Bool[np.ndarray, " nv"]:
    """Degrees of freedom of joints without any finite position."""
    unknown, unobserved = ~np.isfinite(q).any(axis=0), np.zeros(model.nv, bool)
    for link in model.topology.links:
        unobserved[link.v] = unknown[link.q].any()
    return unobserved


def sources(channels: Sequence[Channel]) -> list[list[int]]:
    """For each row of the residual, the columns from which it is computed."""
    found, at = [], 0
    for channel in channels:
        found += [[at + k for k in own] for own in channel.sources()]
        at += len(channel.columns)
    return found


def _stack(log: Log, names: Sequence[str]) -> np.ndarray:
    missing = np.full(len(log.time), np.nan)
    return np.stack([log.columns.get(n, missing) for n in names], axis=1) if names else np.zeros((len(log.time), 0))


def _fill(time: np.ndarray, columns: np.ndarray, default: np.ndarray | None = None) -> np.ndarray:
    """Columns with missing samples interpolated; columns without any value are filled with `default`, or zero."""
    filled = columns.copy()
    for k, column in enumerate(filled.T):
        known = np.isfinite(column)
        if not known.any():
            column[:] = 0.0 if default is None else default[k]
        elif not known.all():
            column[:] = np.interp(time, time[known], column[known])
    return filled


def _bounds(log: Log, piece: Log) -> tuple[int, int]:
    first = int(np.searchsorted(log.time, piece.time[0]))
    return first, first + len(piece.time) - 1
