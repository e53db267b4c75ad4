"""A log: named columns over time."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Bool, Float
from truesim.model.source import Finding

STAMP_TOLERANCE = 1e-9
"""Times closer than this are the same [s]."""


@dataclasses.dataclass(frozen=True)
class Log:
    """Columns of one recording; `time` [s] increases, and NaN marks a sample that is missing."""

    time: Float[np.ndarray, "samples"]
    columns: Mapping[str, Float[np.ndarray, "samples"]]
    name: str = "log"
    derived: frozenset[str] = frozenset()
    """Columns that were computed from others: starting points, not measurements."""
    findings: tuple[Finding, ...] = ()
    """What was mended or looks odd, in words."""

    def __post_init__(self) -> None:
        for name, values in self.columns.items():
            if np.shape(values) != np.shape(self.time):
                raise TruesimError(f"{name} of {self.name} has {np.size(values)} samples, time has {len(self.time)}.")
        _check_stamps(self.time, self.name)

    def column(self, name: str) -> Float[np.ndarray, "samples"]:
        """One column; an error with the nearest match if there is none."""
        if name not in self.columns:
            raise unknown_name(f"column in {self.name}", name, self.columns)
        return self.columns[name]

    def present(self, names: Sequence[str]) -> Bool[np.ndarray, "samples columns"]:
        """The mask of these columns: where a value was recorded."""
        return np.isfinite(np.stack([self.column(name) for name in names], axis=1).reshape(len(self.time), -1))

    def rows(self, rows: slice | np.ndarray) -> "Log":
        """The log with some of its rows."""
        kept = {name: values[rows] for name, values in self.columns.items()}
        return dataclasses.replace(self, time=self.time[rows], columns=kept)

    def between(self, start: float, end: float) -> "Log":
        """The samples from time `start` up to and including `end` [s]."""
        inside = (self.time >= start - STAMP_TOLERANCE) & (self.time <= end + STAMP_TOLERANCE)
        return self.rows(np.flatnonzero(inside))

    def held(self, names: Sequence[str], time: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n columns"]:
        """Columns at other times [s], each value held until the next recorded one; the first also before its time."""
        if not names:
            return np.zeros((len(time), 0))
        return np.stack([self._held(self.column(name), time) for name in names], axis=1)

    def interpolated(
        self, names: Sequence[str], time: Float[np.ndarray, "n"], *, gap: float = np.inf
    ) -> Float[np.ndarray, "n columns"]:
        """Columns at other times [s], on straight lines between recorded values.

        Args:
            names: Columns.
            time: When [s].
            gap: No line spans more than this [s]; inside a gap, before the first and after the last value it is NaN.
        """
        if not names:
            return np.zeros((len(time), 0))
        return np.stack([self._interpolated(self.column(name), time, gap) for name in names], axis=1)

    def _held(self, values: np.ndarray, time: np.ndarray) -> np.ndarray:
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            return np.full(len(time), np.nan)
        before = np.searchsorted(self.time[known], time + STAMP_TOLERANCE, side="right") - 1
        return values[known[np.clip(before, 0, None)]]

    def _interpolated(self, values: np.ndarray, time: np.ndarray, gap: float) -> np.ndarray:
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


def _check_stamps(time: Float[np.ndarray, "samples"], name: str) -> None:
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
