"""`truesim report`: the page of a fit, made again from its folder."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from truesim.core.errors import FileError
from truesim.report.fit_page import write_fit_page


def report(
    folder: Annotated[
        Path, typer.Argument(help="Folder that `truesim identify` wrote.", metavar="DIR", show_default=False)
    ],
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Make the page of the fit in DIR again: DIR/report.html, one file that needs no network.

    It is made from fit.json and signals.npz alone.
    """
    if not folder.is_dir():
        meant = f"; did you mean {folder.parent}?" if folder.name == "fit.json" and folder.is_file() else "."
        raise FileError(f"{folder} is not a folder: give the one that `truesim identify` wrote with --out{meant}")
    page = write_fit_page(folder)
    Console(soft_wrap=True, highlight=False).print(f"The report is in {page} (open it in a browser).", markup=False)
    if show:
        webbrowser.open(page.resolve().as_uri())
