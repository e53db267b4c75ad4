"""Basin map: result of each start, as SVG."""

import itertools
from pathlib import Path

import numpy as np

from truesim.core.typing import Int

CELL, MARGIN, TITLE = 4, 60, 30
"""Sizes [px]."""
COLORS = ("#4e79a7", "#e15759", "#f28e2b", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#bab0ac")
Panel = tuple[str, Int[np.ndarray, "n n"], list[str]]
"""Title, class of each start, and names of the classes."""


def draw(path: Path, panels: list[Panel], low: float, high: float) -> None:
    """Write the map.

    Args:
        path: File to write.
        panels: Maps to draw side by side; rows are the second coordinate.
        low: Lower bound of both coordinates [m].
        high: Upper bound of both coordinates [m].
    """
    side = CELL * len(panels[0][1])
    width, height = len(panels) * (side + MARGIN) + MARGIN, side + TITLE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="13"><rect width="{width}" height="{height}" fill="white"/>'
    ]
    for k, panel in enumerate(panels):
        parts.append(_panel(panel, MARGIN + k * (side + MARGIN), side, low, high))
    path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")


def _panel(panel: Panel, left: int, side: int, low: float, high: float) -> str:
    title, classes, names = panel
    parts = [
        f'<g transform="translate({left},{TITLE})" shape-rendering="crispEdges">',
        f'<text y="-10" font-weight="bold">{title}</text>',
    ]
    for row, line in enumerate(classes):
        edges = [0, *(np.flatnonzero(np.diff(line)) + 1), len(line)]
        for a, b in itertools.pairwise(edges):
            at = f'x="{CELL * a}" y="{side - CELL * (row + 1)}" width="{CELL * (b - a)}" height="{CELL}"'
            parts.append(f'<rect {at} fill="{COLORS[line[a] % len(COLORS)]}"/>')
    below, middle = f'y="{side + 18}"', 'text-anchor="middle"'
    parts += [
        f'<text {below}>{low:g}</text><text x="{side}" {below} text-anchor="end">{high:g}</text>',
        f'<text x="{side / 2}" {below} {middle}>start of the upper length [m]</text>',
        f'<text transform="translate(-8,{side / 2}) rotate(-90)" {middle}>start of the lower length [m]</text>',
    ]
    for k, name in enumerate(names):
        y = side + 36 + 18 * (k % 4)
        x = (k // 4) * side // 2
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{COLORS[k % len(COLORS)]}"/>')
        parts.append(f'<text x="{x + 18}" y="{y}">{name}</text>')
    return "\n".join([*parts, "</g>"])
