"""Chart of the ratios and their targets, as SVG."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

WIDTH, LABELS, RIGHT, ROW, TOP, BOTTOM = 1160, 590, 80, 42, 78, 48
MET, MISSED, TARGET, GRID, TEXT, MUTED = "#2a9d8f", "#d1495b", "#30343f", "#e4e7ec", "#30343f", "#7b8190"


@dataclass(frozen=True)
class Ratio:
    """One line of the chart."""

    name: str
    detail: str
    """Second line in small print under the name."""
    value: float | None
    """None if it could not be measured."""
    target: float


def ratio_chart(title: str, ratios: Iterable[Ratio]) -> str:
    """SVG with a line per ratio on a logarithmic axis: a dot at the value, a tick at the target."""
    lines = list(ratios)
    axis = _Axis.around([x for line in lines for x in (line.value, line.target) if x])
    height = TOP + ROW * len(lines) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(24, 32, title, size=17, weight="bold"),
        *_legend(),
        *_grid(axis, height - BOTTOM),
    ]
    for i, line in enumerate(lines):
        parts += _line(line, axis, TOP + ROW * (i + 0.5))
    middle = (LABELS + WIDTH - RIGHT) / 2
    parts.append(_text(middle, height - 10, "times as fast as the peer", color=MUTED, anchor="middle"))
    return "\n".join([*parts, "</svg>\n"])


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis, in powers of ten."""

    low: float
    high: float

    @classmethod
    def around(cls, values: list[float]) -> "_Axis":
        """The axis that holds all values and 1."""
        logarithms = [0.0, *(math.log10(value) for value in values)]
        return cls(min(logarithms) - 0.1, max(logarithms) + 0.1)

    def at(self, value: float) -> float:
        """Horizontal position of a value [px]."""
        return LABELS + (WIDTH - LABELS - RIGHT) * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times the powers of ten on the axis."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [value for value in values if self.low <= math.log10(value) <= self.high]


def _grid(axis: _Axis, bottom: float) -> list[str]:
    parts = []
    for value in axis.ticks():
        x, color = axis.at(value), MUTED if value == 1 else GRID
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{color}"/>')
        parts.append(_text(x, bottom + 17, f"{value:g}", color=MUTED, size=12, anchor="middle"))
    return parts


def _line(line: Ratio, axis: _Axis, y: float) -> list[str]:
    parts = [
        _text(LABELS - 18, y - 2, line.name, anchor="end"),
        _text(LABELS - 18, y + 13, line.detail, color=MUTED, size=11, anchor="end"),
    ]
    tick = axis.at(line.target)
    target = f'<line x1="{tick:.1f}" y1="{y - 10:.1f}" x2="{tick:.1f}" y2="{y + 10:.1f}" stroke="{TARGET}" '
    if line.value is None:
        missing = _text(axis.at(1) + 8, y + 4, "missing", color=MUTED)
        return [*parts, missing, target + 'stroke-width="2.5"/>']
    color, x = MET if line.value >= line.target else MISSED, axis.at(line.value)
    return [
        *parts,
        f'<line x1="{axis.at(1):.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y:.1f}" stroke="{color}" stroke-width="5"/>',
        target + 'stroke-width="2.5"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6.5" fill="{color}" stroke="#ffffff" stroke-width="1.5"/>',
        _text(WIDTH - 20, y + 4, f"{line.value:.3g}", color=color, weight="bold", anchor="end"),
    ]


def _legend() -> list[str]:
    y = 54
    return [
        f'<circle cx="30" cy="{y}" r="6.5" fill="{MET}"/>',
        _text(42, y + 4, "reaches its target", color=MUTED),
        f'<circle cx="178" cy="{y}" r="6.5" fill="{MISSED}"/>',
        _text(190, y + 4, "does not", color=MUTED),
        f'<line x1="266" y1="{y - 9}" x2="266" y2="{y + 9}" stroke="{TARGET}" stroke-width="2.5"/>',
        _text(276, y + 4, "target", color=MUTED),
    ]


def _text(
    x: float, y: float, words: str, *, color: str = TEXT, size: int = 13, weight: str = "normal", anchor: str = "start"
) -> str:
    style = f'fill="{color}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'
