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
Contact = Annotated[
    str | None,
    typer.Option(help="How bodies touch: none, rigid or compliant.", show_default=False, metavar="LAW"),
]
Barrier = Annotated[
    float | None,
    typer.Option(
        help="Of rigid contact: 1e-4 to 1e-2 smooths gradients through contact events; the hardest if not given.",
        show_default=False,
    ),
]
Logs = Annotated[
    list[Path],
    typer.Argument(help="Logs of the robot: CSV, Parquet, NPZ, MCAP or ROS bag.", metavar="LOG…", show_default=False),
]
PerLogFile = Annotated[
    Path | None,
    typer.Option(
        "--per-log",
        help='JSON with what differs from log to log: {"run.csv": {"PATH": value, "free" or "column:NAME"}}.',
        metavar="FILE",
        show_default=False,
    ),
]
