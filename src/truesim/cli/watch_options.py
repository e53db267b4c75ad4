"""Options of `truesim watch`."""

from pathlib import Path
from typing import Annotated

import typer

Stream = Annotated[
    str,
    typer.Argument(
        help="File that grows (CSV, JSON lines), - for the standard input, or tcp://127.0.0.1:PORT to wait there.",
        metavar="STREAM",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(help="Free parameters that may change suddenly; all of them if not given.", metavar="PATTERN…"),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for estimates.csv, changes.jsonl, the robot, and what is needed to go on."),
]
First = Annotated[float, typer.Option(help="What is fitted as a whole at first, in s.")]
Memory = Annotated[float, typer.Option(help="Time in which what is known fades, in s; 'inf' for never.")]
BetweenAlarms = Annotated[float, typer.Option(help="Mean time between false alarms, in s.")]
Patience = Annotated[
    float | None, typer.Option(help="End when nothing came for this long, in s; wait for ever if not given.")
]
Force = Annotated[bool, typer.Option("--force", help="Begin anew, and write over what is in the folder.")]
