"""`truesim report`: the report of a fit, written again from its folder."""

import webbrowser
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import FitFolder
from truesim.cli.console import results


def report(
    folder: FitFolder,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write the report of a fit again: FIT/report.html, one file that needs no network.

    It is made from fit.json and signals.npz alone.
    """
    page = lazy.fit_page.write_fit_page(folder)
    results().print(f"The report is in {page} (open it in a browser).", markup=False)
    if show:
        webbrowser.open(page.resolve().as_uri())
