"""A log as identification sees it: commands, measurements and a first guess of the states, sample by sample."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Bool, Float
from truesim.data import Log, command_columns, motion, segments
from truesim.dynamics import reference_configuration
from truesim.identify.channels import Channel
from truesim.identify.locate import unmeasured
from truesim.model.model import Model

FEWEST = 8
"""Samples that a log must have."""


@dataclasses.dataclass(frozen=True)
class Recording:
    """The samples of one log, ready to be compared with the simulator."""

    name: str
    time: Float[np.ndarray, "samples"]
    """[s]"""
    command: Float[np.ndarray, "samples nu"]
    """Control of each actuator, held until the next sample."""
    measured: Float[np.ndarray, "samples columns"]
    """Columns of all channels; gaps filled by neighbours, and not `valid`."""
    valid: Bool[np.ndarray, "samples rows"]
    """Which rows of the residual were measured."""
    inputs: Float[np.ndarray, "samples inputs"]
    """Columns that stand for parameters, such as a supply voltage."""
    q: Float[np.ndarray, "samples nq"]
    """First guess of the configuration."""
    v: Float[np.ndarray, "samples nv"]
    """First guess of the velocity."""
    segments: tuple[tuple[int, int], ...]
    """First and last sample of each stretch without a gap."""
    ahead: int = 0
    """Number of samples after each that delays of readings can look into."""
    hidden: bool = False
    """Whether positions of some joints were not measured, but only concluded from other sensors."""
    guessed: Bool[np.ndarray, "nv"] | None = None
    """Degrees of freedom of joints of which nothing is known: they are guessed to rest at their reference."""


def recording(log: Log, model: Model, channels: Sequence[Channel], inputs: Sequence[str] = ()) -> Recording:
    """The samples of a log.

    Args:
        log: From `prepared`.
        model: The robot.
        channels: What is compared.
        inputs: Columns that stand for parameters.
    """
    commands = command_columns(model)
    for name in (*commands, *inputs):
        if not np.any(np.isfinite(log.column(name))):
            raise TruesimError(f"The column {name} of {log.name} has no values.")
    if len(log.time) < FEWEST:
        raise TruesimError(f"{log.name} has {len(log.time)} samples; a fit needs at least {FEWEST}.")
    raw = _stacked(log, [name for channel in channels for name in channel.columns])
    present = np.isfinite(raw)
    shown = motion(log, model)
    pieces = segments(log, needed=commands)
    return Recording(
        name=log.name,
        time=log.time,
        command=_filled(log.time, _stacked(log, commands)),
        measured=_filled(log.time, raw),
        valid=np.stack([present[:, own].all(axis=1) for own in sources(channels)], axis=1),
        inputs=_filled(log.time, _stacked(log, inputs)),
        q=_filled(log.time, shown.q, np.asarray(reference_configuration(model), float)),
        v=_filled(log.time, shown.v),
        segments=tuple(_bounds(log, piece) for piece in pieces if len(piece.time) > 1),
        hidden=bool(unmeasured(log, model)),
        guessed=_guessed(model, shown.q),
    )


def _guessed(model: Model, q: Float[np.ndarray, "samples nq"]) -> Bool[np.ndarray, "nv"]:
    """Degrees of freedom of joints of which no sample shows the position."""
    unknown, guessed = ~np.isfinite(q).any(axis=0), np.zeros(model.nv, bool)
    for link in model.topology.links:
        guessed[link.v] = unknown[link.q].any()
    return guessed


def sources(channels: Sequence[Channel]) -> list[list[int]]:
    """For each row of the residual, the columns on whose presence it depends."""
    found, at = [], 0
    for channel in channels:
        found += [[at + k for k in own] for own in channel.sources()]
        at += len(channel.columns)
    return found


def _stacked(log: Log, names: Sequence[str]) -> np.ndarray:
    missing = np.full(len(log.time), np.nan)
    return np.stack([log.columns.get(n, missing) for n in names], axis=1) if names else np.zeros((len(log.time), 0))


def _filled(time: np.ndarray, columns: np.ndarray, otherwise: np.ndarray | None = None) -> np.ndarray:
    """Columns with missing samples filled by interpolation, or with `otherwise` where nothing is known."""
    filled = columns.copy()
    for k, column in enumerate(filled.T):
        known = np.isfinite(column)
        if not known.any():
            column[:] = 0.0 if otherwise is None else otherwise[k]
        elif not known.all():
            column[:] = np.interp(time, time[known], column[known])
    return filled


def _bounds(log: Log, piece: Log) -> tuple[int, int]:
    first = int(np.searchsorted(log.time, piece.time[0]))
    return first, first + len(piece.time) - 1
