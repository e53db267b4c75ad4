"""Coverage of 95 % regions over repeated simulations and fits of three machines.

`python -m experiments.calibration [--repeats 200] [--out FOLDER]`. True parameters vary by about ten percent between
repeats, and so do the noise and the start of the fit relative to the truth. Every repeat is saved in FOLDER: the same
command resumes after the last one.
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
from truesim.cli.coverage import COVERAGE_CAPTION
from truesim.cli.progress import Counting
from truesim.core.persistence.journal import Journal, fingerprint
from truesim.identification.posterior import Calibration
from truesim.identification.posterior.calibration import CALIBRATION_MIXTURE, CALIBRATION_SCHEMA, calibrate
from truesim.identification.solve.stages import solve_problem
from truesim.report.figures import PageFigure, write_figures
from truesim.report.posterior_figures import calibration_figure

KINDS = ("laplace", "mixture")
VARIETY = 0.1
"""Standard deviation of the true coordinates between repeats: of a value, or of its logarithm."""
SECONDS = 1.5
"""Length of each log [s]."""
LEAST, MOST = 0.89, 0.99
"""Accepted range of the coverage of 95 % regions."""


def calibration(
    machine: Machine,
    count: int,
    kinds: tuple[str, ...] = KINDS,
    *,
    journal: Path | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> dict[str, Calibration]:
    """Calibrations of all kinds of posterior on one machine; repeats in the journal are not computed again."""
    solution = solve_problem(machine.problem(SECONDS))
    rng = np.random.default_rng(1)
    truths = solution.theta + VARIETY * rng.normal(size=(count, len(solution.theta)))
    truths = np.clip(truths, *solution.problem.parameters.bounds)
    if journal is None:
        return calibrate(solution, kinds, truths, callback=callback)
    said = fingerprint(machine.text, machine.free, machine.noise, SECONDS, kinds, CALIBRATION_MIXTURE)
    with closing(Journal(journal, CALIBRATION_SCHEMA, said)) as book:
        return calibrate(solution, kinds, truths, journal=book, callback=callback)


def rows_of(name: str, found: dict[str, Calibration]) -> list[tuple[object, ...]]:
    """Rows of the table for one machine."""
    rows = []
    for kind, calibration in found.items():
        joint = calibration.coverage()
        each = ", ".join(f"{x:.3f}" for x in calibration.interval_coverage())
        ranks = ", ".join(f"{p:.2f}" for p in calibration.uniformity())
        good = "yes" if LEAST <= joint <= MOST else "NO"
        rows.append((name, kind, len(calibration.ranks), joint, good, each, ranks))
    return rows


def main() -> None:
    """Calibrate all machines, print a table and write a page of figures."""
    parser = argparse.ArgumentParser(description="Coverage of posteriors on three machines.")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/calibration"), help="Folder for repeats and figures.")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows, figures = [], []
    for name, machine in MACHINES.items():
        journal = given.out / f"{name.split(',')[0]}.jsonl"
        with Counting(Console(stderr=True), name) as callback:
            found = calibration(machine, given.repeats, journal=journal, callback=callback)
        rows += rows_of(name, found)
        figures.append(PageFigure(name.capitalize(), COVERAGE_CAPTION, calibration_figure(found)))
    header = (
        "machine", "posterior", "repeats", "95 % region holds", "0.89 to 0.99", "95 % intervals hold",
        "p of uniform ranks",
    )  # fmt: skip
    show("Coverage of the true values", header, rows)
    page = write_figures(
        given.out / "index.html", "Calibration", f"{given.repeats} repeats of simulate-and-fit.", figures
    )
    print(f"\nFigures: {page}")


if __name__ == "__main__":
    with jax.enable_x64(True):
        main()
