"""Arguments that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

Robot = Annotated[Path, typer.Argument(help="Robot file, MJCF or URDF.", show_default=False, metavar="ROBOT")]
FloatingBase = Annotated[
    bool, typer.Option("--floating-base", help="Let the root of a URDF move freely (robots that walk or fly).")
]
Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping", help="File (TOML or JSON) that renames and scales the logs' own columns.", show_default=False
    ),
]
