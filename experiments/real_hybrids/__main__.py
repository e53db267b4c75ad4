"""Held-out errors of the best analytic fit and of hybrids at the port that `truesim suggest` ranks first.

`python -m experiments.real_hybrids [--out DIR] [--seeds N] [qube] [xl330] [dfki-C1] [dfki-C0]`. The experiment
uses the command line: `identify`, `suggest --fit`, `identify --blueprint` with defaults. Held-out runs are used for the
errors only, which are open-loop over windows of 0.5 s, each started from the 25 ms before it. `rmse` is over all
windows; `median` is over the errors of windows, and says little for a robot that is at rest half of the time. A second
run with the same folder resumes.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.real_hybrids.cases import Case, chosen
from experiments.real_hybrids.command import fitted, hybrid, suggested
from experiments.real_robots.command import free_options
from experiments.recorded import show

Row = list[object]
LARGE = "body.wrench"
"""Networks at this port have hundreds of weights and compile for minutes: they are trained only if ranked first."""


def ratio(before: Any, after: Any, measure: str) -> float:
    """Geometric mean over channels of the ratio of errors of two fits."""
    return float(np.exp(np.mean([np.log(after[channel][measure] / before[channel][measure]) for channel in before])))


def row(what: str, before: Any, after: Any) -> Row:
    """Row of the errors of every channel, and of their overall change."""
    cells: Row = [what]
    for measure in ("rmse", "median"):
        cells.append(" ".join(f"{after[channel][measure]:.4f}" for channel in before))
        cells.append(f"{100 * (ratio(before, after, measure) - 1):+.0f} %")
    return cells


def compared(case: Case, out: Path, seeds: int) -> tuple[list[Row], list[Row]]:
    """Rows of the first suggestion, and of alternatives; changes are relative to the best analytic fit."""
    analytic, richer = fitted(case, out / "analytic"), fitted(case, out / "richer", free_options(case.more))
    best = richer if ratio(analytic, richer, "rmse") < 1 else analytic
    rows = [row(f"{case.name}: analytic", best, analytic)]
    tried = [row(f"{case.name}: analytic with {', '.join(case.more)}", best, richer)]
    found = suggested(case, out / "analytic", out / "suggested")
    blueprints = sorted((out / "suggested").glob("blueprint-*.toml"))
    ports = {path: named(found["suggestions"], path) for path in blueprints}
    for seed in range(seeds if blueprints else 0):
        errors = hybrid(case, blueprints[0], seed, out / f"hybrid-{seed}")
        rows.append(row(f"  {ports[blueprints[0]]}, seed {seed}", best, errors))
    for path in [path for path in blueprints[1:] if not ports[path].startswith(LARGE)][:1]:
        tried.append(row(f"  {ports[path]}", best, hybrid(case, path, 0, out / "runner-up")))
    return rows, tried


def named(suggestions: Sequence[Any], blueprint: Path) -> str:
    """Port, kind and names of a blueprint's rule."""
    text = blueprint.read_text(encoding="utf-8")
    for s in suggestions:
        head = f"# {s['kind']} at {', '.join(s['names'])}:"
        if text.startswith(head) and f'output = "{s["port"]}"' in text:
            return f"{s['port']} of {', '.join(s['names'])} ({s['kind']})"
    raise AssertionError(f"{blueprint} belongs to no suggestion")


def main(words: list[str], out: Path, seeds: int) -> None:
    """Run the chosen robots, or all."""
    proposed: list[Row] = []
    beside: list[Row] = []
    for case in chosen(words, out):
        rows, tried = compared(case, out / case.name.replace(", ", "-").replace(" ", "-").lower(), seeds)
        proposed, beside = proposed + rows, beside + tried
        header = ("fit", "rmse [rad]", "change", "median [rad]", "change")
        show(f"Held-out errors at the port ranked first; folders are in {out}", header, proposed)
        show("Alternatives", header, beside)
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    main(given.robots, given.out or Path(tempfile.mkdtemp()), given.seeds)
