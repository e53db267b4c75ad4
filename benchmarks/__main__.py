"""`python -m benchmarks`: speed, compile time and memory against other engines."""

import fnmatch
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.comparisons import COMPARISONS, Comparison
from benchmarks.page import as_json, notes, table, write_page
from benchmarks.run import rows
from truesim.cli.main import guard
from truesim.core.errors import TruesimError, unknown_name

REPEAT_SECONDS, QUICK_SECONDS = 3.0, 0.3
"""Time for which a measurement is repeated, by default and with --quick [s]; longer finds a better minimum."""


def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure only these: a key of --list, its first word, or a pattern ('arm*'). May be repeated."
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the measurements and stop.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Repeat less, and leave out measurements that take more than a minute.")
    ] = False,
    limit: Annotated[
        float | None, typer.Option(help="Time limit of one process in s.", min=0.1, show_default=False)
    ] = None,
    in_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON to this file.", show_default=False)] = None,
    page: Annotated[
        Path | None, typer.Option(help="Also write a Markdown page with a chart beside it.", show_default=False)
    ] = None,
) -> None:
    r"""Measure truesim against MuJoCo, MJX, Pinocchio, brax and pytinydiffsim, as far as they are installed.

    Each measurement runs in its own process, on one core unless threads are measured. Ratios are the peer's time
    divided by ours: larger is better. [bold]make bench[/] installs the peers.
    """
    chosen = _chosen(only or [], quick)
    if listed:
        Console(width=None if sys.stdout.isatty() else 200).print(_listing(chosen))
        return
    for path in filter(None, (out, page)):
        if not path.resolve().parent.is_dir():
            raise TruesimError(f"There is no folder {path.parent} to write {path.name} into.")
    messages = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    measured = list(rows(chosen, QUICK_SECONDS if quick else REPEAT_SECONDS, limit, messages.print))
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
    """Comparisons that match a pattern; without patterns all, or with `quick` those that are not slow."""
    groups = {key.partition("-")[0] for key in COMPARISONS} - set(COMPARISONS)
    patterns = [f"{pattern}-*" if pattern in groups else pattern for pattern in patterns]
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


def main() -> None:
    """Run the command line."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.command()(bench)
    guard(lambda: app(sys.argv[1:], prog_name="python -m benchmarks"))


if __name__ == "__main__":
    main()
