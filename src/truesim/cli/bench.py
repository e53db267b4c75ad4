"""`truesim bench`: speed, compile time and memory against other engines."""

import fnmatch
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from truesim.bench.comparisons import COMPARISONS, Comparison
from truesim.bench.page import as_json, notes, table, write_page
from truesim.bench.run import rows
from truesim.core.errors import TruesimError, unknown_name

PATIENCE, QUICK = 3.0, 0.3
"""How long work is repeated to find its best time, and how long with --quick [s]."""


def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(help="Measure only these: a key from --list or a pattern such as 'arm*'; may be repeated."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what can be measured, and stop.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Repeat less, and leave out what takes more than a minute.")
    ] = False,
    limit: Annotated[
        float | None, typer.Option(help="Seconds that one process may take.", min=0.1, show_default=False)
    ] = None,
    in_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.", show_default=False)] = None,
    page: Annotated[
        Path | None, typer.Option(help="Also write a page with a picture beside it.", show_default=False)
    ] = None,
) -> None:
    r"""Measure truesim against MuJoCo, MJX, Pinocchio, brax and pytinydiffsim, as far as they are installed.

    Each measurement is a process of its own, on one core unless threads are measured. Ratios are the peer's time by
    ours: larger is better. The peers come with [bold]pip install 'truesim\[bench]'[/].
    """
    chosen = _chosen(only or [], quick)
    if listed:
        Console(width=None if sys.stdout.isatty() else 200).print(_listing(chosen))
        return
    for path in filter(None, (out, page)):
        if not path.resolve().parent.is_dir():
            raise TruesimError(f"There is no folder {path.parent} to write {path.name} into.")
    messages = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    measured = list(rows(chosen, QUICK if quick else PATIENCE, limit, messages.print))
    text = json.dumps(as_json(measured), indent=1)
    if in_json:
        print(text)
    else:
        console = Console(width=None if sys.stdout.isatty() else 200)
        console.print(table(measured), "", *notes(measured), sep="\n", markup=False)
    if out is not None:
        out.write_text(text + "\n")
    if page is not None:
        messages.print(f"Wrote {page} and {write_page(measured, page)}.")


def _chosen(patterns: list[str], quick: bool) -> list[Comparison]:
    """The comparisons that fit a pattern, all if there is none; what is slow only if it is asked for or time allows."""
    for pattern in patterns:
        if not fnmatch.filter(COMPARISONS, pattern):
            raise unknown_name("measurement", pattern, COMPARISONS)
    if patterns:
        return [row for key, row in COMPARISONS.items() if any(fnmatch.fnmatchcase(key, p) for p in patterns)]
    return [row for row in COMPARISONS.values() if not (quick and row.slow)]


def _listing(comparisons: list[Comparison]) -> Table:
    result = Table("key", "measurement", "against", "at least", box=None, header_style="dim", pad_edge=False)
    for row in comparisons:
        result.add_row(row.key, row.name, row.peer_name, f"{row.target:g}")
    return result
