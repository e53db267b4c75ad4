"""`truesim posterior`: what the logs of a fit leave possible, as samples, ranges and robot files."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.again import solved_again
from truesim.cli.progress import Counting
from truesim.core.errors import FileError, TruesimError, unknown_name
from truesim.identify.api import resumed
from truesim.identify.fit import Solution
from truesim.identify.posterior import (
    Evolution,
    MixtureSettings,
    Posterior,
    Range,
    basins,
    laplace,
    mixture,
    ranges,
    write_ranges,
    write_variants,
)
from truesim.identify.posterior.basins import scattered
from truesim.identify.posterior.ranges import SUFFIXES, number_names, write_samples
from truesim.identify.problem import Problem
from truesim.report.pictures import Picture, write_pictures
from truesim.report.posterior_figures import MOST, evolution_figure, pairs_figure

KINDS = ("laplace", "mixture", "basins")
ROUGH = 0.3
"""Mixtures whose density differs by more, in logarithms, have too few kernels."""
FEW = 5
"""Epochs below which there is nothing to see of how a mixture came about."""
Fitted = Annotated[
    Path, typer.Argument(help="Folder that `truesim identify` wrote.", metavar="FIT", show_default=False)
]
Out = Annotated[Path, typer.Option(help="Folder for the result.", metavar="DIR", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the folder.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]


def posterior(
    fit: Fitted,
    out: Out,
    kind: Annotated[
        str, typer.Option(help="laplace (at the fit), mixture (of Gaussians) or basins (of several starts).")
    ] = "laplace",
    samples: Annotated[int, typer.Option(help="Number of samples to draw.")] = 1000,
    level: Annotated[float, typer.Option(help="Probability of the ranges.")] = 0.95,
    kernels: Annotated[int, typer.Option(help="Gaussians of a mixture.")] = 3,
    starts: Annotated[int, typer.Option(help="Starts of the search for basins.")] = 8,
    variants: Annotated[int, typer.Option(help="Number of robot files to write, each with one sample.")] = 0,
    style: Annotated[
        str | None, typer.Option("--format", help="Of robot files: mjcf or urdf; the robot's own.")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Say which parameters the logs of a fit leave possible, and write them for domain randomisation.

    Writes ranges.json, samples.csv and posterior.html, and with --variants robot files that differ as the posterior
    says. The fit's own robot and logs must still be where they were.
    """
    _check(kind, style, level, {"samples": samples, "kernels": kernels, "starts": starts})
    if variants < 0:
        raise TruesimError(f"--variants is {variants}; it must be at least 0.")
    prepare(out, force)
    console = Console(stderr=True)
    solution, settings, document = solved_again(fit, console)
    evolution = None
    with Counting(console, f"Finding the posterior ({kind})") as watch:
        if kind == "mixture":
            found, evolution = mixture(solution, MixtureSettings(kernels=kernels, seed=seed), watch)
            remark = _fidelity(float(evolution.scatter[-1]))
        elif kind == "basins":
            begun = _starts(solution, document, starts, seed)
            found, minima = basins(solution.problem, begun, settings, watch)
            remark = f"{len(begun)} starts came to {len(minima)} {'basin' if len(minima) == 1 else 'basins'}."
        else:
            found, remark = laplace(solution), "One Gaussian at the fit; --kind mixture shows whether it is enough."
    problem, drawn = solution.problem, found.sample(samples, seed)
    values = np.asarray(problem.values(drawn)[0])
    within = ranges(found, problem, level, seed)
    write_ranges(out / "ranges.json", within, level=level, values=values)
    write_samples(out / "samples.csv", number_names(problem), values)
    if variants:
        written, findings = write_variants(out / "variants", problem, found.sample(variants, seed), style)
        for finding in findings:
            console.print(f"[yellow]{finding.severity}:[/] {escape(str(finding))}", highlight=False)
        console.print(f"{len(written)} robot files in {escape(str(out / 'variants'))}.", highlight=False)
    page = _page(out, fit, kind, problem, values, evolution)
    _summary(within, level, found, remark, page)


def prepare(out: Path, force: bool) -> None:
    """Makes the folder; refuses one that holds something, unless forced."""
    if out.is_file():
        raise FileError(f"{out} is a file; give another folder.")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise TruesimError(f"{out} is not empty; give another folder, or --force to write into it.")
    out.mkdir(parents=True, exist_ok=True)


def _check(kind: str, style: str | None, level: float, counts: dict[str, int]) -> None:
    if kind not in KINDS:
        raise unknown_name("posterior", kind, KINDS)
    if style is not None and style not in SUFFIXES:
        raise unknown_name("format", style, SUFFIXES)
    if not 0 < level < 1:
        raise TruesimError(f"--level is {level:g}; it must lie between 0 and 1, such as 0.95.")
    for name, count in counts.items():
        if count < 1:
            raise TruesimError(f"--{name} is {count}; it must be at least 1.")


def _starts(solution: Solution, document: dict[str, Any], count: int, seed: int) -> np.ndarray:
    """Where the search for basins starts: the basins that the fit's own search found, or random places."""
    problem = solution.problem
    known = [basin["values"] for basin in document.get("search", {}).get("basins", [])]
    if known:
        return np.stack([solution.theta, *(resumed(problem, values) for values in known[: count - 1])])
    return scattered(problem, solution.theta, count, seed)


def _fidelity(scatter: float) -> str:
    """How well a mixture fits, in a sentence."""
    said = f"The mixture's density typically differs from the posterior's by {100 * np.expm1(scatter):.2g} %"
    return f"{said}." if scatter < ROUGH else f"{said}: give it more --kernels."


def _page(out: Path, fit: Path, kind: str, problem: Problem, values: np.ndarray, evolution: Evolution | None) -> Path:
    names, size = number_names(problem), values.shape[1]
    text = "Every dot is a set of parameters, in SI units, that explains the logs as the posterior says."
    if size > MOST:
        text += f" Of {size} numbers, the {MOST} are drawn that mirror others most; samples.csv holds all."
    pictures = [Picture("What is possible together", text, pairs_figure({kind: values}, names))]
    if evolution is not None and len(evolution.loss) >= FEW:
        coordinates = [f"x{k}" for k in range(evolution.means.shape[2])]
        labels = names if len(names) == len(coordinates) else coordinates
        words = "Means of the kernels with one standard deviation, in the coordinates of the search."
        pictures.append(Picture("How the mixture came about", words, evolution_figure(evolution, labels)))
    return write_pictures(out / "posterior.html", "Posterior", f"Of the fit in {fit}.", pictures)


def _summary(within: list[Range], level: float, found: Posterior, remark: str, page: Path) -> None:
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    table = Table("parameter", "mean", "std", f"{100 * level:g} % range", "unit", box=None)
    for r in within:
        table.add_row(escape(r.path), f"{r.mean:.5g}", f"{r.std:.2g}", f"{r.low:.5g} … {r.high:.5g}", r.unit)
    console.print(table)
    if len(found.weights) > 1:
        console.print("Weights of the kernels: " + ", ".join(f"{w:.3f}" for w in np.sort(found.weights)[::-1]))
    console.print(remark)
    console.print(f"Result in {escape(str(page.parent))}; open {escape(str(page))} in a browser.")
