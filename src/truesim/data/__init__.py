"""Logs: named columns over time, in and out."""

from truesim.data.columns import command_columns, position_columns, sensor_columns, velocity_columns
from truesim.data.log import Log, read_log, write_log

__all__ = [
    "Log",
    "command_columns",
    "position_columns",
    "read_log",
    "sensor_columns",
    "velocity_columns",
    "write_log",
]
