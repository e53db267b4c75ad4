"""The page of a gap between simulation and robot: one HTML file that works offline, made from `gap.json` alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from truesim.core.errors import FileError
from truesim.report.figures import INK, MUTED, TRACE_COLORS, PageFigure, PageTable, apply_style, write_figures
from truesim.report.numbers import number

GAP_DOCUMENT, GAP_PAGE = "gap.json", "gap.html"
REFERENCE_DASHES = {"policy": "dash", "nominal": "dot", "uniform": "dashdot", "fixed": "longdash", "oracle": "solid"}
"""Dashes of references that do not adapt, by role."""
MAX_SIGNALS = 8
"""Largest number of signals that are drawn."""


def write_gap_page(folder: Path) -> Path:
    """Write the page of a gap into its folder.

    Returns:
        Path of the page.
    """
    source = folder / GAP_DOCUMENT
    if not source.is_file():
        raise FileError(f"{folder} holds no gap: it has no {GAP_DOCUMENT}.")
    document = json.loads(source.read_text(encoding="utf-8"))
    figures = [_returns_figure(document)]
    if document.get("methods"):
        figures.append(_methods_figure(document))
    if document["discrepancies"]:
        figures.append(_motion_figure(document))
    return write_figures(
        folder / GAP_PAGE,
        f"Gap of {document['task']}",
        f"{document['sentence']} Robot: {document['real']}.",
        figures,
        [_table(document)],
    )


def _table(document: Mapping[str, Any]) -> PageTable:
    rows = []
    for row in document["roles"]:
        closed = row["gap_closed"]
        rows.append(
            (
                row["name"],
                _estimate(row["real"]),
                "" if row["simulated"] is None else number(row["simulated"], 3),
                f"{row['ended_early']} of {row['episodes']}",
                "" if closed is None else _estimate(closed),
            )
        )
    headings = ("policy", "return on the robot", "in simulation", "ended early", "gap closed")
    return PageTable("Returns, with 95 % intervals over policies and episodes", headings, rows)


def _estimate(e: Mapping[str, float]) -> str:
    return f"{number(e['value'], 3)}  [{number(e['low'], 3)}, {number(e['high'], 3)}]"


def _returns_figure(document: Mapping[str, Any]) -> PageFigure:
    figure = go.Figure()
    for k, row in enumerate(document["roles"]):
        color = TRACE_COLORS[k % len(TRACE_COLORS)]
        values = np.concatenate([np.asarray(each, float) for each in row["returns"]])
        jitter = 0.18 * (np.random.default_rng(k).uniform(size=len(values)) - 0.5)
        figure.add_scatter(
            x=values, y=k + jitter, mode="markers", showlegend=False, name=row["name"], hoverinfo="x+name",
            marker={"color": color, "size": 6, "opacity": 0.45},
        )  # fmt: skip
        real = row["real"]
        figure.add_scatter(
            x=[real["low"], real["high"]], y=[k, k], mode="lines", line={"color": INK, "width": 2}, showlegend=False
        )
        figure.add_scatter(
            x=[real["value"]], y=[k], mode="markers", showlegend=False, hoverinfo="x",
            marker={"color": INK, "size": 9, "symbol": "line-ns-open", "line": {"width": 3}},
        )  # fmt: skip
    names = [row["short"] for row in document["roles"]]
    apply_style(figure, 90 + 52 * len(names))
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed")
    figure.update_xaxes(title_text="return of an episode on the robot")
    figure.update_layout(margin={"l": 72, "r": 16, "t": 16, "b": 48})
    return PageFigure(
        "Returns on the robot",
        "Dots are episodes; a bar is the mean with its 95 % interval, over seeds too.",
        figure,
        320,
    )


def _methods_figure(document: Mapping[str, Any]) -> PageFigure:
    """A line for each method of adaptation with its interval, and references that do not adapt across."""
    figure, quantity = go.Figure(), document["methods"][0]["quantity"]
    for k, line in enumerate(document["methods"]):
        color = TRACE_COLORS[k % len(TRACE_COLORS)]
        outline = {"x": [*line["episodes"], *line["episodes"][::-1]], "y": [*line["high"], *line["low"][::-1]]}
        figure.add_scatter(
            **outline, fill="toself", fillcolor=color, opacity=0.15, line={"width": 0}, showlegend=False,
            hoverinfo="skip",
        )  # fmt: skip
        figure.add_scatter(
            x=line["episodes"], y=line["value"], mode="lines+markers", name=line["method"], line={"color": color}
        )
    last = max(max(line["episodes"]) for line in document["methods"])
    for row in document["roles"]:
        level = _level(row, quantity)
        if level is not None:
            figure.add_scatter(
                x=[0, last], y=[level, level], mode="lines", name=row["short"],
                line={"color": MUTED, "width": 1.5, "dash": REFERENCE_DASHES[row["role"]]},
            )  # fmt: skip
    apply_style(figure, 380)
    figure.update_xaxes(title_text="real episodes")
    figure.update_yaxes(title_text=quantity)
    return PageFigure(
        "Adaptation",
        "Evaluations count for nobody. Bands are 95 % intervals over searches, or over episodes of a method that "
        "searches nothing; grey lines do not adapt.",
        figure,
        320,
    )


def _level(row: Mapping[str, Any], quantity: str) -> float | None:
    """Height of a reference in the figure of methods."""
    if quantity == "return":
        return row["real"]["value"]
    if row["role"] in ("nominal", "oracle"):
        return float(row["role"] == "oracle")
    return None if row["gap_closed"] is None else row["gap_closed"]["value"]


def _motion_figure(document: Mapping[str, Any]) -> PageFigure:
    shown = document["discrepancies"][:MAX_SIGNALS]
    titles = [f"{each['name']}: {number(each['median'], 3)} ({100 * each['relative']:.0f} %)" for each in shown]
    spacing = 0.35 / max(len(shown), 2)
    figure = make_subplots(len(shown), 1, shared_xaxes=True, vertical_spacing=spacing, subplot_titles=titles)
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    for k, each in enumerate(shown, 1):
        real = {"color": MUTED, "width": 3}
        lines = (("robot", each["real"], real), ("simulation", each["simulated"], {"color": "#0072b2", "width": 1.5}))
        for name, values, line in lines:
            figure.add_scatter(x=each["time"], y=values, name=name, line=line, showlegend=k == 1, row=k, col=1)
    figure.update_xaxes(title_text="time [s]", row=len(shown), col=1)
    apply_style(figure, 130 * len(shown) + 110)
    figure.update_layout(legend={"y": 1 + 30 / (130 * len(shown)), "yanchor": "bottom"}, margin={"t": 64})
    return PageFigure(
        "Motion by signal",
        "The first episode, and the policy in simulation from its initial state. Titles have the median over episodes "
        "of the root mean square difference, and its part of the signal's standard deviation.",
        figure,
        320,
    )
