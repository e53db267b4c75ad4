"""Consoles of the command line: results on standard output, messages and progress on standard error."""

import contextlib
import contextvars
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_is_quiet: contextvars.ContextVar[bool] = contextvars.ContextVar("quiet", default=False)


def results(width: int | None = None) -> Console:
    """Console for results.

    Args:
        width: Characters in a line where the output is not a terminal; by default rich's own choice.
    """
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else width)


def messages() -> Console:
    """Console for messages and progress, on standard error; silent within `quiet`."""
    return Console(stderr=True, highlight=False, soft_wrap=True, quiet=_is_quiet.get())


@contextlib.contextmanager
def quiet(wanted: bool) -> Iterator[None]:
    """Scope in which nothing but results is printed.

    Args:
        wanted: Whether to be quiet.
    """
    token = _is_quiet.set(wanted)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def warn(console: Console, text: str) -> None:
    """Print a warning."""
    console.print(f"[yellow]warning:[/] {escape(text)}")


def print_page(console: Console, folder: Path, page: Path) -> None:
    """Print where the result and its page are."""
    console.print(f"Result in {escape(str(folder))}; open {escape(str(page))} in a browser.")


def titled_table(title: str, *columns: str, right: bool = False) -> Table:
    """Table without lines, with a bold title on the left.

    Args:
        title: Shown above; may have markup.
        columns: Headings.
        right: Whether all columns but the first are aligned to the right.
    """
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if right and i else "left"
        table.add_column(escape(column), overflow="fold", justify=side)
    return table


def print_aligned(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print many rows in aligned columns, each on one line, without markup."""
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    console.print(f"[dim]{escape(line(headings))}[/]")
    console.out("\n".join(map(line, rows)), highlight=False)
