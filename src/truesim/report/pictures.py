"""A page of pictures: one file that needs no network."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif", "size": 12, "color": "#1d2129"}
INK, FAINT, LINE, PANEL = "#1d2129", "#656c79", "#dde1e7", "#f6f7f9"
COLOURS = ("#0072b2", "#c2500a", "#0a7a55", "#8a5fb0", "#a05a00", "#5c6370")


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture and what it shows."""

    title: str
    text: str
    figure: Any
    """From Plotly."""


def write_pictures(path: str | os.PathLike[str], title: str, lead: str, pictures: Sequence[Picture]) -> Path:
    """Writes a page; where it is.

    Args:
        path: Where to.
        title: Of the page.
        lead: What it is about, in a sentence or two.
        pictures: One below the other.
    """
    loader = jinja2.PackageLoader("truesim.report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["source"] = lambda name: Markup(loader.get_source(environment, name)[0])
    shown = [
        {"title": p.title, "text": p.text, "height": int(p.figure.layout.height), "json": Markup(_json(p.figure))}
        for p in pictures
    ]
    page = environment.get_template("pictures.html").render(
        title=title, lead=lead, pictures=shown, plotly=Markup(get_plotlyjs())
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(page, encoding="utf-8")
    part.replace(path)
    return path


def styled(figure: Any, height: int) -> Any:
    """The figure as all pages draw them, so many pixels high."""
    figure.update_layout(
        height=height,
        font=FONT,
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
    """JSON that may stand within a script element."""
    return figure.to_json().replace("<", "\\u003c")
