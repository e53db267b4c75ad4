"""`truesim compare`: several fits side by side."""

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import AsJson, ReplaceFile, existing_fits
from truesim.cli.console import results
from truesim.cli.outputs import check_file

FitFolders = Annotated[
    list[Path],
    typer.Argument(
        help="Folders that `truesim identify` wrote; two or more.",
        metavar="FIT…",
        show_default=False,
        callback=existing_fits,
    ),
]
ComparisonPage = Annotated[
    Path | None,
    typer.Option("--out", help="Page to write (HTML), one file.", metavar="FILE", show_default=False),
]


def compare(
    fits: FitFolders,
    out: ComparisonPage = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser; needs --out.")] = False,
    force: ReplaceFile = False,
    as_json: AsJson = False,
) -> None:
    """Show several fits side by side: status, estimates with intervals, open-loop errors, and options that differ.

    Estimates whose intervals have nothing in common are marked. Errors are those of held-out logs where every fit has
    some; fits with different logs are named, as their errors cannot be compared.
    """
    if out is not None:
        check_file(out, force)
    found = lazy.comparison.compare_fits(fits)
    if as_json:
        print(json.dumps(found.document(), indent=1))
    else:
        lazy.comparison_table.print_comparison(found)
    if out is not None:
        lazy.comparison.write_comparison(found, out)
        if not as_json:
            results().print(f"The page is in {out} (open it in a browser).", markup=False)
        if show:
            webbrowser.open(out.resolve().as_uri())
