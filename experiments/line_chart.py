"""Line charts as SVG, for the pages of the documentation."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 60, 45, 30
"""Sizes [px]."""
PALETTE = ("#8a8f99", "#d35400", "#0072b2", "#0a7a55", "#8a5fb0", "#a87900", "#56b4e9", "#1d2129")
"""Colors in the order of the lines; the first three are those of recorded, start and fitted robots elsewhere."""
MEASURED = "measured"
"""Name of a line that is drawn broad, to be seen beneath those that agree with it."""
TICKS = 5
"""About the number of ticks of an axis."""


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

    def at(x: ArrayLike, y: ArrayLike) -> str:
        px = LEFT + (np.asarray(x) - low[0]) / size[0] * (right - LEFT)
        py = HEIGHT - BOTTOM - (np.asarray(y) - low[1]) / size[1] * (HEIGHT - BOTTOM - TOP)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True) if np.isfinite(b))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="#1d2129"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-weight="bold">{title}</text>',
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{axes[0]}</text>',
        f'<text transform="translate(14,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{axes[1]}</text>',
    ]
    for value in ticks(low[0], high[0]):
        x = at([value], [low[1]]).partition(",")[0]
        parts.append(f'<path d="M{x} {TOP}V{HEIGHT - BOTTOM}" stroke="#dde1e7"/>')
        parts.append(f'<text x="{x}" y="{HEIGHT - 28}" text-anchor="middle">{_text(value)}</text>')
    for value in ticks(low[1], high[1]):
        y = float(at([low[0]], [value]).partition(",")[2])
        parts.append(f'<path d="M{LEFT} {y}H{right}" stroke="#dde1e7"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_text(value)}</text>')
    for k, line in enumerate(lines):
        color, width = PALETTE[k % len(PALETTE)], 5 if line.name == MEASURED else 2
        if line.low is not None and line.high is not None:
            band = f"{at(line.x, line.low)} {at(line.x[::-1], line.high[::-1])}"
            parts.append(f'<polygon points="{band}" fill="{color}" fill-opacity="0.12"/>')
        parts.append(f'<polyline points="{at(line.x, line.y)}" fill="none" stroke="{color}" stroke-width="{width}"/>')
        parts.append(f'<text x="{right + 8}" y="{TOP + 14 + 18 * k}" fill="{color}">{line.name}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")


def ticks(low: float, high: float) -> np.ndarray:
    """Multiples of 1, 2 or 5 times a power of ten between two ends."""
    rough = (high - low) / TICKS or 1.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    places = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    return np.round(places * step, 12) + 0.0


def _text(value: float) -> str:
    return np.format_float_positional(value, trim="-")
