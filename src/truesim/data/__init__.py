"""Logs: named columns over time, in and out, and made ready for use."""

from truesim.data.checks import oddities
from truesim.data.columns import (
    command_columns,
    model_columns,
    position_columns,
    sensor_columns,
    velocity_columns,
)
from truesim.data.differentiate import Derivatives, derivatives, orientation_derivatives
from truesim.data.log import Log
from truesim.data.mapping import ColumnMap, column_map, read_mapping
from truesim.data.match import Matching, matching
from truesim.data.motion import Motion, motion
from truesim.data.prepare import prepared, unwrapped
from truesim.data.read import read_log, write_log
from truesim.data.sampling import Gap, Sampling, missing_samples, sampling, segments

__all__ = [
    "ColumnMap",
    "Derivatives",
    "Gap",
    "Log",
    "Matching",
    "Motion",
    "Sampling",
    "column_map",
    "command_columns",
    "derivatives",
    "matching",
    "missing_samples",
    "model_columns",
    "motion",
    "oddities",
    "orientation_derivatives",
    "position_columns",
    "prepared",
    "read_log",
    "read_mapping",
    "sampling",
    "segments",
    "sensor_columns",
    "unwrapped",
    "velocity_columns",
    "write_log",
]
