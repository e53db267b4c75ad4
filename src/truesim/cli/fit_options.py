"""Options of `truesim identify`."""

from pathlib import Path
from typing import Annotated

import typer

_FREE = typer.Option(
    "--free",
    help="Parameters to identify, such as 'bodies/*.mass' 'joints/elbow.*'; `truesim inspect ROBOT` names all.",
    metavar="PATTERN…",
    show_default=False,
)
Free = Annotated[list[str], _FREE]
FreeIfAny = Annotated[list[str] | None, _FREE]
BlueprintFile = Annotated[
    Path | None,
    typer.Option(
        "--blueprint",
        help="TOML file of networks within the physics, trained together with the parameters.",
        metavar="FILE",
        show_default=False,
    ),
]
Validate = Annotated[
    list[Path] | None,
    typer.Option(
        help="Logs that decide when networks are trained enough (early stopping); not fitted to.",
        metavar="LOG…",
        show_default=False,
    ),
]
Horizon = Annotated[
    list[float] | None,
    typer.Option(help="Lengths of windows in s, one stage after the other, instead of --window.", metavar="SECONDS…"),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the result.", metavar="DIR", show_default=False)]
Holdout = Annotated[
    list[Path] | None, typer.Option(help="Logs to predict, not to fit to.", metavar="LOG…", show_default=False)
]
Window = Annotated[
    float | None,
    typer.Option(help="Length of windows within which the motion must be continuous, in s; found from the logs."),
]
Tie = Annotated[
    list[str] | None,
    typer.Option(help="Patterns whose matches share one value: 'joints/*.damping', or 'A,B,-C'.", metavar="PATTERN…"),
]
Bounds = Annotated[list[str] | None, typer.Option(help="Bounds in SI units.", metavar="PATTERN=LOW:HIGH…")]
Prior = Annotated[list[str] | None, typer.Option(help="Prior belief in SI units.", metavar="PATTERN=MEAN:STD…")]
Channel = Annotated[
    list[str] | None,
    typer.Option(help="Measured channels to compare, such as 'qpos/*'; all that make sense.", metavar="PATTERN…"),
]
Law = Annotated[
    list[str] | None,
    typer.Option(help="Law of an actuator: affine, dc_motor, duty_servo, minitaur_motor.", metavar="ACTUATOR=LAW…"),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Values to start from, or to keep.", metavar="PATH=VALUE…")
]
Robust = Annotated[
    float, typer.Option(help="Residuals beyond this many standard deviations count linearly; 'inf' for none.")
]
Optimiser = Annotated[
    str,
    typer.Option("--optimizer", help="lm (Levenberg-Marquardt), adam, or auto: adam for large networks."),
]
Seed = Annotated[int, typer.Option(help="Seed of everything random; kept with the result.")]
Search = Annotated[
    str,
    typer.Option(
        help="Where to begin: local (the robot's own values), hopping (many starts) or cmaes (no derivatives)."
    ),
]
Engine = Annotated[
    str, typer.Option(help="Simulator of the search: truesim, or mujoco as a black box, whose result is the fit.")
]
Workers = Annotated[
    str, typer.Option(help="Threads of the search; 'ray' or the address of a Ray cluster.", metavar="N|ray|ADDRESS")
]
Seconds = Annotated[float | None, typer.Option(help="Stop the search after this time, in s.")]
Solves = Annotated[int | None, typer.Option(help="Stop the search after so many solves, or evaluations of cmaes.")]
Goal = Annotated[float | None, typer.Option("--cost", help="Stop the search when its cost is below this.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in the folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the content of fit.json.")]
