"""`truesim calibrate`: whether the intervals of a fit hold the truth as often as they say."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from truesim.cli.again import solved_again
from truesim.cli.posterior import Fitted, Force, Out, Seed
from truesim.cli.progress import Counting
from truesim.core.errors import TruesimError, unknown_name
from truesim.identify.posterior import Calibration, Repeat, laplace, repeats
from truesim.identify.posterior.calibration import KINDS
from truesim.report.pictures import Picture, write_pictures
from truesim.report.posterior_figures import calibration_figure

JOURNAL = "repeats.jsonl"


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
    journal = out / JOURNAL
    asked = {"fit": str(fit), "kinds": list(kinds), "seed": seed}
    rows = _earlier(journal, asked, force)
    solution, settings, _ = solved_again(fit, console)
    start = laplace(solution)
    out.mkdir(parents=True, exist_ok=True)
    if not rows:
        journal.write_text(json.dumps(asked) + "\n", encoding="utf-8")
    elif len(rows) < count:
        console.print(f"Going on after {len(rows)} repeats.", highlight=False)
    truths = start.sample(count, seed)
    with (
        Counting(console, f"Simulating and fitting {count} times") as watch,
        journal.open("a", encoding="utf-8") as file,
    ):
        for repeat in repeats(solution, kinds, truths, settings=settings, seed=seed, skip=len(rows)):
            rows.append({name: _plain(r) for name, r in repeat.items()})
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            watch(len(rows), count)
    kept = rows[:count]
    found = {name: Calibration.of(start.names, [_repeat(row[name]) for row in kept]) for name in kinds}
    words = (
        "Grey: where chance leaves a calibrated posterior. Bars: how often the truth has each rank in the posterior."
    )
    lead = f"{len(kept)} repeats of the fit in {fit} on simulated logs."
    page = write_pictures(
        out / "calibration.html", "Calibration", lead, [Picture("Coverage and ranks", words, calibration_figure(found))]
    )
    _summary(found, level, page)


def _earlier(journal: Path, asked: dict[str, Any], force: bool) -> list[dict[str, Any]]:
    """Repeats that an interrupted run of the same command has left."""
    folder = journal.parent
    if folder.is_file():
        raise TruesimError(f"{folder} is a file; give another folder.")
    if force or not folder.is_dir() or not any(folder.iterdir()):
        return []
    lines = _lines(journal)
    if not lines or lines[0] != asked:
        raise TruesimError(f"{folder} holds something else; give another folder, or --force to write into it.")
    return lines[1:]


def _lines(journal: Path) -> list[dict[str, Any]]:
    """Lines of the journal; a last one that was cut off does not count, and is cut off for good."""
    if not journal.is_file():
        return []
    text = journal.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        journal.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def _plain(repeat: Repeat) -> dict[str, Any]:
    return {"rank": repeat.rank.tolist(), "credibility": repeat.credibility}


def _repeat(row: dict[str, Any]) -> Repeat:
    return Repeat(np.array(row["rank"]), row["credibility"])


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
