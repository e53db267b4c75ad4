"""Line charts as SVG, for the pages of the documentation."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 60, 45, 30
"""Sizes [px]."""
PALETTE = ("#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#b07aa1", "#9c755f", "#76b7b2", "#555555")


class Line(NamedTuple):
    """One line of a chart."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    """Lower ends of intervals, which are shaded."""
    high: np.ndarray | None = None


def draw_lines(path: Path, title: str, axes: tuple[str, str], lines: list[Line]) -> None:
    """Write a chart.

    Args:
        path: File to write.
        title: Title.
        axes: Names of the axes, with units.
        lines: The lines.
    """
    xs = np.concatenate([np.ravel(line.x) for line in lines])
    ys = np.concatenate([np.ravel(y) for line in lines for y in (line.y, line.low, line.high) if y is not None])
    low, high = (np.array([f(xs), f(ys)], float) for f in (np.nanmin, np.nanmax))
    size = np.where(high > low, high - low, 1.0)
    right = WIDTH - 150

    def at(x: np.ndarray, y: np.ndarray) -> str:
        px = LEFT + (np.asarray(x) - low[0]) / size[0] * (right - LEFT)
        py = HEIGHT - BOTTOM - (np.asarray(y) - low[1]) / size[1] * (HEIGHT - BOTTOM - TOP)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True) if np.isfinite(b))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-weight="bold">{title}</text>',
        f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{HEIGHT - BOTTOM - TOP}" fill="none" '
        'stroke="#999"/>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{axes[0]}</text>',
        f'<text transform="translate(14,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{axes[1]}</text>',
    ]
    for value, place in ((low[0], LEFT), (high[0], right)):
        parts.append(f'<text x="{place}" y="{HEIGHT - 28}" text-anchor="middle">{value:.3g}</text>')
    for value, place in ((low[1], HEIGHT - BOTTOM), (high[1], TOP + 8)):
        parts.append(f'<text x="{LEFT - 5}" y="{place}" text-anchor="end">{value:.3g}</text>')
    for k, line in enumerate(lines):
        color = PALETTE[k % len(PALETTE)]
        if line.low is not None and line.high is not None:
            band = f"{at(line.x, line.low)} {at(line.x[::-1], line.high[::-1])}"
            parts.append(f'<polygon points="{band}" fill="{color}" fill-opacity="0.12"/>')
        parts.append(f'<polyline points="{at(line.x, line.y)}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{right + 8}" y="{TOP + 14 + 18 * k}" fill="{color}">{line.name}</text>')
    path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")
