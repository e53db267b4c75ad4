"""Options of `truesim design`."""

from pathlib import Path
from typing import Annotated

import typer

Duration = Annotated[float, typer.Option("--seconds", help="Duration of the motion, in s.", show_default=False)]
OutputLog = Annotated[Path, typer.Option("--out", help="File for the commands (CSV).", metavar="FILE")]
SpeedLimit = Annotated[
    list[str] | None,
    typer.Option(
        "--speed",
        help="Speed limit in rad/s or m/s, of all joints or of some.",
        metavar="[JOINT=]VALUE…",
        show_default=False,
    ),
]
ForceLimit = Annotated[
    list[str] | None,
    typer.Option(
        "--torque",
        help="Limit of the torque or force of actuators.",
        metavar="[ACTUATOR=]VALUE…",
        show_default=False,
    ),
]
PositionRange = Annotated[
    list[str] | None,
    typer.Option("--range", help="Range of joints in rad or m.", metavar="JOINT=LOW:HIGH…", show_default=False),
]
Noise = Annotated[
    list[str] | None,
    typer.Option(
        "--noise",
        help="Standard deviation of measurements; 0.001 or that of the fit if not given.",
        metavar="[CHANNEL=]VALUE…",
        show_default=False,
    ),
]
Fourier = Annotated[
    bool,
    typer.Option(
        "--fourier",
        help="Periodic motion of an arm for the regression of its torques, without --free and without collisions.",
    ),
]
Rate = Annotated[float, typer.Option("--rate", help="Sampling rate of commands and measurements, in Hz.")]
Criterion = Annotated[
    str, typer.Option("--criterion", help="Criterion: intervals (mean of their logarithms) or volume (D-optimal).")
]
Starts = Annotated[int, typer.Option("--starts", help="Number of random starts; the best is refined.")]
Iterations = Annotated[int, typer.Option("--iterations", help="Iterations of each stage of the optimization.")]
