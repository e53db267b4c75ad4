"""Logs: recorded columns over time, read from files, matched with a robot and cleaned."""

from truesim.files.logs.checks import anomalies
from truesim.files.logs.cleaning import prepare, unwrap
from truesim.files.logs.differentiate import Derivatives, derivatives, orientation_derivatives
from truesim.files.logs.lerobot import select_episodes
from truesim.files.logs.log import Log
from truesim.files.logs.mapping import ColumnMap, column_map, read_mapping
from truesim.files.logs.match import Matching, matching
from truesim.files.logs.motion import RecordedMotion, motion
from truesim.files.logs.read import read_episodes, read_log, write_log
from truesim.files.logs.read_many import read_logs
from truesim.files.logs.sampling import Gap, Sampling, missing_samples, sampling, split_at_gaps

__all__ = [
    "ColumnMap",
    "Derivatives",
    "Gap",
    "Log",
    "Matching",
    "RecordedMotion",
    "Sampling",
    "anomalies",
    "column_map",
    "derivatives",
    "matching",
    "missing_samples",
    "motion",
    "orientation_derivatives",
    "prepare",
    "read_episodes",
    "read_log",
    "read_logs",
    "read_mapping",
    "sampling",
    "select_episodes",
    "split_at_gaps",
    "unwrap",
    "write_log",
]
