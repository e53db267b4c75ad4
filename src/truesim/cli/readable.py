"""Logs for a fit: read, looked over, and refused where a fit could only be wrong."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from truesim.core.errors import TruesimError
from truesim.data import Log, prepared, read_log
from truesim.model.model import Model

UNITS = "looks like degrees"


def readable(model: Model, paths: Sequence[Path], mapping: str | Path | None) -> list[Log]:
    """The logs in these files; what looks odd about them is printed on standard error.

    Without a mapping file, which says what columns mean, a log whose angles look like degrees is refused.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    logs = [read_log(path, mapping=mapping) for path in paths]
    for log in logs:
        for finding in prepared(log, model).findings:
            if finding.severity != "warning":
                continue
            if UNITS in finding.message and mapping is None:
                raise TruesimError(f"{log.name}, {finding}")
            where = "" if finding.subject == log.name else f"{log.name}, "
            console.print(f"[yellow]warning:[/] {escape(where + str(finding))}")
    return logs
