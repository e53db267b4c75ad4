"""A log: named columns over time."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Bool, Float
from truesim.physics.model.source import Finding

STAMP_TOLERANCE = 1e-9
"""Stamps closer than this count as equal [s]."""


@dataclasses.dataclass(frozen=True)
class Log:
    """Columns of one recording; `time` [s] does not decrease, and NaN marks a missing sample."""

    time: Float[np.ndarray, " samples"]
    columns: Mapping[str, Float[np.ndarray, " _"]]
    """Values by name, each as long as `time`."""
    name: str = "log"
    derived: frozenset[str] = frozenset()
    """Columns computed from others: they give initial values, but are not measurements."""
    findings: tuple[Finding, ...] = ()
    """Repairs and anomalies, in words."""
    source: Path | None = None
    """The file that it was read from."""

    def __post_init__(self) -> None:
        for name, values in self.columns.items():
            if np.shape(values) != np.shape(self.time):
                raise TruesimError(f"{name} of {self.name} has {np.size(values)} samples, time has {len(self.time)}.")
        _check_stamps(self.time, self.name)

    def column(self, name: str) -> Float[np.ndarray, " samples"]:
        """One column; raises an error with the nearest match for an unknown name."""
        if name not in self.columns:
            raise unknown_name(f"column in {self.name}", name, self.columns)
        return self.columns[name]

    def present(self, names: Sequence[str]) -> Bool[np.ndarray, "samples columns"]:
        """Mask of the recorded values of these columns."""
        return np.isfinite(np.stack([self.column(name) for name in names], axis=1).reshape(len(self.time), -1))

    def rows(self, rows: slice | np.ndarray) -> "Log":
        """The log with only these rows."""
        kept = {name: values[rows] for name, values in self.columns.items()}
        return dataclasses.replace(self, time=self.time[rows], columns=kept)

    def between(self, start: float, end: float) -> "Log":
        """The samples from time `start` to `end` [s], both included."""
        inside = (self.time >= start - STAMP_TOLERANCE) & (self.time <= end + STAMP_TOLERANCE)
        return self.rows(np.flatnonzero(inside))

    def hold(self, names: Sequence[str], time: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n columns"]:
        """Columns at other times [s] by zero-order hold; before the first recorded value, that value is used."""
        if not names:
            return np.zeros((len(time), 0))
        return np.stack([self._hold(self.column(name), time) for name in names], axis=1)

    def interpolate(
        self, names: Sequence[str], time: Float[np.ndarray, " n"], *, gap: float = np.inf
    ) -> Float[np.ndarray, "n columns"]:
        """Columns at other times [s] by linear interpolation between recorded values.

        Args:
            names: Names of the columns.
            time: Times [s].
            gap: Longest step that is interpolated [s]. Inside longer steps, before the first and after the last
                recorded value the result is NaN.
        """
        if not names:
            return np.zeros((len(time), 0))
        return np.stack([self._interpolate(self.column(name), time, gap) for name in names], axis=1)

    def _hold(self, values: np.ndarray, time: np.ndarray) -> np.ndarray:
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            return np.full(len(time), np.nan)
        before = np.searchsorted(self.time[known], time + STAMP_TOLERANCE, side="right") - 1
        return values[known[np.clip(before, 0, None)]]

    def _interpolate(self, values: np.ndarray, time: np.ndarray, gap: float) -> np.ndarray:
        known = np.isfinite(values)
        if not np.any(known):
            return np.full(len(time), np.nan)
        stamps = self.time[known]
        result = np.interp(time, stamps, values[known], left=np.nan, right=np.nan)
        after = np.clip(np.searchsorted(stamps, time), 1, max(len(stamps) - 1, 1))
        if len(stamps) > 1:
            exact = np.isin(time, stamps)
            result[(stamps[after] - stamps[after - 1] > gap) & ~exact] = np.nan
        return result


def _check_stamps(time: Float[np.ndarray, " samples"], name: str) -> None:
    missing = np.flatnonzero(~np.isfinite(time))
    if len(missing):
        raise TruesimError(
            f"Time is missing in sample {missing[0] + 1} of {name} (row {missing[0] + 2} of a table with a header); "
            f"{len(missing)} of {len(time)} stamps are: remove those rows."
        )
    back = np.flatnonzero(np.diff(time) < 0)
    if len(back):
        i = int(back[0]) + 1
        raise TruesimError(
            f"Time goes backwards in {name} at sample {i + 1} (row {i + 2} of a table with a header): from "
            f"{time[i - 1]:.9g} to {time[i]:.9g} s, {len(back)} times in all; cut the log there, or sort its rows."
        )
