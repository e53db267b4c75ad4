"""Stamps of a table as loggers write them: split in seconds and nanoseconds, missing, or slightly out of order."""

import re

import numpy as np

from truesim.core import libraries
from truesim.files.logs.sampling import gap_length
from truesim.physics.model.source import Finding

SECONDS = re.compile(r"(.*?)_?(secs?|seconds)$", re.IGNORECASE)
NANOSECONDS = re.compile(r"(.*?)_?(nsecs?|nanosecs?|nanoseconds)$", re.IGNORECASE)
MAX_REPAIRED = 0.1
"""Largest fraction of rows that are left out or sorted; a log with more of them is refused. Larger repairs more."""


def join_stamps(table: "libraries.polars.DataFrame") -> "libraries.polars.DataFrame":
    """The table with nanoseconds added to their column of seconds, such as ROS's `sec` and `nanosec`."""
    pl = libraries.polars
    fractions = {m[1].lower(): name for name in table.columns if (m := NANOSECONDS.match(name))}
    for name in table.columns:
        found = SECONDS.match(name)
        fraction = fractions.get(found[1].lower()) if found and not NANOSECONDS.match(name) else None
        if fraction is not None:
            table = table.with_columns((pl.col(name) + 1e-9 * pl.col(fraction)).alias(name)).drop(fraction)
    return table


def order_rows(table: "libraries.polars.DataFrame") -> "tuple[libraries.polars.DataFrame, list[Finding]]":
    """The table without rows that have no `time`, and with rows in order that were written slightly out of it."""
    time, notes = table["time"].to_numpy(), []
    missing = ~np.isfinite(time)
    if 0 < missing.sum() <= MAX_REPAIRED * len(time):
        notes.append(Finding("time", f"rows without a stamp were left out ({missing.sum()}).", "warning"))
        table = table.filter(libraries.polars.Series(~missing))
        time = time[~missing]
    back = np.diff(time) < 0
    if not np.all(np.isfinite(time)) or not 0 < back.sum() <= MAX_REPAIRED * len(time):
        return table, notes
    ordered = np.sort(time)
    latest = np.maximum.accumulate(time)
    if np.max(latest - time) <= gap_length(ordered):
        notes.append(Finding("time", f"rows written out of order were sorted ({back.sum()}).", "note"))
        table = table[np.argsort(time, kind="stable")]
    return table, notes
