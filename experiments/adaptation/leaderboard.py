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
    """Draw a line with its 95 % intervals for each search, and the references across."""
    rows = {row["method"]: row for row in json.loads(source.read_text()) if row["benchmark"] == NAME}
    x, lines = np.array([0, *COUNTS], float), []
    for method in SEARCHES:
        found = [rows[f"{method}, {k} episodes"] for k in COUNTS]
        lines.append(
            Line(method, x, *(np.array([0.0, *(row[key] for row in found)]) for key in ("value", "low", "high")))
        )
    for name, short in (("uniform", "randomization"), ("told", "true parameters"), ("oracle", "oracle")):
        row = next(row for method, row in rows.items() if method.startswith(name))
        lines.append(Line(short, x[[0, -1]], np.full(2, row["value"])))
    draw_lines(target, "Gap closed on a cart-pole with latency", ("real episodes", "gap closed"), lines)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
