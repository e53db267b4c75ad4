"""Prints held-out errors of the best analytic fit and of hybrids at the port that `truesim suggest` proposes first.

`python -m experiments.real_hybrids [--out DIR] [--seeds N] [qube] [xl330] [dfki-C1] [dfki-C0]`. All is done by the
command line: `identify`, `suggest --fit`, `identify --blueprint` with its defaults. Held-out runs take no part in
anything but the errors, which are open-loop over windows of 0.5 s, each started from the 25 ms before it. `rmse` is
over all windows; `median` is that of the windows' own errors, which says little where a robot rests half of the time.
A second run with the same folder goes on where the first one stopped.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.real_hybrids.cases import Case, chosen
from experiments.real_robots.__main__ import freed, identified
from experiments.recorded import show

Row = list[object]
LARGE = "body.wrench"
"""Networks here have hundreds of weights and compile for minutes: they are trained only where they come first."""


def fitted(case: Case, out: Path, extra: Sequence[str] = ()) -> Any:
    """The held-out errors of a fit, channel by channel; done only once in a folder."""
    if not (out / "fit.json").is_file():
        identified(case.robot, case.logs, case.held_out, [*case.options, *extra], out)
    return json.loads((out / "fit.json").read_text(encoding="utf-8"))["errors"]["held_out"]


def suggested(case: Case, fit: Path, out: Path) -> Any:
    """What `truesim suggest` says of a fit."""
    if not (out / "suggest.json").is_file():
        program = [sys.executable, "-c", "from truesim.cli.main import run; run()"]
        command = [*program, "suggest", str(case.robot), *map(str, case.logs), "--fit", str(fit), "--out", str(out)]
        subprocess.run([*command, "--force"], check=True, stdout=subprocess.DEVNULL)
    return json.loads((out / "suggest.json").read_text(encoding="utf-8"))


def hybrid(case: Case, blueprint: Path, seed: int, out: Path) -> Any:
    """The held-out errors with the networks of a blueprint, begun from a seed."""
    out.mkdir(parents=True, exist_ok=True)
    seeded = out / "blueprint.toml"
    seeded.write_text(re.sub(r'"seed" = \d+', f'"seed" = {seed}', blueprint.read_text()), encoding="utf-8")
    return fitted(case, out, ["--blueprint", str(seeded)])


def ratio(before: Any, after: Any, measure: str) -> float:
    """Errors over those of another fit: the geometric mean over channels."""
    return float(np.exp(np.mean([np.log(after[channel][measure] / before[channel][measure]) for channel in before])))


def row(what: str, before: Any, after: Any) -> Row:
    """Errors of every channel, and the change of all together."""
    cells: Row = [what]
    for measure in ("rmse", "median"):
        cells.append(" ".join(f"{after[channel][measure]:.4f}" for channel in before))
        cells.append(f"{100 * (ratio(before, after, measure) - 1):+.0f} %")
    return cells


def compared(case: Case, out: Path, seeds: int) -> tuple[list[Row], list[Row]]:
    """Rows of the road that was proposed, and of what was tried beside it; changes are from the best analytic fit."""
    analytic, richer = fitted(case, out / "analytic"), fitted(case, out / "richer", freed(case.more))
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
    """Port, kind and place of a blueprint's rule."""
    text = blueprint.read_text(encoding="utf-8")
    for s in suggestions:
        head = f"# {s['kind']} at {', '.join(s['names'])}:"
        if text.startswith(head) and f'output = "{s["port"]}"' in text:
            return f"{s['port']} of {', '.join(s['names'])} ({s['kind']})"
    raise AssertionError(f"{blueprint} belongs to no suggestion")


def main(words: list[str], out: Path, seeds: int) -> None:
    """The robots that were asked for, or all."""
    proposed: list[Row] = []
    beside: list[Row] = []
    for case in chosen(words, out):
        rows, tried = compared(case, out / case.name.replace(", ", "-").replace(" ", "-").lower(), seeds)
        proposed, beside = proposed + rows, beside + tried
        header = ("fit", "rmse [rad]", "change", "median [rad]", "change")
        show(f"Held-out errors at the port proposed first; folders are in {out}", header, proposed)
        show("Tried beside it", header, beside)
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    main(given.robots, given.out or Path(tempfile.mkdtemp()), given.seeds)
