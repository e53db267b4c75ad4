"""`truesim cache`: the compiled kernels that are kept on disk."""

from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.console import results
from truesim.core.errors import unknown_name

CACHE_ACTIONS = ("show", "clear")


def cache(
    action: Annotated[
        str, typer.Argument(help="show (folder, number of kernels, size) or clear (delete them all).", metavar="ACTION")
    ] = "show",
) -> None:
    """Show or clear the compiled kernels that are kept on disk.

    A fit whose simulation has been compiled before starts at once. TRUESIM_CACHE names another folder. The least
    recently used kernels are deleted when the folder grows beyond its limit; all of it may be deleted at any time.
    """
    if action not in CACHE_ACTIONS:
        raise unknown_name("action", action, CACHE_ACTIONS)
    before = lazy.native.cache_usage()
    if action == "clear":
        lazy.native.clear_cache()
    sentence = "Deleted" if action == "clear" else "Holds"
    text = f"{before.kernels} kernels ({before.size / 1e6:.1f} of at most {before.limit / 1e6:.0f} MB)"
    results().print(f"{before.folder}\n{sentence} {text}; {before.entries} are found without tracing.", markup=False)
