"""Options of `truesim design`."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.identify.design.criterion import CRITERIA

Duration = Annotated[float, typer.Option(help="How long the motion lasts, in s.", show_default=False)]
Out = Annotated[Path, typer.Option(help="Where to write the commands (CSV).")]
Speed = Annotated[
    list[str] | None,
    typer.Option(help="Highest speed in rad/s or m/s, of all joints or of some.", metavar="[JOINT=]VALUE…"),
]
Torque = Annotated[
    list[str] | None,
    typer.Option("--torque", help="Highest torque or force of actuators.", metavar="[ACTUATOR=]VALUE…"),
]
Range = Annotated[
    list[str] | None, typer.Option("--range", help="Range of joints in rad or m.", metavar="JOINT=LOW:HIGH…")
]
Noise = Annotated[
    list[str] | None,
    typer.Option(help="Standard deviation of readings, 0.001 if not given.", metavar="[CHANNEL=]VALUE…"),
]
FitFolder = Annotated[
    Path | None, typer.Option(help="Folder of an earlier fit: its values, intervals and noise.", metavar="DIR")
]
Rate = Annotated[float, typer.Option(help="Commands and readings a second.")]
Criterion = Annotated[str, typer.Option(help=f"{' or '.join(CRITERIA)} (D-optimal).")]
Starts = Annotated[int, typer.Option(help="Random starts, of which the best goes on.")]
Iterations = Annotated[int, typer.Option(help="Iterations of each stage of a search.")]
Force = Annotated[bool, typer.Option("--force", help="Write over an existing file.")]
