"""`truesim calibrate`: whether the intervals of a fit hold the truth as often as they say."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.again import solved_again
from truesim.cli.posterior import Fitted, Force, Out, Seed
from truesim.cli.progress import Counting
from truesim.core.errors import FileError, TruesimError, unknown_name
from truesim.identify.folder import read_fit, values_in
from truesim.identify.journal import Journal, fingerprint
from truesim.identify.posterior import Calibration, laplace
from truesim.identify.posterior.calibration import KINDS, SCHEMA, calibrated
from truesim.report.pictures import Picture, write_pictures
from truesim.report.posterior_figures import MOST, calibration_figure

JOURNAL = "repeats.jsonl"
WORDS = (
    "The first: how often regions of each probability hold the truth. The others: how often the truth has each rank in "
    "a parameter's posterior, beside how often a rank would come by chance. Grey: where chance leaves a calibrated one."
)


def calibrate(
    fit: Fitted,
    out: Out,
    kind: Annotated[list[str] | None, typer.Option(help="laplace, mixture, or both.", metavar="KIND…")] = None,
    count: Annotated[int, typer.Option("--repeats", help="How often to simulate and fit.")] = 100,
    level: Annotated[float, typer.Option(help="Probability of regions and intervals.")] = 0.95,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Repeat the fit in FIT on simulated logs whose true parameters are known, and count how often they are within.

    True parameters are drawn from the posterior of the fit; commands, stamps and noise are its own. Every repeat is
    kept in DIR/repeats.jsonl as it ends: the same command goes on after the last one.
    """
    kinds = tuple(dict.fromkeys(kind or ["laplace"]))
    for name in kinds:
        if name not in KINDS:
            raise unknown_name("posterior", name, KINDS)
    if count < 2:
        raise TruesimError(f"--repeats is {count}; give at least 2.")
    console = Console(stderr=True)
    said = fingerprint(str(fit), kinds, seed, values_in(fit, read_fit(fit)))
    _prepare(out, force)
    with closing(Journal(out / JOURNAL, SCHEMA, said)) as journal:
        solution, settings, _ = solved_again(fit, console)
        truths = laplace(solution).sample(count, seed)
        if 0 < len(journal.records) < count:
            console.print(f"Going on after {len(journal.records)} repeats.", highlight=False)
        with Counting(console, f"Simulating and fitting {count} times") as watch:
            try:
                found = calibrated(solution, kinds, truths, settings=settings, seed=seed, journal=journal, watch=watch)
            except KeyboardInterrupt:
                console.print("What has ended is kept; the same command goes on after it.", highlight=False)
                raise
    drawn = f" Of {truths.shape[1]} parameters the first {MOST} are drawn." if truths.shape[1] > MOST else ""
    picture = Picture("Coverage and ranks", WORDS + drawn, calibration_figure(found))
    lead = f"{count} repeats of the fit in {fit} on simulated logs."
    _summary(found, level, write_pictures(out / "calibration.html", "Calibration", lead, [picture]))


def _prepare(out: Path, force: bool) -> None:
    """Makes the folder; refuses one that holds something other than repeats, unless forced."""
    if out.is_file():
        raise FileError(f"{out} is a file; give another folder.")
    if force:
        (out / JOURNAL).unlink(missing_ok=True)
    elif out.is_dir() and any(out.iterdir()) and not (out / JOURNAL).is_file():
        raise TruesimError(f"{out} holds something else; give another folder, or --force to write into it.")
    out.mkdir(parents=True, exist_ok=True)


def _summary(found: dict[str, Calibration], level: float, page: Path) -> None:
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    first = next(iter(found.values()))
    low, high = first.chance(level)
    table = Table(
        "", *found, title=f"Part of {len(first.ranks)} repeats with the truth within", title_justify="left", box=None
    )
    table.add_row(f"joint {100 * level:g} % region", *_cells([c.coverage(level) for c in found.values()]))
    each = [c.interval_coverage(level) for c in found.values()]
    for k, name in enumerate(first.names):
        table.add_row(f"interval of {escape(name)}", *_cells([float(x[k]) for x in each]))
    console.print(table)
    console.print(f"By chance alone, a calibrated posterior comes to between {low:.3f} and {high:.3f}.")
    console.print(f"Result in {escape(str(page.parent))}; open {escape(str(page))} in a browser.")


def _cells(parts: Sequence[float]) -> list[str]:
    return [f"{part:.3f}" for part in parts]
