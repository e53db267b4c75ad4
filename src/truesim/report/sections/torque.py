"""Relative torque errors of every joint of an arm, with the start values and with the estimates."""

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

from truesim.report import numbers

HEADINGS = {
    "train_start": "logs of the fit: start",
    "train": "logs of the fit: fitted",
    "held_out_start": "held-out logs: start",
    "held_out": "held-out logs: fitted",
}
"""Headings of the parts of `torque_errors`."""


class TorqueTable(NamedTuple):
    """Columns and rows of the table, as text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Joint, then an error for each heading; the last row is the mean."""


def torque_table(document: Mapping[str, Any]) -> TorqueTable | None:
    """The table of a fit; None without joint torques."""
    found = document.get("torque_errors", {})
    parts = [part for part in HEADINGS if part in found]
    if not parts:
        return None
    rows = [(joint, *(_percent(found[part].get(joint)) for part in parts)) for joint in found[parts[0]]]
    means = [statistics.mean(e["relative"] for e in found[part].values()) for part in parts]
    mean = ("mean", *(f"{numbers.number(100 * m, 3)} %" for m in means))
    return TorqueTable(tuple(HEADINGS[part] for part in parts), (*rows, mean))


def _percent(error: Mapping[str, Any] | None) -> str:
    return "" if error is None or error["relative"] is None else f"{numbers.number(100 * error['relative'], 3)} %"
