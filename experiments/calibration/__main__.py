"""Repeats simulate-and-fit on three machines, prints coverages and draws them.

`python -m experiments.calibration [--repeats 200] [--out FOLDER]`. True parameters differ by some ten per cent from
repeat to repeat, and so do the noise and the start of the fit relative to the truth. Every repeat is kept in FOLDER as
it ends: the same command goes on after the last one.
"""

import argparse
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

from experiments.calibration.machines import MACHINES, Machine
from experiments.recorded import show
from truesim.cli.calibrate import WORDS
from truesim.cli.progress import Counting
from truesim.identify.fit import solve_problem
from truesim.identify.journal import Journal, fingerprint
from truesim.identify.posterior import Calibration
from truesim.identify.posterior.calibration import QUICK, SCHEMA, calibrated
from truesim.report.pictures import Picture, write_pictures
from truesim.report.posterior_figures import calibration_figure

KINDS = ("laplace", "mixture")
VARIETY = 0.1
"""Standard deviation of the true coordinates from repeat to repeat: of a value, or of its logarithm."""
SECONDS = 1.5
"""Length of each log [s]."""
LEAST, MOST = 0.89, 0.99
"""Coverages that are allowed to 95 % regions."""


def calibration(
    machine: Machine,
    count: int,
    kinds: tuple[str, ...] = KINDS,
    *,
    journal: Path | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> dict[str, Calibration]:
    """Calibrations of all kinds of posterior on one machine; repeats that the journal holds are not done again."""
    solution = solve_problem(machine.problem(SECONDS))
    rng = np.random.default_rng(1)
    truths = solution.theta + VARIETY * rng.normal(size=(count, len(solution.theta)))
    truths = np.clip(truths, *solution.problem.parameters.bounds)
    if journal is None:
        return calibrated(solution, kinds, truths, watch=watch)
    said = fingerprint(machine.text, machine.free, machine.noise, SECONDS, kinds, QUICK)
    with closing(Journal(journal, SCHEMA, said)) as book:
        return calibrated(solution, kinds, truths, journal=book, watch=watch)


def rows_of(name: str, found: dict[str, Calibration]) -> list[tuple[object, ...]]:
    """What the table says of one machine."""
    rows = []
    for kind, calibration in found.items():
        joint = calibration.coverage()
        each = ", ".join(f"{x:.3f}" for x in calibration.interval_coverage())
        ranks = ", ".join(f"{p:.2f}" for p in calibration.uniformity())
        good = "yes" if LEAST <= joint <= MOST else "NO"
        rows.append((name, kind, len(calibration.ranks), joint, good, each, ranks))
    return rows


def main() -> None:
    """Calibrates all machines, prints and draws."""
    parser = argparse.ArgumentParser(description="Coverage of posteriors on three machines.")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/calibration"), help="Folder for repeats and pictures.")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows, pictures = [], []
    for name, machine in MACHINES.items():
        journal = given.out / f"{name.split(',')[0]}.jsonl"
        with Counting(Console(stderr=True), name) as watch:
            found = calibration(machine, given.repeats, journal=journal, watch=watch)
        rows += rows_of(name, found)
        pictures.append(Picture(name.capitalize(), WORDS, calibration_figure(found)))
    header = (
        "machine", "posterior", "repeats", "95 % region holds", "0.89 to 0.99", "95 % intervals hold",
        "p of uniform ranks",
    )  # fmt: skip
    show("Coverage of the truth", header, rows)
    page = write_pictures(
        given.out / "index.html", "Calibration", f"{given.repeats} repeats of simulate-and-fit.", pictures
    )
    print(f"\nPictures: {page}")


if __name__ == "__main__":
    with jax.enable_x64(True):
        main()
