"""Pages of Plotly figures: one HTML file that works offline."""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

PLOT_FONT = {
    "family": "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif",
    "size": 12,
    "color": "#1d2129",
}
INK, MUTED, LINE = "#1d2129", "#656c79", "#dde1e7"
"""Colors of text, of secondary text and of grid lines."""
PAGE_SHADES = {
    INK: "ink",
    MUTED: "faint",
    LINE: "line",
    "#0072b2": "fitted",
    "#c2500a": "before",
    "#0a7a55": "good",
    "#8a5fb0": "held",
    "#a05a00": "warn",
    "#5c6370": "idle",
}
"""Colors that follow the light or dark style of the page, with their names there."""
TRACE_COLORS = ("#0072b2", "#c2500a", "#0a7a55", "#8a5fb0", "#a05a00", "#5c6370")


@dataclasses.dataclass(frozen=True)
class PageFigure:
    """A figure with its title and caption."""

    title: str
    text: str
    figure: Any
    """Plotly figure."""
    min_width: int = 640
    """Least width, below which the page scrolls [px]."""


@dataclasses.dataclass(frozen=True)
class PageTable:
    """A table of text; the first column holds names."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_text: bool = False
    """True for cells of words, which are broken into lines; numbers stay in a row."""


def write_figures(
    path: str | os.PathLike[str],
    title: str,
    lead: str,
    figures: Sequence[PageFigure],
    tables: Sequence[PageTable] = (),
) -> Path:
    """Write a page of figures.

    Args:
        path: File to write; missing folders are created.
        title: Title of the page.
        lead: Introduction of one or two sentences.
        figures: Figures from top to bottom.
        tables: Tables above the figures.

    Returns:
        Path of the page.
    """
    loader = jinja2.PackageLoader("truesim.report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["source"] = lambda name: Markup(loader.get_source(environment, name)[0])
    shown = [
        {
            "title": f.title,
            "text": f.text,
            "height": int(f.figure.layout.height),
            "width": f.min_width,
            "json": Markup(_json(f.figure)),
        }
        for f in figures
    ]
    page = environment.get_template("figures.html").render(
        title=title,
        lead=lead,
        figures=shown,
        tables=tables,
        shades=Markup(json.dumps(PAGE_SHADES)),
        plotly=Markup(get_plotlyjs()),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(page, encoding="utf-8")
    part.replace(path)
    return path


def apply_style(figure: Any, height: int) -> Any:
    """The figure in the common style, `height` pixels high."""
    figure.update_layout(
        height=height,
        font=PLOT_FONT,
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 64, "r": 16, "t": 40, "b": 48},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    )
    axis = {"gridcolor": LINE, "zeroline": False, "linecolor": LINE, "exponentformat": "power", "automargin": True}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure


def _json(figure: Any) -> str:
    """JSON that is safe inside a script element."""
    return figure.to_json().replace("<", "\\u003c")
