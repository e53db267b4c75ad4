"""A fit in notebooks and programs: as text, as HTML, as a table and as figures."""

import html
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesim.core.errors import unknown_name
from truesim.identification.diagnose.diagnosis import Part
from truesim.identification.diagnose.estimates import EstimateFlag, Flag
from truesim.identification.diagnose.messages import explain
from truesim.physics.model.targets import matches_pattern

if TYPE_CHECKING:
    from truesim.identification.fit import Fit

ESTIMATE_HEADINGS = ("parameter", "start", "value", "95 % interval", "unit")
"""Headings of the rows of `noted_rows`, whose notes have none."""
COLUMNS = ("parameter", "start", "value", "std", "low", "high", "unit", "flags")


def rows_of(fit: "Fit") -> Iterator[tuple[Any, ...]]:
    """Every number of a fit, in the order of `COLUMNS`; vectors have one row per element."""
    for e in fit.estimates:
        for k in range(e.value.size):
            name = e.path if e.value.size == 1 else f"{e.path}[{k}]"
            numbers = (float(np.reshape(x, -1)[k]) for x in (e.start, e.value, e.std, e.low, e.high))
            yield (name, *numbers, e.unit, "; ".join(map(str, e.flags)))


def tie_of(path: str, ties: Sequence[Sequence[str] | str]) -> str | None:
    """Patterns of the tie through which a parameter stands for others, or None if it stands for itself."""
    for tie in ties:
        patterns = [tie] if isinstance(tie, str) else list(tie)
        if any(matches_pattern(path, pattern.removeprefix("-")) for pattern in patterns):
            return ", ".join(patterns)
    return None


def common_flags(flags: Sequence[Sequence[str]]) -> list[str]:
    """Flags that all of several parameters have, so that a table can tell them once."""
    return [flag for flag in flags[0] if all(flag in own for own in flags)] if len(flags) > 1 else []


def noted_rows(fit: "Fit") -> tuple[list[tuple[str, ...]], str]:
    """Rows of a table of estimated numbers as text, with notes; and a sentence with the flags that all of them have.

    Returns:
        Rows of name, start, value, 95 % interval, unit and notes; the sentence, empty if there is none.
    """
    flags = {e.path: _shortened(e.flags) for e in fit.estimates if not e.is_known}
    common = common_flags(list(flags.values()))
    rows: list[tuple[str, ...]] = []
    for name, start, value, _, low, high, unit, _ in rows_of(fit):
        path = name if name in flags else name.rpartition("[")[0]
        if path not in flags:
            continue
        tie = tie_of(path, fit.request.options.problem.ties)
        notes = [f"one value for {tie}"] if tie else []
        notes += [flag for flag in flags[path] if flag not in common] if name in (path, f"{path}[0]") else []
        rows.append((name, f"{start:.5g}", f"{value:.5g}", f"{low:.5g} … {high:.5g}", unit, "; ".join(notes)))
    return rows, f"All of them: {'; '.join(common)}." if common else ""


def _shortened(flags: Sequence[EstimateFlag]) -> list[str]:
    """Flags in words; of the correlations, the first and how many more there are."""
    others = [str(flag) for flag in flags if flag.kind is not Flag.CORRELATED]
    correlated = [str(flag) for flag in flags if flag.kind is Flag.CORRELATED]
    more = f" and {len(correlated) - 1} more" if len(correlated) > 1 else ""
    return [*others, *(word + more for word in correlated[:1])]


def summary_text(fit: "Fit") -> str:
    """Status, estimates with intervals, and open-loop errors before and after, as aligned text."""
    rows, common = noted_rows(fit)
    lines = [repr(fit), "", *_aligned((*ESTIMATE_HEADINGS, ""), rows), *([common] if common else []), ""]
    part = Part.HELD_OUT if Part.HELD_OUT in fit.errors else Part.TRAIN
    before = Part.HELD_OUT_START if part is Part.HELD_OUT else Part.TRAIN_START
    errors = [
        (row, f"{fit.errors[before][row].median:.4g}" if row in fit.errors[before] else "", f"{found.median:.4g}")
        for row, found in fit.errors[part].items()
    ]
    title = f"open-loop error on {'held-out logs' if part is Part.HELD_OUT else 'the logs'}"
    lines += _aligned((title, "start", "fitted"), errors)
    lines += ["", *(f"- {explain(diagnostic)}" for diagnostic in fit.diagnostics)] if fit.diagnostics else []
    return "\n".join(lines)


def summary_html(fit: "Fit") -> str:
    """The estimates as an HTML table, for notebooks."""
    rows, common = noted_rows(fit)
    left = "<td style='text-align:left'>"
    cells = "".join(
        f"<tr>{left}<code>{html.escape(name)}</code></td><td>{start}</td><td><b>{value}</b></td><td>{interval}</td>"
        f"{left}{html.escape(unit)}</td>{left}{html.escape(notes)}</td></tr>"
        for name, start, value, interval, unit, notes in rows
    )
    head = "".join(f"<th>{text}</th>" for text in (*ESTIMATE_HEADINGS, ""))
    title = f"{html.escape(Path(fit.request.robot).name)}: {html.escape(str(fit.status))}"
    note = f"<p>{html.escape(common)}</p>" if common else ""
    return f"<p><b>{title}</b></p><table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>{note}"


def frame_of(fit: "Fit") -> Any:
    """Every number as a row of a polars data frame."""
    return import_module("polars").DataFrame(list(rows_of(fit)), schema=list(COLUMNS), orient="row")


def figure_of(fit: "Fit", channel: str | None = None) -> Any:
    """Measured and simulated signal of one channel as a Plotly figure, held-out logs last.

    Args:
        fit: The fit.
        channel: Row of the residual; the first one by default.
    """
    subplots = import_module("plotly.subplots")  # slow to load, and needed for figures only
    rows = [str(row) for row in fit.signals["rows"]]
    if channel is not None and channel not in rows:
        raise unknown_name("channel", channel, rows)
    at = rows.index(channel) if channel is not None else 0
    logs = [key.removesuffix("/time") for key in fit.signals if key.endswith("/time")]
    figure = subplots.make_subplots(len(logs), 1, subplot_titles=logs, vertical_spacing=0.3 / len(logs))
    looks = {"start": ("#c2500a", 1), "fitted": ("#0072b2", 3), "measured": ("#1d2129", 1)}
    for k, log in enumerate(logs):
        for name, (color, width) in looks.items():
            figure.add_scatter(
                x=fit.signals[f"{log}/time"], y=fit.signals[f"{log}/{name}"][:, at], name=name, legendgroup=name,
                showlegend=k == 0, line={"color": color, "width": width}, row=k + 1, col=1,
            )  # fmt: skip
    figure.update_xaxes(title_text="time [s]", row=len(logs), col=1)
    return figure.update_layout(title=rows[at], template="plotly_white", height=160 + 200 * len(logs))


def _aligned(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in (headings, *rows)]
