"""Sensitivity of estimates to the thresholds of the solver: `python -m experiments.threshold_sensitivity [ROBOT…]`.

Every threshold that decides which estimate is returned, and the width of the weak prior, is halved and doubled on
recordings of real robots (factors are halved and doubled in their excess over one). Shown are the largest move of an
identifiable parameter in standard deviations of the default fit, the largest relative change of a standard deviation,
the length of the windows, and the held-out open-loop error relative to that of the default fit.
"""

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.recorded import folder
from truesim.files.logs import read_log
from truesim.files.robots import load
from truesim.identification import Fit, Part, Problem, SolveOptions, build, solve_problem
from truesim.identification.problem.build import prepare_logs, same_problem
from truesim.identification.problem.options import ProblemOptions

ROBOTS = {
    "dfki": (
        "dfki_double_pendulum",
        "rig_C.xml",
        "C1_*.csv",
        7,
        (
            *("bodies/*.mass", "bodies/*.com[2]", "bodies/*.inertia[1]"),
            *("joints/*.damping", "joints/*.frictionloss", "actuators/*.offset"),
        ),
    ),
    "qube": (
        "qube",
        "rig.xml",
        "chirp*.csv",
        3,
        ("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss", "joints/*.armature", "actuators/*.delay"),
    ),
    "emps": ("emps", "rig.xml", "train.csv", 1, ("bodies/*.mass", "joints/*.damping", "joints/*.frictionloss")),
}
"""Folder, robot file, logs, number of logs to fit to, free parameters."""
FACTORS = ("misfit_factor", "segment_factor")
SCALES = ("fallback_window", "noise_floor", "robust", "gain")


def variants() -> Iterator[tuple[str, SolveOptions, float]]:
    """Name, solver options and prior width of each fit; the default first."""
    usual, width = SolveOptions(), ProblemOptions.prior_width
    yield "default", usual, width
    for scale, word in ((0.5, "halved"), (2.0, "doubled")):
        yield f"prior_width {word}", usual, scale * width
        for name in FACTORS:
            yield f"{name} {word}", dataclasses.replace(usual, **{name: 1 + scale * (getattr(usual, name) - 1)}), width
        for name in SCALES:
            yield f"{name} {word}", dataclasses.replace(usual, **{name: scale * getattr(usual, name)}), width
        tight = tuple(scale * c for c in usual.continuity)
        yield f"continuity {word}", dataclasses.replace(usual, continuity=tight), width


def problems(robot: str) -> tuple[Problem, Problem | None]:
    """The problem of a robot, and the same on its held-out logs if it has any."""
    name, file, pattern, count, free = ROBOTS[robot]
    data: Path = folder(name)
    model, logs = load(data / file), [read_log(path) for path in sorted(data.glob(pattern))]
    problem = build(model, logs[:count], free)
    kept = prepare_logs(model, logs[count:])
    return problem, same_problem(problem, model, kept, free, ProblemOptions()) if kept else None


def fits(robot: str) -> Iterator[tuple[str, Fit]]:
    """The fit of each variant; kernels are compiled once."""
    problem, held_out = problems(robot)
    for name, options, width in variants():
        own = dataclasses.replace(problem, prior_width=width, like=problem)
        yield name, Fit.of(solve_problem(own, options), held_out)


def row(name: str, fit: Fit, usual: Fit) -> list[str]:
    """One line of the table."""
    moves, widths = [0.0], [0.0]
    for mine, theirs in zip(usual.estimates, fit.estimates, strict=True):
        if mine.identifiable:
            moves.append(float(np.max(np.abs(theirs.value - mine.value) / mine.std)))
            widths.append(float(np.max(np.abs(theirs.std / mine.std - 1))))
    part = Part.HELD_OUT if Part.HELD_OUT in fit.errors else Part.TRAIN
    ratios = [fit.errors[part][r].median / usual.errors[part][r].median for r in usual.errors[part]]
    cells = [f"{max(moves):.2f}", f"{100 * max(widths):.1f} %", f"{fit.solution.window_seconds:.2g}"]
    return [name, *cells, f"{np.max(ratios):.3f}", str(fit.status)]


def main() -> None:
    """Print a table for every robot."""
    parser = argparse.ArgumentParser(prog="python -m experiments.threshold_sensitivity")
    parser.add_argument("robots", nargs="*", default=list(ROBOTS), help=f"some of {', '.join(ROBOTS)}")
    console = Console(width=120)
    headings = "threshold", "largest move [std]", "change of std", "window [s]", "error ratio", "status"
    for robot in parser.parse_args().robots:
        table = Table(*headings, title=robot, box=None)
        usual = None
        for name, fit in fits(robot):
            usual = usual or fit
            table.add_row(*row(name, fit, usual))
        console.print(table)


if __name__ == "__main__":
    main()
