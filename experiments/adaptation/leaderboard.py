"""Figure of gap closed against real episodes, from the rows that `--out` wrote.

`python -m experiments.adaptation.leaderboard results.json docs/adaptation.svg`
"""

import json
import sys
from pathlib import Path

import numpy as np

from experiments.adaptation.strategy import COUNTS, NAME
from experiments.line_chart import Line, draw_lines
from truesim.policies.adaptation import SEARCHES


def draw(source: Path, target: Path) -> None:
    """Draw a line for each search, and the references across."""
    values = {row["method"]: row["value"] for row in json.loads(source.read_text()) if row["benchmark"] == NAME}
    x = np.array([0, *COUNTS], float)
    lines = [Line(m, x, np.array([0.0, *(values[f"{m}, {k} episodes"] for k in COUNTS)])) for m in SEARCHES]
    for name, short in (("uniform", "randomization"), ("told", "true parameters"), ("oracle", "oracle")):
        value = next(v for k, v in values.items() if k.startswith(name))
        lines.append(Line(short, x[[0, -1]], np.full(2, value)))
    draw_lines(target, "Gap closed on a cart-pole with latency", ("real episodes", "gap closed"), lines)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
