"""A ball hits a hanging chain: `python -m experiments.lcp_chain [--quick] [--out DIR]`.

Finds the mass of the chain, then ten separate masses, from ten seconds of motion; the loss compares equal times.
lcp-physics' figures were measured on the same scene: 24 gradient evaluations to 6.99993, 4.8 s for a gradient, and
joints that come apart by 4.6 px.
"""

import argparse
from pathlib import Path

import numpy as np
from plotly.subplots import make_subplots
from rich.console import Console
from rich.table import Table

from experiments.lcp_chain.fit import TRUTH, Chain, Found, evaluations, one_mass, ten_masses
from experiments.lcp_chain.scene import LINKS, RATE, drift

MOMENTS = (0.0, 1.5, 3.0, 4.5, 6.0)
"""Times of the chain in the plot [s]."""


def starts(count: int) -> list[float]:
    """Start values of the total mass, U(0, 1) as in the original."""
    return [float(x) for x in np.random.default_rng(0).uniform(size=count)]


def table_of_fits(fits: dict[float, Found]) -> Table:
    """One row for each start."""
    table = Table("start", "mass found", "error", "gradient evaluations to 1e-4", "until convergence")
    for start, found in fits.items():
        mass = found.masses.sum()
        error = f"{abs(mass - TRUTH.sum()):.1e}"
        table.add_row(f"{start:.3f}", f"{mass:.8f}", error, str(evaluations(found)), str(len(found.trail)))
    return table


def picture(chain: Chain, found: Found, path: Path) -> None:
    """Plot the chain and the ball at some times, with start values and fitted, and the loss of every evaluation."""
    figure = make_subplots(1, 2, subplot_titles=("at " + ", ".join(f"{t:g}" for t in MOMENTS) + " s", "loss"))
    cases = (("start", found.trail[0], "firebrick"), ("fitted", found.masses, "steelblue"))
    for name, masses, color in cases:
        bodies = chain.motion(masses)
        for t in MOMENTS:
            k = max(0, round(t * RATE) - 1)
            x, y = bodies.x[k], bodies.y[k]
            lines = {"color": color, "width": 1 + 2 * (name == "fitted")}
            shared = {"legendgroup": name, "showlegend": t == MOMENTS[0], "name": name}
            figure.add_scatter(x=x[:LINKS], y=-y[:LINKS], mode="lines+markers", line=lines, row=1, col=1, **shared)
            ball = {"size": 16, "color": color, "symbol": "circle-open"}
            figure.add_scatter(x=x[LINKS:], y=-y[LINKS:], mode="markers", marker=ball, row=1, col=1, showlegend=False)
    figure.add_scatter(y=found.losses, mode="lines+markers", row=1, col=2, showlegend=False)
    figure.update_yaxes(type="log", title="mean square [rad^2, px^2]", exponentformat="power", row=1, col=2)
    figure.update_xaxes(title="evaluation", row=1, col=2)
    figure.update_yaxes(scaleanchor="x", row=1, col=1)
    figure.update_layout(template="simple_white", width=1100, height=600)
    figure.write_html(path, include_plotlyjs=True)


def main() -> None:
    """Fit, print tables and plot."""
    parser = argparse.ArgumentParser(prog="python -m experiments.lcp_chain")
    parser.add_argument("--quick", action="store_true", help="one start, no ten masses, no plot")
    parser.add_argument("--out", type=Path, default=Path("lcp_chain"), help="folder of the plot")
    arguments = parser.parse_args()
    console, chain = Console(width=120), Chain()
    fits = {start: one_mass(chain, start) for start in starts(1 if arguments.quick else 8)}
    console.print(table_of_fits(fits))
    table = Table("", "truesim", "lcp-physics")
    table.add_row("largest joint drift in 10 s, px", f"{drift(chain.truth):.1e}", "4.6")
    whole = np.full((1, LINKS), 1 / LINKS)
    table.add_row("gradient by the mass, 10 s of motion, CPU s", f"{chain.seconds(whole):.3f}", "4.8")
    table.add_row("derivatives by ten masses, CPU s", f"{chain.seconds(np.eye(LINKS)):.3f}", "4.8")
    table.add_row("compilation, CPU s", f"{chain.compile_seconds:.0f}", "-")
    if not arguments.quick:
        start = np.random.default_rng(1).uniform(0.3, 1.2, LINKS)
        each = ten_masses(chain, start)
        table.add_row("ten masses: largest error", f"{np.abs(each.masses - TRUTH).max():.1e}", "-")
        table.add_row("ten masses: evaluations", str(len(each.trail)), "-")
        arguments.out.mkdir(parents=True, exist_ok=True)
        picture(chain, next(iter(fits.values())), arguments.out / "lcp_chain.html")
    console.print(table)


if __name__ == "__main__":
    main()
