"""Tables of `truesim posterior` and `truesim calibrate`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from truesim.cli.console import print_page, results
from truesim.cli.sampling import remark
from truesim.identification.posterior import Calibration, Range
from truesim.identification.posterior.parameters import ParameterPosterior


def print_ranges(within: Sequence[Range], level: float, found: ParameterPosterior, kind: str, page: Path) -> None:
    """Print ranges of a posterior and where they were written.

    Args:
        within: Range of every number.
        level: Their probability.
        found: The posterior.
        kind: Its kind.
        page: Its page, in the folder of the result.
    """
    console = results(120)
    table = Table("parameter", "mean", "std", f"{100 * level:g} % range", "unit", box=None)
    for r in within:
        table.add_row(escape(r.path), f"{r.mean:.5g}", f"{r.std:.2g}", f"{r.low:.5g} … {r.high:.5g}", r.unit)
    console.print(table)
    weights = found.coordinates.weights
    if len(weights) > 1:
        console.print("Weights of the kernels: " + ", ".join(f"{w:.3f}" for w in np.sort(weights)[::-1]))
    console.print(remark(found, kind))
    for sentence in found.warnings:
        console.print(f"[yellow]warning:[/] {escape(sentence)}")
    print_page(console, page.parent, page)


def print_coverage(found: Mapping[str, Calibration], level: float, page: Path) -> None:
    """Print how often regions and intervals of each kind of posterior contain the truth.

    Args:
        found: Calibration by kind of posterior.
        level: Probability of regions and intervals.
        page: Page of the result.
    """
    console = results(120)
    first = next(iter(found.values()))
    low, high = first.chance(level)
    title = f"Fraction of {len(first.ranks)} repeats that contain the truth"
    table = Table("", *found, title=title, title_justify="left", box=None)
    table.add_row(f"joint {100 * level:g} % region", *_cells([c.coverage(level) for c in found.values()]))
    each = [c.interval_coverage(level) for c in found.values()]
    for k, name in enumerate(first.names):
        table.add_row(f"interval of {escape(name)}", *_cells([float(x[k]) for x in each]))
    console.print(table)
    console.print(f"The fraction of a calibrated posterior is between {low:.3f} and {high:.3f} by chance.")
    print_page(console, page.parent, page)


def _cells(fractions: Sequence[float]) -> list[str]:
    return [f"{fraction:.3f}" for fraction in fractions]
