"""Several fits side by side: estimates with intervals, errors, status, and options that differ."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from truesim.core.errors import TruesimError
from truesim.identification.fit_folder import read_document
from truesim.report import document as decisions
from truesim.report.figures import TRACE_COLORS, PageFigure, PageTable, apply_style, write_figures
from truesim.report.numbers import MISSING_VALUE, estimate, number, rounded, unit
from truesim.report.sections.parameters import flat_names

HELD_OUT, TRAIN = "held_out", "train"
TOLD = ("ties", "bounds", "priors", "channels", "horizons", "per_log", "blueprint", "smoothing", "contact", "seed")
"""Options that stand under another name among the flags of the request."""
ROW_HEIGHT = 26
"""Height of a parameter in the figure [px]."""
MIN_WIDTH = 340
"""Least width of a figure, for telephones [px]."""
DODGE = 0.22
"""Distance of the marks of two fits within a row, so that equal ones are both seen [rows]."""
MIN_LOGARITHMIC = 20.0
"""Ratio of the largest to the smallest error from which on their axis is logarithmic."""


@dataclasses.dataclass(frozen=True)
class ComparedNumber:
    """One number of a model in several fits; None where a fit does not have it free."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    """95 % interval in each fit."""

    @property
    def differs(self) -> bool:
        """True if the intervals of two fits have nothing in common."""
        known = [interval for interval in self.intervals if interval is not None]
        return any(a[1] < b[0] or b[1] < a[0] for a, b in itertools.combinations(known, 2))


@dataclasses.dataclass(frozen=True)
class FitComparison:
    """Several fits side by side."""

    names: tuple[str, ...]
    status: tuple[str, ...]
    numbers: tuple[ComparedNumber, ...]
    part: str
    """Logs of the errors: `held_out` if every fit has some, else `train`."""
    errors: Mapping[str, tuple[float | None, ...]]
    """Median open-loop error by channel, in each fit."""
    units: Mapping[str, str]
    """Units of the channels."""
    options: Mapping[str, tuple[Any, ...]]
    """Options that differ, by name."""
    same_logs: bool
    """True if the errors are of the same logs (by content), so that they can be compared."""

    @property
    def best(self) -> str | None:
        """The fit with the smallest geometric mean of errors; None if they cannot be compared."""
        whole = [row for row in self.errors.values() if all(e is not None and e > 0 for e in row)]
        if not self.same_logs or not whole:
            return None
        return self.names[int(np.argmin(np.log(np.array(whole, float)).mean(axis=0)))]

    def document(self) -> dict[str, Any]:
        """The comparison as plain values, for JSON."""
        return {**dataclasses.asdict(self), "best": self.best}


def compare_fits(folders: Sequence[Path]) -> FitComparison:
    """Compare the fits in several folders."""
    if len(folders) < 2:
        raise TruesimError(f"A comparison needs two fits or more; {len(folders)} was given.")
    documents = [read_document(folder) for folder in folders]
    part = HELD_OUT if all(HELD_OUT in d["errors"] for d in documents) else TRAIN
    channels = dict.fromkeys(row for d in documents for row in d["errors"][part])
    files = "holdout" if part == HELD_OUT else "logs"
    logs = {tuple(sorted(str(log["sha256"]) for log in d["provenance"][files])) for d in documents}
    return FitComparison(
        names=_labels(folders),
        status=tuple(decisions.status(d) for d in documents),
        numbers=_numbers(documents),
        part=part,
        errors={row: tuple(d["errors"][part].get(row, {}).get("median") for d in documents) for row in channels},
        units={row: text for d in documents for row, text in d.get("units", {}).items()},
        options=_different([_given(d) for d in documents]),
        same_logs=len(logs) == 1,
    )


def write_comparison(comparison: FitComparison, path: Path) -> Path:
    """Write the comparison as a page; returns its path."""
    same = "" if comparison.same_logs else " The fits have different logs: their errors cannot be compared."
    best = "" if comparison.best is None else f" The errors of {comparison.best} are smallest."
    lead = f"{len(comparison.names)} fits: {', '.join(comparison.names)}.{best}{same}"
    return write_figures(path, "Comparison of fits", lead, _figures(comparison), comparison_tables(comparison))


def comparison_tables(comparison: FitComparison) -> list[PageTable]:
    """Tables of status, estimates, errors and options, with one column for each fit."""
    names = comparison.names
    rows = [
        (n.name, unit(n.unit), *map(_cell, n.values, n.intervals), "≠" if n.differs else "") for n in comparison.numbers
    ]
    where = "held-out logs" if comparison.part == HELD_OUT else "logs of the fit"
    errors = [
        (row, unit(comparison.units.get(row, "")), *(number(e, 4) for e in values))
        for row, values in comparison.errors.items()
    ]
    tables = [
        PageTable("Status", ("", *names), [("status", *comparison.status)]),
        PageTable("Estimates ± half of the 95 % interval (≠: intervals apart)", ("", "unit", *names, ""), rows),
        PageTable(f"Median open-loop error, {where}", ("", "unit", *names), errors),
    ]
    if comparison.options:
        options = [(name, *map(_text, values)) for name, values in comparison.options.items()]
        tables.append(PageTable("Options that differ", ("", *names), options, is_text=True))
    return tables


def _labels(folders: Sequence[Path]) -> tuple[str, ...]:
    """The last parts of the folders, as many as tell each from the others."""
    parts = [folder.resolve().parts for folder in folders]

    def label(k: int) -> str:
        for count in range(1, len(parts[k]) + 1):
            own = parts[k][-count:]
            if sum(other[-count:] == own for other in parts) == 1:
                return "/".join(own)
        return str(folders[k])

    return tuple(map(label, range(len(folders))))


def _numbers(documents: Sequence[Mapping[str, Any]]) -> tuple[ComparedNumber, ...]:
    each = [dict(_flat(d["parameters"])) for d in documents]
    names = dict.fromkeys(name for own in each for name in own)
    return tuple(
        ComparedNumber(
            name,
            next(own[name]["unit"] for own in each if name in own),
            tuple(own[name]["value"] if name in own else None for own in each),
            tuple((own[name]["low"], own[name]["high"]) if name in own else None for own in each),
        )
        for name in names
    )


def _flat(parameters: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Numbers of all parameters, element by element, by name."""
    numbers = []
    for entry in parameters:
        arrays = {key: np.ravel(np.array(entry[key], float)) for key in ("value", "low", "high")}
        own = flat_names([dict(entry)])
        numbers += [
            (name, {"unit": entry["unit"], **{key: float(array[k]) for key, array in arrays.items()}})
            for k, name in enumerate(own)
        ]
    return numbers


