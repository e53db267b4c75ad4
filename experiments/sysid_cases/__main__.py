"""Table of cases: `python -m experiments.sysid_cases [--draws N] [--peer PYTHON]`.

Errors are relative, median and maximum over parameters; `inside` counts true values within their 95 % intervals. CPU
seconds are those of the fit; compilation is a separate column. The peer is MuJoCo's toolbox, run by the given Python.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.sysid_cases.cases import (
    NAMES,
    Case,
    clean_signal,
    covered,
    data_folder,
    errors,
    fitted,
    last_link,
    problem_of,
    read_case,
    with_noise,
)
from truesim.identification.fit import Fit
from truesim.math.spatial.inertia import unphysical

SCRIPT = Path(__file__).with_name("peer.py")


def main() -> None:
    """Run all cases and print tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.sysid_cases")
    parser.add_argument("--draws", type=int, default=0, help="fresh draws of noise for the coverage of arm7_servo")
    parser.add_argument("--peer", default=sys.executable, help='Python with "mujoco[sysid]"')
    parser.add_argument("--cases", nargs="*", default=NAMES, choices=NAMES)
    arguments = parser.parse_args()
    console = Console(width=140)
    table = Table("case", "by", "status", "median", "largest", "inside", "fit CPU s", "compile s")
    for name in arguments.cases:
        case = read_case(data_folder(), name)
        table.add_row(*_ours(case))
        table.add_row(*_peers(case, arguments.peer))
    console.print(table)
    if arguments.draws:
        console.print(_coverage(read_case(data_folder(), "arm7_servo"), arguments.draws))
        console.print(_last_link(read_case(data_folder(), "arm7_servo")))


def _row(case: Case, solver: str, status: str, wrong: np.ndarray, inside: np.ndarray) -> list[str]:
    shares = [f"{100 * x:.3g} %" for x in (np.median(wrong), np.max(wrong))]
    return [case.name, solver, status, *shares, f"{inside.sum()}/{inside.size}"]


def _ours(case: Case) -> list[str]:
    fit = fitted(problem_of(case))
    row = _row(case, "truesim", fit.status, errors(fit, case.truth), covered(fit, case.truth))
    return [*row, f"{fit.solution.solve_seconds:.2f}", f"{fit.solution.compile_seconds:.1f}"]


def _peers(case: Case, python: str) -> list[str]:
    """The peer's row; dashes where it is not installed or fails."""
    command = [python, str(SCRIPT), str(case.file.parent), case.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [case.name, "mujoco.sysid", (done.stderr.strip().splitlines() or ["failed"])[-1], *["-"] * 5]
    answer = json.loads(done.stdout)
    off = np.abs(np.array(answer["values"]) - case.truth)
    row = _row(case, "mujoco.sysid", "", off / case.truth, off <= np.array(answer["half_widths"]))
    return [*row, f"{answer['cpu_seconds']:.2f}", "-"]


def _coverage(case: Case, draws: int) -> str:
    """Coverage of 95 % intervals."""
    clean, first, seconds, inside = clean_signal(case), problem_of(case), [], []
    for seed in range(draws):
        fit = fitted(problem_of(case, with_noise(case, clean, seed), first))
        inside.append(covered(fit, case.truth))
        seconds.append(fit.solution.solve_seconds)
    share, each = float(np.mean(inside)), np.mean(inside, axis=0)
    return (
        f"{case.name}, {draws} fresh draws of noise: intervals cover {np.sum(inside)} of {np.size(inside)} true values "
        f"({100 * share:.1f} %), from {100 * each.min():.0f} to {100 * each.max():.0f} % for single parameters; "
        f"{np.median(seconds):.2f} s of CPU per fit."
    )


def _last_link(case: Case) -> str:
    """The full inertia of the last link."""
    problem, truth = last_link(case)
    fit = fitted(problem)
    inside = covered(fit, truth)
    return (
        f"Full inertia of the last link, damping and armature: {inside.sum()} of {inside.size} true values in their "
        f"intervals, {'every' if _physical(fit) else 'not every'} body physical, status {fit.status}, "
        f"{fit.solution.solve_seconds:.2f} s of CPU."
    )


def _physical(fit: Fit) -> bool:
    bodies = fit.model.bodies
    return all(unphysical(m, i) is None for m, i in zip(bodies.mass, bodies.inertia, strict=True))


if __name__ == "__main__":
    main()
