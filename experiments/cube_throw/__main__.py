"""A thrown cube: `python -m experiments.cube_throw [--network] [--quick] [--out DIR]`.

Stiffness, damping and friction of compliant contact are identified from a throw under rigid contact. They start at
zero, where the cube falls through the floor, and are tested on other throws. With `--network`, a network in place of
the friction model is compared with analytic friction models.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
import plotly.graph_objects as go
from rich.console import Console
from rich.table import Table

from experiments.cube_throw import network
from experiments.cube_throw.fit import Found, Throw
from experiments.cube_throw.scene import STEPS, THROW, TIMESTEP, other_throws, thrown

OTHERS = 5


def tables(throw: Throw, found: Found, q: np.ndarray, v: np.ndarray) -> list[Table]:
    """Tables of the estimates and of mean position errors."""
    numbers = Table(
        "", "stiffness, N/m^1.5", "damping, N s/m^2.5", "friction", "evaluations", title="compliant contact"
    )
    for name, x, count in (("start", throw.start, 0), ("fitted", found.numbers, found.evaluations)):
        numbers.add_row(name, f"{1e4 * x[0]:.4g}", f"{1e4 * x[1]:.4g}", f"{x[2]:.4f}", str(count))
    errors = Table("throw", "at the start, m", "fitted, m", title="mean position error over 3 s")
    throws = [("of the fit", q, v)] + [(f"other {k + 1}", *state) for k, state in enumerate(other_throws(OTHERS))]
    for name, q_k, v_k in throws:
        errors.add_row(name, *(f"{throw.error(x, q_k, v_k):.3f}" for x in (throw.start, found.numbers)))
    return [numbers, errors]


def picture(throw: Throw, found: Found, q: np.ndarray, v: np.ndarray, path: Path) -> None:
    """Plot positions over time, rigid and compliant."""
    figure, time = go.Figure(), TIMESTEP * np.arange(1, STEPS + 1)
    rigid, compliant = throw.reference(q, v)[0], throw.places(found.numbers, q, v)
    for k, (axis, color) in enumerate(zip("xyz", ("steelblue", "firebrick", "seagreen"), strict=True)):
        dotted = {"color": color, "dash": "dot"}
        figure.add_scatter(x=time, y=rigid[:, k], name=f"{axis}, rigid", line={"color": color})
        figure.add_scatter(x=time, y=compliant[:, k], name=f"{axis}, compliant", line=dotted)
    figure.update_layout(template="simple_white", xaxis_title="time [s]", yaxis_title="place [m]", title="Thrown cube")
    figure.write_html(path, include_plotlyjs=True)


def main() -> None:
    """Fit, print tables and plot."""
    parser = argparse.ArgumentParser(prog="python -m experiments.cube_throw")
    parser.add_argument("--quick", action="store_true", help="no plot; with --network a small problem")
    parser.add_argument("--network", action="store_true", help="friction by a network")
    parser.add_argument("--out", type=Path, default=Path("cube_throw"), help="folder of the plot")
    arguments = parser.parse_args()
    if arguments.network:
        compare_network(arguments)
    else:
        fit_contact(arguments)


def compare_network(arguments: argparse.Namespace) -> None:
    """Compare friction models with a network."""
    options = network.SMALL if arguments.quick else network.ComparisonOptions()
    with jax.enable_x64(True):
        found = network.compared(options)
    for table in network.tables(found):
        Console(width=140).print(table)
    if not arguments.quick:
        arguments.out.mkdir(parents=True, exist_ok=True)
        network.picture(found, arguments.out / "network.html")


def fit_contact(arguments: argparse.Namespace) -> None:
    """Identify stiffness, damping and friction from zero."""
    console, throw = Console(width=120), Throw()
    q, v = thrown(*map(np.array, THROW))
    found = throw.fit(q, v)
    for table in tables(throw, found, q, v):
        console.print(table)
    if not arguments.quick:
        arguments.out.mkdir(parents=True, exist_ok=True)
        picture(throw, found, q, v, arguments.out / "cube_throw.html")


if __name__ == "__main__":
    main()
