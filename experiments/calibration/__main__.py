"""Repeats simulate-and-fit on three machines, prints coverages and draws them.

`python -m experiments.calibration [--repeats 200] [--out FOLDER]`. True parameters differ by some ten per cent from
repeat to repeat, and so do the noise and the start of the fit relative to the truth.
"""

import argparse
import time
from pathlib import Path

import jax
import numpy as np

from experiments.calibration.machines import MACHINES, Machine
from experiments.recorded import show
from truesim.identify.fit import solve_problem
from truesim.identify.posterior import Calibration, repeats
from truesim.report.pictures import Picture, write_pictures
from truesim.report.posterior_figures import calibration_figure

KINDS = ("laplace", "mixture")
VARIETY = 0.1
"""Standard deviation of the true coordinates from repeat to repeat: of a value, or of its logarithm."""
SECONDS = 1.5
"""Length of each log [s]."""
LEAST, MOST = 0.89, 0.99
"""Coverages that are allowed to 95 % regions."""


def calibrated(machine: Machine, count: int, kinds: tuple[str, ...] = KINDS) -> dict[str, Calibration]:
    """Calibrations of all kinds of posterior on one machine."""
    solution = solve_problem(machine.problem(SECONDS))
    rng = np.random.default_rng(1)
    truths = solution.theta + VARIETY * rng.normal(size=(count, len(solution.theta)))
    truths = np.clip(truths, *solution.problem.parameters.bounds)
    found = list(repeats(solution, kinds, truths))
    return {kind: Calibration.of(machine.free, [r[kind] for r in found]) for kind in kinds}


def main() -> None:
    """Calibrates all machines, prints and draws."""
    parser = argparse.ArgumentParser(description="Coverage of posteriors on three machines.")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/calibration"), help="Folder for the pictures.")
    given = parser.parse_args()
    rows, pictures = [], []
    for name, machine in MACHINES.items():
        begin = time.process_time()
        found = calibrated(machine, given.repeats)
        seconds = time.process_time() - begin
        for kind, calibration in found.items():
            joint = calibration.coverage()
            each = ", ".join(f"{x:.3f}" for x in calibration.interval_coverage())
            good = "yes" if LEAST <= joint <= MOST else "NO"
            rows.append(
                (name, kind, len(calibration.ranks), joint, each, good, float(calibration.uniformity().min()), seconds)
            )
        words = "Grey: where chance leaves a calibrated posterior. Bars: how often the truth has each rank."
        pictures.append(Picture(name, words, calibration_figure(found)))
    header = (
        "machine",
        "posterior",
        "repeats",
        "95 % region holds",
        "95 % intervals hold",
        "0.89 to 0.99",
        "p of ranks",
        "CPU [s]",
    )
    show("Coverage of the truth", header, rows)
    page = write_pictures(
        given.out / "index.html", "Calibration", f"{given.repeats} repeats of simulate-and-fit.", pictures
    )
    print(f"\nPictures: {page}")


if __name__ == "__main__":
    with jax.enable_x64(True):
        main()
