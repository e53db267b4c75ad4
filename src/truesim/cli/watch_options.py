"""Options of `truesim watch`."""

from pathlib import Path
from typing import Annotated

import typer

Stream = Annotated[
    str,
    typer.Argument(
        help="Growing file (CSV or JSON lines), - for standard input, or tcp://127.0.0.1:PORT to listen on.",
        metavar="STREAM",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--changes",
        help="Free parameters that may change suddenly; by default all.",
        metavar="PATTERN…",
        show_default=False,
    ),
]
OutputIfAny = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Folder for estimates.csv, changes.jsonl, the robot file, and the state to continue from.",
        metavar="DIR",
        show_default=False,
    ),
]
First = Annotated[float, typer.Option("--first", help="Duration of the first batch fit, in s.")]
Memory = Annotated[
    float, typer.Option("--memory", help="Time constant with which old data are forgotten, in s; 'inf' for never.")
]
BetweenAlarms = Annotated[float, typer.Option("--between-alarms", help="Mean time between false alarms, in s.")]
Patience = Annotated[
    float | None,
    typer.Option(
        "--patience", help="End after this many s without a sample; by default wait forever.", show_default=False
    ),
]
Follow = Annotated[
    bool,
    typer.Option("--follow", help="Wait for more of a file that does not grow; by default a finished log ends it."),
]
StartAgain = Annotated[bool, typer.Option("--force", help="Start again, and replace the content of the folder.")]
