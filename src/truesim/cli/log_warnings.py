"""Logs of a verb: read and checked, with warnings about anomalies on standard error."""

from collections.abc import Sequence
from pathlib import Path

from truesim.cli.console import messages
from truesim.cli.fit_observer import FitObserver
from truesim.files.logs import Log
from truesim.identification.options import IdentifyOptions
from truesim.identification.reading import hold_unrecorded, read_logs, read_raw
from truesim.physics.model.model import Model


def read_checked(model: Model, paths: Sequence[Path], mapping: str | Path | None) -> list[Log]:
    """The logs in these files; prints a warning about each anomaly.

    Without a mapping file, which declares units, a log whose angles look like degrees is refused.
    """
    options = IdentifyOptions(mapping=None if mapping is None else str(mapping))
    return read_logs(model, paths, options, FitObserver(messages()))


def read_held(model: Model, paths: Sequence[Path], mapping: str | Path | None) -> tuple[Model, list[Log]]:
    """The robot, with joints held at zero of which the logs know nothing, and the logs as from `read_checked`."""
    options, observer = IdentifyOptions(mapping=None if mapping is None else str(mapping)), FitObserver(messages())
    raw = read_raw(paths, options)
    model, _ = hold_unrecorded(model, raw, options, observer)
    return model, read_logs(model, paths, options, observer, raw)
