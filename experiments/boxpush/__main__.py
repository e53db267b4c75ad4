"""Friction and mass of a pushed box from a noisy log: `python -m experiments.boxpush [--quick] [--out DIR]`.

The log was made with MuJoCo's soft contact, in which the box rattles; the fit uses rigid contact. At the last start,
friction exceeds every push: in a single simulation the box would never move, and all gradients would be zero.
Segments of the log, each from its own measured velocity, identify both parameters from any start.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from rich.console import Console
from rich.table import Table

from experiments.recorded import folder
from truesim.files.logs import read_log
from truesim.files.robots import load
from truesim.identification import Fit, Problem, ProblemOptions, solve_problem
from truesim.identification.problem.build import build
from truesim.physics.model import paths

STARTS = ((0.8, 1.25), (0.2, 0.8), (0.8, 3.2))
"""Start values of friction and mass [kg]: those of the file, and two others."""
FRICTION, MASS = "contacts/cp.friction[0]", "bodies/box.mass"


def problem_from(data: Path, start: tuple[float, float]) -> Problem:
    """The estimation problem from one start."""
    case = json.loads((data / "boxpush.json").read_text())
    model = load(data / "boxpush.xml")
    friction = np.concatenate([np.full(2, start[0]), model.contacts.friction[0, 2:]])
    model = paths.write(paths.write(model, "contacts/cp.friction", friction), MASS, np.asarray(start[1]))
    options = ProblemOptions(
        ties=[[FRICTION, "contacts/cp.friction[1]"]],
        bounds=dict(zip((FRICTION, MASS), zip(case["lower"], case["upper"], strict=True), strict=True)),
        contact="rigid",
    )
    return build(model, [read_log(data / "boxpush.csv")], [MASS], options)


def fitted(data: Path, start: tuple[float, float]) -> Fit:
    """The fit from one start."""
    return Fit.of(solve_problem(problem_from(data, start)))


def picture(fits: list[Fit], truth: list[float], path: Path) -> None:
    """Plot friction and mass after every iteration from every start."""
    figure = go.Figure()
    for start, fit in zip(STARTS, fits, strict=True):
        trail = [dict(zip(fit.problem.parameters.names, _values(fit, h.theta), strict=True)) for h in _history(fit)]
        figure.add_scatter(
            x=[v[FRICTION] for v in trail], y=[v[MASS] for v in trail], mode="lines+markers", name=f"from {start}"
        )
    figure.add_scatter(x=truth[:1], y=truth[1:], mode="markers", marker={"symbol": "x", "size": 14}, name="truth")
    figure.update_layout(
        title="Iterations of the fit", xaxis_title="friction", yaxis_title="mass [kg]", template="simple_white"
    )
    figure.write_html(path, include_plotlyjs=True)


def _history(fit: Fit) -> list:
    start = dataclasses.replace(fit.solution.history[0], theta=fit.problem.parameters.start)
    return [start, *fit.solution.history]


def _values(fit: Fit, theta: np.ndarray) -> list[float]:
    return [float(v) for v in fit.problem.values(theta)[0]]


def main() -> None:
    """Fit from every start, print a table and plot the iterations."""
    parser = argparse.ArgumentParser(prog="python -m experiments.boxpush")
    parser.add_argument("--quick", action="store_true", help="the file's own start only")
    parser.add_argument("--out", type=Path, default=Path("boxpush"), help="folder of the plot")
    arguments = parser.parse_args()
    data = folder("sysid_cases")
    truth = json.loads((data / "boxpush.json").read_text())["truth"]
    starts = STARTS[:1] if arguments.quick else STARTS
    table = Table("start", "friction", "mass in kg", "errors", "intervals cover", "iterations", "CPU s", "status")
    fits = [fitted(data, start) for start in starts]
    for start, fit in zip(starts, fits, strict=True):
        found = {e.path: e for e in fit.estimates}
        pair = [(found[name], true) for name, true in zip((FRICTION, MASS), truth, strict=True)]
        table.add_row(
            str(start),
            *(f"{e.value:.5f} in {e.low:.5f} … {e.high:.5f}" for e, _ in pair),
            ", ".join(f"{100 * abs(e.value / true - 1):.3f} %" for e, true in pair),
            ", ".join("yes" if e.low <= true <= e.high else "no" for e, true in pair),
            str(len(fit.solution.history)),
            f"{fit.solution.solve_seconds:.2f}",
            fit.status,
        )
    console = Console(width=150)
    console.print(f"truth: friction {truth[0]}, mass {truth[1]} kg")
    console.print(table)
    if not arguments.quick:
        arguments.out.mkdir(parents=True, exist_ok=True)
        picture(fits, truth, arguments.out / "boxpush.html")
        console.print(f"Picture: {arguments.out / 'boxpush.html'}")


if __name__ == "__main__":
    main()
