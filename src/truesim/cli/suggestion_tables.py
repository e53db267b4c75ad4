"""Tables of `truesim suggest`."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from truesim.cli.console import results
from truesim.identification.suggestion import Suggestions

MAX_ALTERNATIVES = 3
"""Groups of fixed parameters that are printed; JSON has all."""
MAX_PORTS = 10
"""Ports in the table; JSON has all."""


def print_suggestions(found: Suggestions, blueprints: Sequence[Path], page: Path | None) -> None:
    """Print the best ports, a summary, and the files that were written."""
    console = results(160)
    for a in found.alternatives[:MAX_ALTERNATIVES]:
        besides = f" besides {', '.join(a.after)}" if a.after else ""
        values = f"{a.fixed[0]:.4g} → {a.found[0]:.4g} … {a.found[1]:.4g} {a.unit}"
        console.print(escape(f"Free {a.pattern}{besides}: explains {100 * a.explained:.0f} % ({values})."))
    title = f"Residuals are {found.remaining:.3g} times the noise in windows of {found.window:.2g} s"
    headings = "port", "acts on", "what", "inputs", "could explain", "explains, held out"
    table = Table(*headings, box=None, title=title, title_justify="left")
    for s in found.found[:MAX_PORTS]:
        could = "" if s.reach is None else f"{100 * s.reach:.0f} %"
        explains = f"{100 * s.explained:.1f} ± {100 * s.error:.1f} %"
        table.add_row(s.port, escape(", ".join(s.names)), s.kind, ", ".join(s.inputs), could, explains)
    console.print(table)
    console.print(f"[bold]{escape(found.sentence)}[/]")
    for path in blueprints:
        console.print(f"Blueprint: {escape(str(path))}")
    if page is not None:
        console.print(f"Open {escape(str(page))} in a browser.")
