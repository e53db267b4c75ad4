"""Options of `truesim identify`."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.cli.arguments import FREE_OPTION

LOCAL_SEARCH = "local"
"""Start from the values of the robot file, without a search."""
FreeIfAny = Annotated[list[str] | None, FREE_OPTION]
BlueprintFile = Annotated[
    Path | None,
    typer.Option(
        "--blueprint",
        help="TOML file of networks within the physics, trained together with the parameters.",
        metavar="FILE",
        show_default=False,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Kind of robot that decides what is free: arm (torque logs), servo, quadruped or free-body.",
        metavar="KIND",
        show_default=False,
    ),
]
PayloadBody = Annotated[
    str | None,
    typer.Option(
        "--payload",
        help="Body that carries an unknown tool in the logs of --loaded: its mass, center and inertia are estimated.",
        metavar="BODY",
        show_default=False,
    ),
]
Loaded = Annotated[
    list[Path] | None,
    typer.Option("--loaded", help="Logs with the payload.", metavar="LOG…", show_default=False),
]
Weighed = Annotated[
    float | None,
    typer.Option(
        "--weighed", help="Known mass of the payload in kg: it calibrates the torque constants.", show_default=False
    ),
]
Horizon = Annotated[
    list[float] | None,
    typer.Option(
        "--horizon",
        help="Lengths of the windows in s, one training stage after another; replaces --window.",
        metavar="SECONDS…",
        show_default=False,
    ),
]
Window = Annotated[
    float | None,
    typer.Option(
        "--window",
        help="Length in s of the windows within which the simulated motion is continuous; by default chosen from the "
        "logs.",
        show_default=False,
    ),
]
ActuatorModel = Annotated[
    list[str] | None,
    typer.Option(
        "--actuator-model",
        help="Actuator models: affine, dc_motor, duty_servo or minitaur_motor.",
        metavar="ACTUATOR=MODEL…",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Values of parameters: the start of those that are free, fixed values of the others.",
        metavar="PATH=VALUE…",
        show_default=False,
    ),
]
Robust = Annotated[
    float,
    typer.Option(
        "--robust", help="Residuals larger than this many standard deviations have a linear loss; 'inf' for none."
    ),
]
Optimizer = Annotated[
    str,
    typer.Option("--optimizer", help="lm (Levenberg-Marquardt), adam, or auto: adam for large networks."),
]
Search = Annotated[
    str,
    typer.Option(
        "--search",
        help="Global search before the fit: local (none), hopping (many starts) or cmaes (without derivatives).",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="Simulator of the search: truesim, or mujoco as a black box (cmaes only)."),
]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers",
        help="Ray cluster of the search: 'ray' or an address. A number means the same as --threads.",
        metavar="N|ray|ADDRESS",
        show_default=False,
    ),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="Stop the search after this time, in s.", show_default=False)
]
Solves = Annotated[
    int | None,
    typer.Option(
        "--solves", help="Stop the search after this many solves (evaluations for cmaes).", show_default=False
    ),
]
Goal = Annotated[
    float | None, typer.Option("--cost", help="Stop the search when its cost is below this.", show_default=False)
]
Replace = Annotated[bool, typer.Option("--force", help="Replace the result in the folder.")]
FitAsJson = Annotated[bool, typer.Option("--json", help="Print the content of fit.json instead of tables.")]
Live = Annotated[
    bool,
    typer.Option("--live", help="Show cost and parameters in a browser while the fit runs, on this machine only."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only the status.")]
SolverIterations = Annotated[
    int, typer.Option("--iterations", help="Maximum number of iterations of each stage of the solver.", min=1)
]
PriorWidth = Annotated[
    float,
    typer.Option(
        "--prior-width",
        help="Standard deviation of the weak prior of every parameter around its start, in logarithms or multiples of "
        "the start value; 'inf' for none.",
    ),
]
MisfitFactor = Annotated[
    float,
    typer.Option(
        "--misfit-factor", help="Fit whole logs if their residuals exceed those of short segments by less than this."
    ),
]
SegmentFactor = Annotated[
    float,
    typer.Option(
        "--segment-factor",
        help="Keep the estimate from short segments if it predicts windows with residuals larger by less than this.",
    ),
]
IdentifiableStd = Annotated[
    float,
    typer.Option(
        "--identifiable-std",
        help="Relative standard deviation above which a parameter is flagged as not identifiable.",
    ),
]
