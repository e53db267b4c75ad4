"""Real tosses of a cube: `python -m experiments.cube_toss [--quick] [--evaluations N] [--out DIR]`.

Both simulators are fitted by CMA-ES to 80 tosses, with the same number of candidates and of steps, and then predict 40
others from their first six frames. In the last row, MuJoCo has the poses of table and cube that our fit found.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from plotly.subplots import make_subplots
from rich.console import Console
from rich.table import Table

from experiments.cube_toss import ours, peer
from experiments.cube_toss.fit import fit_ours, fit_peer
from experiments.cube_toss.search import Values
from experiments.cube_toss.tosses import RATE, Tosses, read_tosses
from experiments.recorded import folder

TRAIN = 80


def row(name: str, simulated: np.ndarray, tosses: Tosses, numbers: Values, train: int) -> list[str]:
    """One row of the table: errors on the tosses of the fit and on the others."""
    apart, turned = tosses.errors(simulated)
    cells = []
    for part in (slice(train), slice(train, None)):
        cells += [f"{1000 * apart[part].mean():.2f}", f"{turned[part].mean():.3f}"]
    return [name, *cells, ", ".join(f"{k} {v:.3g}" for k, v in list(numbers.items())[:3])]


def picture(simulations: dict[str, np.ndarray], tosses: Tosses, train: int, path: Path) -> None:
    """Plot sorted held-out errors of all tosses, and the height of one toss over time."""
    figure = make_subplots(1, 3, subplot_titles=("position error, mm", "rotation error, rad", "height of one toss, m"))
    held = tosses[slice(train, None)]
    time_ = np.arange(held.lengths[0]) / RATE
    for k, (name, simulated) in enumerate(simulations.items()):
        color = ("steelblue", "firebrick", "darkorange")[k]
        apart, turned = held.errors(simulated[train:])
        for column, values in ((1, 1000 * np.sort(apart)), (2, np.sort(turned))):
            line = {"color": color}
            figure.add_scatter(y=values, line=line, name=name, showlegend=column == 1, row=1, col=column)
        height = simulated[train, : held.lengths[0], 2]
        figure.add_scatter(x=time_, y=height, line={"color": color}, showlegend=False, row=1, col=3)
    recorded = held.frames[0, : held.lengths[0], 2]
    figure.add_scatter(x=time_, y=recorded, line={"color": "black", "dash": "dot"}, name="recorded", row=1, col=3)
    figure.update_xaxes(title="held-out tosses, sorted", row=1, col=1)
    figure.update_layout(template="simple_white", width=1300, height=450)
    figure.write_html(path, include_plotlyjs=True)


def main() -> None:
    """Fit both simulators, print a table and plot."""
    parser = argparse.ArgumentParser(prog="python -m experiments.cube_toss")
    parser.add_argument("--quick", action="store_true", help="few tosses, few candidates, no plot")
    parser.add_argument("--evaluations", type=int, default=600, help="candidates for each simulator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("cube_toss"), help="folder of the plot")
    arguments = parser.parse_args()
    data = folder("cube_toss")
    tosses, rig, train, count = read_tosses(data), data / "rig.xml", TRAIN, arguments.evaluations
    if arguments.quick:
        tosses, train, count = tosses[slice(0, 18)], 12, 60
    console, fitted = Console(width=150), tosses[slice(train)]
    table = Table("", "train mm", "train rad", "held-out mm", "held-out rad", "first numbers", title="mean errors")
    steps = int(fitted.lengths.sum()) * ours.SUBSTEPS * count
    begin, simulator = time.perf_counter(), ours.Ours(rig, tosses.frames.shape[1])
    numbers = fit_ours(simulator, fitted, count, arguments.seed)
    simulations = {"truesim": simulator([numbers], tosses)[0]}
    table.add_row(*row("truesim", simulations["truesim"], tosses, numbers, train))
    console.print(f"truesim: {time.perf_counter() - begin:.0f} s", {k: float(f"{v:.4g}") for k, v in numbers.items()})
    for name, places in (("MuJoCo", None), ("MuJoCo, our places", numbers)):
        begin, other = time.perf_counter(), peer.MuJoCo(rig, places)
        its = fit_peer(other, fitted, count, arguments.seed)
        simulations[name] = other(its, tosses)
        table.add_row(*row(name, simulations[name], tosses, its, train))
        console.print(f"{name}: {time.perf_counter() - begin:.0f} s", {k: float(f"{v:.4g}") for k, v in its.items()})
    console.print(f"{train} tosses of the fit, {len(tosses) - train} held out; {steps / 1e6:.1f} million steps each.")
    console.print(table)
    if not arguments.quick:
        arguments.out.mkdir(parents=True, exist_ok=True)
        picture(simulations, tosses, train, arguments.out / "cube_toss.html")


if __name__ == "__main__":
    main()