def _given(document: Mapping[str, Any]) -> dict[str, Any]:
    """Free parameters, robot, options and version of a fit, by name."""
    request, provenance = document["provenance"]["request"], document["provenance"]
    options = document.get("options", {})
    groups = {f"{g}.{k}": v for g in ("problem", "solve", "diagnose") for k, v in options.get(g, {}).items()}
    logs = [Path(log["file"]).name for log in provenance["logs"]]
    return {
        "robot": Path(provenance["robot"]["file"]).name,
        "logs": logs,
        "free": request["free"],
        "contact": provenance.get("contact"),
        "truesim": provenance.get("versions", {}).get("truesim"),
        **{name: value for name, value in request["options"].items() if name not in ("contact", "seed")},
        **{name: value for name, value in groups.items() if name.split(".")[1] not in (*request["options"], *TOLD)},
    }


def _different(options: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    names = dict.fromkeys(name for own in options for name in own)
    rows = {name: tuple(own.get(name) for own in options) for name in names}
    return {name: values for name, values in rows.items() if any(value != values[0] for value in values)}


def _cell(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None or interval is None:
        return MISSING_VALUE
    half = (interval[1] - interval[0]) / 2
    return f"{estimate(value, half)} ± {rounded(half, 2)}"


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return MISSING_VALUE
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def _figures(comparison: FitComparison) -> list[PageFigure]:
    return [figure for figure in (_estimates_figure(comparison), _errors_figure(comparison)) if figure is not None]


def _estimates_figure(comparison: FitComparison) -> PageFigure | None:
    """Estimates and intervals of every fit, each number relative to the mean of the fits."""
    shown = [n for n in comparison.numbers if any(v for v in n.values)]
    if not shown:
        return None
    means = [float(np.mean([abs(v) for v in n.values if v is not None])) or 1.0 for n in shown]
    figure = go.Figure()
    for k, fit in enumerate(comparison.names):
        own = [(n, mean) for n, mean in zip(shown, means, strict=True) if n.values[k] is not None]
        bounds = [(n.values[k] / m, n.intervals[k][0] / m, n.intervals[k][1] / m) for n, m in own]  # type: ignore[operator,index]
        figure.add_scatter(
            x=[value for value, _, _ in bounds],
            y=[shown.index(n) + _dodge(comparison, k) for n, _ in own],
            text=[n.name for n, _ in own],
            hovertemplate="%{text}: %{x:.4g}<extra>" + fit + "</extra>",
            mode="markers",
            name=fit,
            marker={"color": TRACE_COLORS[k % len(TRACE_COLORS)], "size": 8, "symbol": k % 6},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - value for value, _, high in bounds],
                "arrayminus": [value - low for value, low, _ in bounds],
            },
        )
    apply_style(figure, 110 + ROW_HEIGHT * len(shown))
    _name_rows(figure, [n.name for n in shown])
    figure.update_xaxes(title="relative to the mean")
    words = "Marks are values, lines 95 % intervals, both relative to the mean of the fits."
    return PageFigure("Estimates", words, figure, MIN_WIDTH)


def _dodge(comparison: FitComparison, k: int) -> float:
    """Place of the mark of a fit within its row [rows]."""
    return DODGE * (k - (len(comparison.names) - 1) / 2)


def _name_rows(figure: Any, names: Sequence[str]) -> None:
    """Rows 0, 1, … from top to bottom, with names."""
    figure.update_yaxes(range=[len(names) - 0.5, -0.5], tickvals=list(range(len(names))), ticktext=names)


def _errors_figure(comparison: FitComparison) -> PageFigure | None:
    if not comparison.errors:
        return None
    figure = go.Figure()
    for k, fit in enumerate(comparison.names):
        values = [row[k] for row in comparison.errors.values()]
        color = TRACE_COLORS[k % len(TRACE_COLORS)]
        marker = {"color": color, "size": 10, "symbol": k % 6}
        y = [row + _dodge(comparison, k) for row in range(len(values))]
        figure.add_scatter(x=values, y=y, name=fit, mode="markers", marker=marker)
    apply_style(figure, 130 + ROW_HEIGHT * len(comparison.errors))
    _name_rows(figure, list(comparison.errors))
    known = [value for row in comparison.errors.values() for value in row if value]
    wide = known and max(known) > MIN_LOGARITHMIC * min(known)
    scale = {"type": "log", "dtick": 1, "tickformat": "~g"} if wide else {"rangemode": "tozero"}
    figure.update_xaxes(title="median error, unit of the channel", **scale)
    return PageFigure("Open-loop errors", "Smaller is better.", figure, MIN_WIDTH)
