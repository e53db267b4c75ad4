"""The page of suggested networks: one HTML file that works offline, made from the suggestions' folder alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from truesim.core.errors import FileError
from truesim.report.numbers import number

SUGGEST_PAGE = "suggest.html"
MAX_PORTS_SHOWN = 8
"""Largest number of ports in the table."""
OUTLYING = 0.01
"""Fraction of points at each end of an axis that may lie far outside."""
CURVE_WIDTH, CURVE_HEIGHT = 420, 240
"""Size of a curve's frame [px]."""


def write_suggest_page(folder: Path) -> Path:
    """Write the page of suggestions into their folder.

    Returns:
        Path of the page.
    """
    source = folder / "suggest.json"
    if not source.is_file():
        raise FileError(f"{folder} holds no suggestions: it has no suggest.json.")
    page = folder / SUGGEST_PAGE
    page.write_text(suggest_page(json.loads(source.read_text(encoding="utf-8"))), encoding="utf-8")
    return page


def suggest_page(document: Mapping[str, Any]) -> str:
    """The page as HTML text, from the content of `suggest.json`."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("truesim.report"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    shown = document["suggestions"][:MAX_PORTS_SHOWN]
    curves = [_curve(s) for s in shown if s["curve"] is not None and document["needed"]][:2]
    return environment.get_template("suggest.html").render(
        document=document,
        rows=[_row(s) for s in shown],
        curves=curves,
        number=number,
        width=CURVE_WIDTH,
        height=CURVE_HEIGHT,
    )


def _row(suggestion: Mapping[str, Any]) -> dict[str, Any]:
    explained = min(max(suggestion["explained"], 0.0), 1.0)
    error = suggestion["error"]
    return dict(suggestion) | {
        "bar": 100 * explained,
        "could": None if suggestion["reach"] is None else 100 * suggestion["reach"],
        "low": 100 * max(explained - error, 0.0),
        "high": 100 * min(explained + error, 1.0),
        "text": f"{100 * suggestion['explained']:.0f} %",
    }


def _curve(suggestion: Mapping[str, Any]) -> dict[str, Any]:
    """Points in pixels of the frame, and the ends of both axes."""
    curve = suggestion["curve"]
    (x_low, x_high), (y_low, y_high) = _span(curve["x"]), _span(curve["y"])
    inside = [(x, y) for x, y in zip(curve["x"], curve["y"], strict=True) if y_low <= y <= y_high]
    points = [
        (CURVE_WIDTH * (x - x_low) / (x_high - x_low), CURVE_HEIGHT * (1 - (y - y_low) / (y_high - y_low)))
        for x, y in inside
    ]
    zero = CURVE_HEIGHT * y_high / (y_high - y_low) if y_low < 0 < y_high else None
    return {
        "title": f"{suggestion['kind']}, {curve['name']}",
        "input": curve["input"],
        "points": [(round(x, 1), round(y, 1)) for x, y in points],
        "zero": zero,
        "ends": {"left": number(x_low), "right": number(x_high), "top": number(y_high), "bottom": number(y_low)},
    }


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis; a few values far away from all others, as at the begin of a log, are left outside."""
    low, high = map(float, np.quantile(values, (OUTLYING, 1 - OUTLYING)))
    room = high - low
    low, high = max(min(values), low - room), min(max(values), high + room)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room
